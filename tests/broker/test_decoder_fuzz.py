"""Bytes from a hostile peer: whatever they are, packets or one ProtocolError come out, in bounded memory.

`HOLDFAST_FUZZ` is the number of mutated streams (default 100,000; 1,000,000 before a release). A failure
names its seed: `HOLDFAST_FUZZ_SEED` runs it again.
"""

import os
import random
import tracemalloc

from holdfast.broker.packets import Connect, Decoder, Packet, ProtocolError, Reason, Side, encode
from tests.broker.wire_bad import BAD, FIRST
from tests.broker.wire_good import GOOD

COUNT = int(os.environ.get("HOLDFAST_FUZZ", "100000"))
SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
LIMIT = 4_096
CONNECTS = [row.data for row in (*GOOD, *FIRST) if row.data[0] == 0x10]
SAMPLES = {
    (side, version): [
        row.data
        for row in (*GOOD, *BAD)
        if (row.reader, row.version) == (side, version) and row.data[0] != 0x10
    ]
    for side in Side
    for version in (3, 4, 5)
}
TELLING = bytes((0x00, 0x01, 0x04, 0x05, 0x23, 0x26, 0x2B, 0x7F, 0x80, 0xC0, 0xED, 0xFF))


def mutated(chance: random.Random, samples: list[bytes]) -> bytes:
    """A few packets one after the other, with up to four small damages."""
    stream = bytearray(b"".join(chance.choices(samples, k=chance.randint(1, 4))))
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


def conversation(chance: random.Random) -> tuple[Side, int | None, bytes]:
    """Who reads, the version agreed on before (None: CONNECT is still to come), and what arrives."""
    side, version = chance.choice(list(SAMPLES))
    stream = mutated(chance, SAMPLES[side, version])
    if side is Side.SERVER and chance.random() < 0.3:
        return side, None, mutated(chance, CONNECTS) + stream
    return side, version, stream


def feed(decoder: Decoder, stream: bytes, chance: random.Random) -> list[Packet]:
    """The packets of a stream in random pieces; only a ProtocolError may come out besides."""
    packets: list[Packet] = []
    while stream:
        size = chance.choice((1, 2, 7, len(stream)))
        piece, stream = stream[:size], stream[size:]
        try:
            packets += decoder.receive_data(piece)
        except ProtocolError as error:
            packets += error.packets
            says_why = bool(error.clause) and error.reason >= Reason.UNSPECIFIED
            if not (says_why and decoder.failed):
                raise AssertionError(
                    "an error without clause or reason, or after which reading goes on"
                ) from error
        assert decoder.buffered <= LIMIT
    return packets


def check(side: Side, version: int | None, stream: bytes, chance: random.Random) -> int:
    """Read a stream, write what was read, read it again: how many packets there were."""
    decoder = Decoder(side, version, max_packet_size=LIMIT)
    packets = feed(decoder, stream, chance)
    for packet in packets:
        again = Decoder(side, None if isinstance(packet, Connect) else decoder.version)
        assert decoder.version is not None
        assert again.receive_data(encode(packet, decoder.version)) == [packet]
    return len(packets)


def test_mutated_streams_give_packets_or_one_error_and_what_is_read_can_be_written() -> None:
    chance = random.Random(SEED)
    read = 0
    for number in range(COUNT):
        side, version, stream = conversation(chance)
        try:
            read += check(side, version, stream, chance)
        except Exception as error:
            raise AssertionError(
                f"seed {SEED}, stream {number}: {stream.hex()} ({side}, v{version})"
            ) from error
    assert read > COUNT // 4, "the streams are too damaged to test anything behind the first packet"


def test_memory_stays_flat_over_many_hostile_streams() -> None:
    chance = random.Random(SEED)
    for _ in range(200):
        check(*conversation(chance), chance)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2_000):
            check(*conversation(chance), chance)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000, f"seed {SEED}"
    assert peak - before < 4_000_000, f"seed {SEED}"
