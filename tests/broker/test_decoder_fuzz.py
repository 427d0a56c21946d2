"""Bytes from a hostile peer: whatever they are, packets or one ProtocolError come out, in bounded memory.

`HOLDFAST_FUZZ` is the number of mutated streams (default 30,000; 1,000,000 before a release). A failure
names its seed: `HOLDFAST_FUZZ_SEED` runs it again.
"""

import os
import random
import tracemalloc

from holdfast.broker.packets import Decoder, Packet, ProtocolError, encode
from tests.broker.wire_bad import BAD, FIRST
from tests.broker.wire_good import GOOD

COUNT = int(os.environ.get("HOLDFAST_FUZZ", "30000"))
SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
LIMIT = 4_096
SAMPLES = [row.data for row in (*GOOD, *BAD, *FIRST)]
TELLING = bytes((0x00, 0x01, 0x04, 0x05, 0x23, 0x26, 0x2B, 0x7F, 0x80, 0xC0, 0xED, 0xFF))


def mutated(chance: random.Random) -> bytes:
    stream = bytearray(b"".join(chance.choices(SAMPLES, k=chance.randint(1, 3))))
    for _ in range(chance.randint(0, 4)):
        place = chance.randrange(len(stream) + 1)
        match chance.randrange(5):
            case 0 if place < len(stream):
                stream[place] ^= 1 << chance.randrange(8)
            case 1 if place < len(stream):
                stream[place] = chance.choice(TELLING)
            case 2:
                stream[place:place] = chance.randbytes(chance.randint(1, 4))
            case 3:
                del stream[place : place + chance.randint(1, 4)]
            case _:
                del stream[place:]
    return bytes(stream)


def feed(decoder: Decoder, stream: bytes, chance: random.Random) -> list[Packet]:
    """The packets of a stream in random pieces; only a ProtocolError may come out besides."""
    packets: list[Packet] = []
    while stream:
        size = chance.choice((1, 2, 7, len(stream)))
        piece, stream = stream[:size], stream[size:]
        try:
            packets += decoder.receive_data(piece)
        except ProtocolError as error:
            assert error.clause
            assert error.reason >= 0x80
            packets += error.packets
            assert decoder.failed
        assert decoder.buffered <= LIMIT
    return packets


def test_mutated_streams_give_packets_or_one_error_and_what_is_read_can_be_written() -> None:
    chance = random.Random(SEED)
    for number in range(COUNT):
        stream = mutated(chance)
        row = chance.choice(GOOD)
        version = chance.choice((None, row.version))
        decoder = Decoder(row.reader, version, max_packet_size=LIMIT)
        try:
            for packet in feed(decoder, stream, chance):
                said = decoder.version or row.version
                again = Decoder(row.reader, None if stream[0] == 0x10 and version is None else said)
                data = encode(packet, said)
                if data[0] != 0x10 and again.version is None:
                    again = Decoder(row.reader, said)
                assert again.receive_data(data) == [packet]
        except Exception as error:
            raise AssertionError(
                f"seed {SEED}, stream {number}: {stream.hex()} (v{version}, {row.reader})"
            ) from error


def test_memory_stays_flat_over_many_hostile_streams() -> None:
    chance = random.Random(SEED)
    decoders = [Decoder(max_packet_size=LIMIT) for _ in range(50)]
    for decoder in decoders:
        feed(decoder, mutated(chance), chance)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2_000):
            feed(Decoder(max_packet_size=LIMIT), mutated(chance), chance)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000, f"seed {SEED}"
    assert peak - before < 4_000_000, f"seed {SEED}"
