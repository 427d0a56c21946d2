"""A client that speaks to a real broker through a transport in memory, and the broker it speaks to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from holdfast.broker.broker import Broker
from holdfast.broker.hooks import Access, Challenge, Client, Identity, Login, Refused, Verdict
from holdfast.broker.packets import (
    Connack,
    Connect,
    Decoder,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Reason,
    Side,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    encode,
)
from holdfast.clock import ManualClock
from holdfast.metrics import Metrics
from holdfast.settings import Broker as Settings
from holdfast.store import Database, Transaction
from holdfast.store.migrations import of_rooms

P = TypeVar("P")

PATIENCE = 20.0


class Someone(msgspec.Struct, frozen=True):
    name: str = ""
    is_server: bool = False

    def over(self, now_ms: int) -> Reason | None:
        return None


class EverybodyMay:
    """Lets everybody in under the user name they give, and do everything that `denied` does not name."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, Access, str]] = set()
        self.slow = False
        """Decisions have to be looked up."""

    async def authenticate(self, login: Login) -> Identity:
        if login.password == b"wrong":
            raise Refused(Reason.BAD_USER_NAME_OR_PASSWORD)
        return Someone(login.username or "")

    def authorise(self, client: Client, access: Access, topic: str) -> Verdict:
        verdict = (client.name, access, topic) not in self.denied
        if self.slow and access is not Access.RECEIVE:
            return self._later(verdict)
        return verdict

    async def _later(self, verdict: bool) -> bool:
        await asyncio.sleep(0)
        return verdict

    async def exchange(
        self, login: Login, method: str, data: bytes | None, step: int, known: Identity | None
    ) -> Identity | Challenge:
        if method != "echo":
            raise Refused(Reason.BAD_AUTHENTICATION_METHOD)
        if step == 0:
            return Challenge(b"who?")
        if data != b"me":
            raise Refused(Reason.NOT_AUTHORIZED)
        return known or Someone(login.username or "")


class Wire:
    """The network between the two: what the broker writes waits in `sent` until the client reads it."""

    def __init__(self, address: str = "192.0.2.1") -> None:
        self.address = address
        self.certificate_name: str | None = None
        self.sent = bytearray()
        self.writes = 0
        self.is_closed = False
        self.is_reading = True
        self.stuck = False
        self.buffered = 0
        self.arrived = asyncio.Event()
        self.lost: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.writes += 1
        if self.stuck:
            self.buffered += len(data)
        self.sent += data
        self.arrived.set()

    def unsent(self) -> int:
        return self.buffered

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True
        self.arrived.set()

    def close(self) -> None:
        self._close()

    def abort(self) -> None:
        self._close()

    def _close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.arrived.set()
            asyncio.get_running_loop().call_soon(self.lost)


class Speaker:
    """One connection of a client. It answers nothing by itself."""

    def __init__(self, broker: Broker, version: int, *, address: str = "192.0.2.1") -> None:
        self.version = version
        self.wire = Wire(address)
        self.peer = broker.connect(self.wire)
        self.wire.lost = self.peer.connection_lost
        self._decoder = Decoder(Side.CLIENT, version)
        self._packets: list[Packet] = []
        self.last_id = 0

    # -- out

    def write(self, data: bytes) -> None:
        if not self.wire.is_closed:
            self.peer.receive_data(data)

    def say(self, *packets: Packet) -> None:
        self.write(b"".join(encode(packet, self.version) for packet in packets))

    def next_id(self) -> int:
        self.last_id = self.last_id % 65_535 + 1
        return self.last_id

    def drop(self) -> None:
        """The network goes away without a word."""
        if not self.wire.is_closed:
            self.wire.is_closed = True
            self.peer.connection_lost()

    # -- in

    def read(self) -> list[Packet]:
        """What has arrived and was not looked at yet."""
        data = bytes(self.wire.sent)
        self.wire.sent.clear()
        self._packets += self._decoder.receive_data(data)
        return self._packets

    async def get(self, kind: type[P]) -> P:
        """The next packet, which is to be of this kind."""
        async with asyncio.timeout(PATIENCE):
            while not self.read():
                assert not self.wire.is_closed, "the connection was closed"
                self.wire.arrived.clear()
                await self.wire.arrived.wait()
        packet = self._packets.pop(0)
        assert isinstance(packet, kind), packet
        return packet

    async def get_all(self, kind: type[P], count: int) -> list[P]:
        return [await self.get(kind) for _ in range(count)]

    async def closed(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.wire.is_closed:
                self.wire.arrived.clear()
                await self.wire.arrived.wait()

    async def nothing(self) -> None:
        """Nothing more comes: whatever would have is behind the answer to a ping."""
        await settle()
        self.say(Pingreq())
        await self.get(Pingresp)

    # -- whole exchanges

    async def connect(self, client_id: str = "", **fields: Any) -> Connack:
        self.say(Connect(version=self.version, client_id=client_id, **fields))
        return await self.get(Connack)

    async def subscribe(self, name: str, qos: int = 0, *, identifier: int = 0, **options: Any) -> Suback:
        self.say(Subscribe(self.next_id(), (Subscription(name, qos, **options),), identifier))
        return await self.get(Suback)

    async def unsubscribe(self, *names: str) -> Unsuback:
        self.say(Unsubscribe(self.next_id(), names))
        return await self.get(Unsuback)

    def publish(self, topic: str, payload: bytes = b"x", qos: int = 0, **fields: Any) -> int:
        packet_id = self.next_id() if qos else 0
        self.say(Publish(topic, payload, qos, packet_id=packet_id, **fields))
        return packet_id


async def settle() -> None:
    """Lets the loop do what it has begun; commits take their time on threads, and are waited for elsewhere."""
    for _ in range(8):
        await asyncio.sleep(0)


async def until_read(speaker: Speaker) -> None:
    """Waits until the broker reads again from this connection."""
    async with asyncio.timeout(PATIENCE):
        while not speaker.wire.is_reading:
            speaker.wire.arrived.clear()
            await speaker.wire.arrived.wait()


class House:
    """A broker on a store, and everyone who speaks to it."""

    def __init__(
        self,
        db: Database,
        settings: Settings = Settings(),
        hooks: EverybodyMay | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.hooks = hooks or EverybodyMay()
        self.broker = Broker(db, self.hooks, self.clock, settings, Metrics())

    def speaker(self, version: int = 5, **fields: Any) -> Speaker:
        return Speaker(self.broker, version, **fields)

    async def client(self, client_id: str = "", version: int = 5, **fields: Any) -> Speaker:
        speaker = self.speaker(version)
        answer = await speaker.connect(client_id, **fields)
        assert answer.reason == Reason.SUCCESS
        return speaker

    async def lasting(self, client_id: str, version: int = 5, **fields: Any) -> Speaker:
        """A client whose session outlives its connection."""
        expiry = {"session_expiry": 3_600} if version == 5 else {}
        return await self.client(client_id, version, clean_start=False, **expiry, **fields)

    async def crash(self) -> None:
        """The process is gone: what was not handed to the store never happened, and nobody is told anything."""
        broker = self.broker
        broker.ticking.stop()
        for part in (broker.delivery, broker.leftovers, broker.admission):
            part.stop()
        broker.journal.give_up()
        for peer in list(broker.peers):
            wire = peer.transport
            assert isinstance(wire, Wire)
            wire.is_closed = True
            wire.arrived.set()
        broker.turns.start(asyncio.get_running_loop(), lambda _session: None, lambda: None)
        broker.peers.clear()
        await broker.db.write(lambda tx: None)  # what was handed over before has been written now

    def tick(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.broker.ticking.tick()


ROOMS: Sequence[str] = ("store", "broker")


@asynccontextmanager
async def held_commits(db: Database) -> AsyncIterator[None]:
    """The disk is busy: nothing is committed until this ends."""
    begun, release = threading.Event(), threading.Event()

    def wait(_tx: Transaction) -> None:
        begun.set()
        release.wait(PATIENCE)

    busy = asyncio.create_task(db.write_alone(wait))
    await asyncio.to_thread(begun.wait)
    try:
        yield
    finally:
        release.set()
        await busy


@asynccontextmanager
async def running(
    db: Database,
    settings: Settings = Settings(),
    hooks: EverybodyMay | None = None,
    clock: ManualClock | None = None,
) -> AsyncIterator[House]:
    house = House(db, settings, hooks, clock)
    await house.broker.start()
    try:
        yield house
    finally:
        await house.broker.close()
        await house.broker.stop()


def migrations() -> Any:
    return of_rooms(*ROOMS)
