"""Sequences of packets that no sane client would send, to a real broker over a transport in memory.

Nothing escapes, nothing hangs, well-behaved clients notice nothing, and when the strangers are gone, so is all they had.
`HOLDFAST_FUZZ` is the number of packets (default 30,000; 1,000,000 before a release); `HOLDFAST_FUZZ_SEED` repeats one.
"""

from __future__ import annotations

import asyncio
import os
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.broker import admission, delivery, peer, publishing
from holdfast.broker.packets import (
    V5,
    V31,
    V311,
    Auth,
    Connect,
    Decoder,
    Disconnect,
    MessageProperties,
    Packet,
    Pingreq,
    ProtocolError,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Side,
    Subscribe,
    Subscription,
    Unsubscribe,
    Will,
    encode,
)
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, Speaker
from tests.broker.test_decoder_fuzz import TELLING

COUNT = int(os.environ.get("HOLDFAST_FUZZ", "30000"))
SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
STRANGERS = 12
NAMES = ("one", "two", "three", "four", "")
TOPICS = ("a", "a/b", "a/b/c", "b", "$x/y", "$SYS/broker", "/", "a//b", "ä", "a" * 300, "/".join("a" * 300))
FILTERS = (*TOPICS[:8], "#", "+", "a/#", "+/b", "+/+/c", "$share/g/a", "$share/g/#", "$share/h/+/b", "$SYS/#")
IDS = (1, 2, 3, 4, 5, 6, 7, 8, 65_535)
SMALL = Settings(
    queue_count=50,
    queue_bytes=20_000,
    max_inflight=4,
    receive_maximum=8,
    max_subscriptions=12,
    max_packet_size=2_000,
    retained_count=30,
    topic_alias_max=3,
    max_session_expiry=100,
    high_water=65_536,
)


class Stranger:
    """Says whatever comes to his mind, in packets that are mostly well-formed."""

    def __init__(self, house: House, chance: random.Random) -> None:
        self._house = house
        self._chance = chance
        self.begin()

    def begin(self) -> None:
        self.speaker = self._house.speaker(self._chance.choice((V31, V311, V311, V5, V5, V5)))
        self._decoder = Decoder(Side.CLIENT, self.speaker.version)
        self._came: list[Packet] = []
        self._was_clear = True
        if self._chance.random() < 0.97:
            self._say(self._connect())

    def turn(self) -> None:
        chance, wire = self._chance, self.speaker.wire
        if self._was_clear:
            self._came = (self._came + self._decoder.receive_data(bytes(wire.sent)))[-20:]
        wire.sent.clear()
        if wire.is_closed or chance.random() < 0.01:
            self.speaker.drop()
            self.begin()
        elif self._came and chance.random() < 0.4:
            self._answer(self._came.pop(0))
        else:
            self._say(self._anything())

    def _say(self, packet: Packet) -> None:
        try:
            data = encode(packet, self.speaker.version)
        except ValueError:
            return
        if self._chance.random() < 0.01:
            data = self._damaged(data)
            self._was_clear = False  # it may be answered in another version
        self.speaker.write(data)

    def _damaged(self, data: bytes) -> bytes:
        place = self._chance.randrange(len(data))
        return (
            data[:place] + bytes((self._chance.choice(TELLING),)) + data[place + self._chance.randint(0, 2) :]
        )

    def _answer(self, packet: Packet) -> None:
        reason = self._chance.choice((0, 0, 0, 0, 0x80)) if self.speaker.version == V5 else 0
        match packet:
            case Publish(qos=1):
                self._say(Puback(packet.packet_id, reason))
            case Publish(qos=2):
                self._say(Pubrec(packet.packet_id, reason))
            case Pubrec():
                self._say(Pubrel(packet.packet_id))
            case Pubrel():
                self._say(Pubcomp(packet.packet_id))

    # -- what comes to his mind

    def _anything(self) -> Packet:
        make = self._chance.choices(
            (self._publish, self._acknowledge, self._subscribe, self._unsubscribe, self._odd),
            (50, 20, 12, 8, 3),
        )[0]
        return make()

    def _publish(self) -> Publish:
        chance = self._chance
        qos = chance.randrange(3)
        v5 = self.speaker.version == V5
        alias = chance.choice((0, 0, 0, 1, 2, 3, 4)) if v5 and chance.random() < 0.1 else 0
        topic = "" if alias and chance.random() < 0.5 else chance.choice(TOPICS)
        return Publish(
            topic,
            chance.choice((b"", b"x", b"\xff", b"x" * 400, b"x" * 1_900)),
            qos,
            chance.random() < 0.2,
            bool(qos) and chance.random() < 0.1,
            chance.choice(IDS) if qos else 0,
            self._properties() if v5 else None,
            alias,
        )

    def _properties(self) -> MessageProperties | None:
        chance = self._chance
        if chance.random() < 0.8:
            return None
        return MessageProperties(
            payload_format=chance.choice((None, 0, 1)),
            message_expiry=chance.choice((None, 0, 1, 50, 0xFFFF_FFFF)),
            response_topic=chance.choice((None, "r")),
            correlation_data=chance.choice((None, b"", b"c")),
            user_properties=(("a", "b"),) * chance.randrange(3),
        )

    def _acknowledge(self) -> Packet:
        kind: Callable[..., Packet] = self._chance.choice((Puback, Pubrec, Pubrel, Pubcomp))
        return kind(self._chance.choice(IDS))

    def _subscribe(self) -> Subscribe:
        chance, v5 = self._chance, self.speaker.version == V5
        each = []
        for _ in range(chance.randint(1, 4)):
            name = chance.choice(FILTERS)
            local = v5 and not name.startswith("$share/") and chance.random() < 0.2
            options = (chance.random() < 0.3, chance.randrange(3)) if v5 else (False, 0)
            each.append(Subscription(name, chance.randrange(3), local, *options))
        return Subscribe(chance.choice(IDS), tuple(each), chance.choice((0, 0, 1, 268_435_455)) if v5 else 0)

    def _unsubscribe(self) -> Unsubscribe:
        chance = self._chance
        return Unsubscribe(chance.choice(IDS), tuple(chance.choices(FILTERS, k=chance.randint(1, 3))))

    def _odd(self) -> Packet:
        chance, v5 = self._chance, self.speaker.version == V5
        kinds: list[Callable[[], Packet]] = [Pingreq, Pingreq, Pingreq, self._connect, Disconnect]
        if v5:
            kinds += [
                lambda: Disconnect(session_expiry=chance.choice((0, 5, 500))),
                lambda: Disconnect(reason=chance.choice((0x04, 0x80, 0x98))),
                lambda: Auth(
                    reason=chance.choice((0x18, 0x19)),
                    authentication_method=chance.choice(("echo", "other")),
                    authentication_data=chance.choice((None, b"me", b"x")),
                ),
            ]
        return chance.choice(kinds)()

    def _connect(self) -> Connect:
        chance, version = self._chance, self.speaker.version
        will = None
        if chance.random() < 0.4:
            delay = chance.choice((0, 0, 1, 200)) if version == V5 else 0
            will = Will(
                topic=chance.choice(TOPICS),
                qos=chance.randrange(3),
                retain=chance.random() < 0.3,
                delay=delay,
            )
        fields: dict[str, Any] = {}
        if version == V5:
            fields = {
                "session_expiry": chance.choice((0, 0, 5, 1_000, 0xFFFF_FFFF)),
                "receive_maximum": chance.choice((1, 2, 65_535)),
                "maximum_packet_size": chance.choice((None, None, 1, 40, 1_000)),
                "topic_alias_maximum": chance.choice((0, 0, 2, 100)),
                "request_problem_information": chance.random() < 0.5,
                "authentication_method": chance.choice((None,) * 8 + ("echo", "other")),
            }
        return Connect(
            version=version,
            client_id=chance.choice(NAMES),
            clean_start=chance.random() < 0.4,
            keep_alive=chance.choice((0, 1, 60)),
            username=chance.choice((None, None, None, "ann")),
            will=will,
            **fields,
        )


@pytest.fixture
def mistakes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the broker caught of its own mistakes: it logs them and closes the connection; here each is a failure."""
    import sys

    found: list[str] = []

    class Loud:
        def __init__(self, quiet: Any) -> None:
            self._quiet = quiet

        def __getattr__(self, name: str) -> Any:
            return getattr(self._quiet, name)

        def exception(self, event: str, **_fields: object) -> None:
            found.append(f"{event}: {sys.exc_info()[1]!r}")

        def info(self, event: str, **_fields: object) -> None:
            """Not written: there would be hundreds of thousands."""

        warning = info

    for module in (admission, delivery, peer, publishing):
        if hasattr(module, "log"):
            monkeypatch.setattr(module, "log", Loud(module.log))
    return found


async def play(house: House, chance: random.Random, count: int) -> list[dict[str, Any]]:
    """`count` packets; answers what the loop caught."""
    caught: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: caught.append(context))
    strangers = [Stranger(house, chance) for _ in range(STRANGERS)]
    steady = await house.client("steady")
    await steady.subscribe("steady/t", 1)
    for number in range(count):
        chance.choice(strangers).turn()
        if number % 8 == 0:
            await asyncio.sleep(0)
        if number % 500 == 0:
            house.tick(chance.choice((0.0, 0.5, 3.0)))
            await works(steady, b"%d" % number)
    for stranger in strangers:
        stranger.speaker.drop()
    return caught


async def works(steady: Speaker, payload: bytes) -> None:
    """A client that does nothing wrong is served."""
    steady.publish("steady/t", payload, 1)
    kinds = [await steady.get(Publish | Puback) for _ in range(2)]  # type: ignore[arg-type]
    (message,) = (packet for packet in kinds if isinstance(packet, Publish))
    assert message.payload == payload
    steady.say(Puback(message.packet_id))


async def test_no_sequence_of_packets_does_harm(open_house: OpenHouse, mistakes: list[str]) -> None:
    chance = random.Random(SEED)
    async with open_house(settings=SMALL) as house:
        caught = await play(house, chance, COUNT)
        assert mistakes == [], f"seed {SEED}"
        assert caught == [], f"seed {SEED}"
        broker = house.broker
        for info in list(broker.sessions()):
            await broker.delete_session(info.client_id)
        for info in list(broker.retained("#")) + list(broker.retained("$x/#")):
            await broker.clear_retained(info.topic)
        await broker.journal.drain()
        left = (broker.session_count, broker.subscription_count, broker.retained_count, broker.queued_count)
        assert left == (0, 0, 0, 0), f"seed {SEED}"
        assert broker.queued_bytes == 0, f"seed {SEED}"


async def test_memory_stays_flat_over_strange_sequences(open_house: OpenHouse, mistakes: list[str]) -> None:
    chance = random.Random(SEED)
    async with open_house(settings=SMALL) as house:
        await play(house, chance, 3_000)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await play(house, chance, 6_000)
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 4_000_000, f"seed {SEED}"
    assert peak - before < 16_000_000, f"seed {SEED}"


def test_the_strangers_mostly_speak_mqtt() -> None:
    """Else nothing behind the decoder would be tested."""
    chance = random.Random(1)
    stranger = Stranger.__new__(Stranger)
    stranger._chance = chance
    good = 0
    for version in (V31, V311, V5):
        stranger.speaker = type("Speaking", (), {"version": version})()
        for _ in range(500):
            packet = stranger._anything()
            try:
                good += Decoder(Side.SERVER, version).receive_data(encode(packet, version)) == [packet]
            except (ProtocolError, ValueError):
                continue
    assert good > 1_200
