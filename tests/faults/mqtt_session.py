"""A perfect MQTT client: its session outlives every broken connection, and it does what the standard asks of clients.

It resends what is unacknowledged, in order, acknowledges what comes (at once, or a little later), remembers the
identifiers of QoS 2, and never forgets a request that was not answered. What it hears is told to its owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

import msgspec

from holdfast.broker.packets import (
    V5,
    Connack,
    Connect,
    Decoder,
    Disconnect,
    Packet,
    ProtocolError,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Side,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    Will,
    encode,
)
from holdfast.broker.packets.reason import FAILURE
from tests.faults.operations import Lost

LAZY_SECONDS = 0.02
KEPT_SECONDS = 3_600


class Outgoing(msgspec.Struct):
    packet: Publish
    taken: Callable[[], None]
    done: Callable[[], None]
    again: Callable[[], None]
    released: bool = False


class Session:
    """`heard` gets each new message; `broken` each promise that the server broke."""

    def __init__(
        self,
        name: str,
        version: int,
        *,
        heard: Callable[[Publish], None] = lambda _message: None,
        broken: Callable[[Lost], None],
        will: Will | None = None,
        lazy: float = 0.0,
        random: Random | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.will = will
        self.clean = False
        self.kept = KEPT_SECONDS
        self.is_there: bool | None = None
        """Whether the server has this session: None where nobody can know."""
        self.up = asyncio.Event()
        self.visits = 0
        """How often it was let in."""
        self._heard = heard
        self.broken = broken
        self._lazy = lazy
        self._random = random or Random(name)
        self._incoming: set[int] = set()
        self.outgoing: dict[int, Outgoing] = {}
        self._requests: dict[int, tuple[Packet, Callable[[], None]]] = {}
        self._number = 0
        self._link: Link | None = None

    # -- its connection

    async def connect(self, address: str) -> None:
        """Opens a connection and waits until it has ended. CONNACK sets `up`."""
        try:
            link = await self.open(address)
        except OSError:
            return
        try:
            await link.ended.wait()
        finally:
            link.cut()
            if self._link is link:
                self.up.clear()
                self._link = None

    async def open(self, address: str) -> Link:
        """A connection, which takes the session from the one before it."""
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(lambda: Link(self), host, int(port))
        return link

    def has(self, link: Link) -> bool:
        """A newer connection has taken the session from all that came before."""
        return self._link is link

    def begins(self, link: Link) -> None:
        self._link = link
        self.up.clear()
        fields: dict[str, object] = {}
        if self.version == V5:
            fields = {"session_expiry": self.kept, "receive_maximum": 50}
        link.send(
            Connect(
                version=self.version,
                client_id=self.name,
                clean_start=self.clean,
                will=self.will,
                **fields,  # type: ignore[arg-type]
            )
        )

    def drop(self) -> None:
        if self._link is not None:
            self._link.cut()

    def leave(self) -> None:
        """DISCONNECT; the server closes."""
        if self._link is not None and self.up.is_set():
            self._link.send(Disconnect())

    def _connected(self, connack: Connack) -> None:
        if connack.reason in (Reason.SERVER_UNAVAILABLE, Reason.SERVER_BUSY):
            return
        if connack.reason:
            raise Lost(f"{self.name} was refused: {connack}")
        present = connack.session_present
        if self.is_there is not None and present != (self.is_there and not self.clean):
            raise Lost(f"{self.name}: session present is {present}, it was {self.is_there} ({self.clean=})")
        if not present:
            self._incoming.clear()
        self.is_there = True
        self.visits += 1
        for outgoing in self.outgoing.values():
            packet = outgoing.packet
            outgoing.again()
            again: Packet = msgspec.structs.replace(packet, dup=True)
            self._send(Pubrel(packet.packet_id) if outgoing.released else again)
        for request, _ in self._requests.values():
            self._send(request)
        self.up.set()

    # -- what it does

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        *,
        retain: bool = False,
        taken: Callable[[], None] = lambda: None,
        done: Callable[[], None] = lambda: None,
        again: Callable[[], None] = lambda: None,
    ) -> None:
        """`taken`: PUBACK or PUBREC was heard; `done`: the handshake is over; `again`: it was sent once more."""
        number = self._next()
        packet = Publish(topic, payload, qos, retain, False, number)
        self.outgoing[number] = Outgoing(packet, taken, done, again)
        self._send(packet)

    def subscribe(self, topic_filter: str, granted: Callable[[], None]) -> None:
        number = self._next()
        self._ask(number, Subscribe(number, (Subscription(topic_filter, 2),)), granted)

    def unsubscribe(self, topic_filter: str, gone: Callable[[], None]) -> None:
        number = self._next()
        self._ask(number, Unsubscribe(number, (topic_filter,)), gone)

    @property
    def is_idle(self) -> bool:
        """Nothing of its own is unanswered."""
        return not self.outgoing and not self._requests

    def _ask(self, number: int, packet: Packet, done: Callable[[], None]) -> None:
        self._requests[number] = (packet, done)
        self._send(packet)

    def _next(self) -> int:
        """An identifier that nothing of ours uses."""
        while True:
            self._number = self._number % 65_535 + 1
            if self._number not in self.outgoing and self._number not in self._requests:
                return self._number

    def _send(self, packet: Packet) -> None:
        if self._link is not None:
            self._link.send(packet)

    def _acknowledge(self, packet: Packet) -> None:
        """At once, or later, when the connection may be another: then the message comes again."""
        if not self._lazy or self._random.random() > self._lazy or self._link is None:
            self._send(packet)
            return
        delay = self._random.uniform(0, LAZY_SECONDS)
        asyncio.get_running_loop().call_later(delay, self._link.send, packet)

    # -- what it hears

    def hears(self, packet: Packet) -> None:
        match packet:
            case Connack():
                self._connected(packet)
            case Publish(qos=2):
                if packet.packet_id not in self._incoming:
                    self._incoming.add(packet.packet_id)
                    self._heard(packet)
                self._acknowledge(Pubrec(packet.packet_id))
            case Publish(qos=1):
                self._heard(packet)
                self._acknowledge(Puback(packet.packet_id))
            case Publish():
                self._heard(packet)
            case Pubrel():
                self._incoming.discard(packet.packet_id)
                self._acknowledge(Pubcomp(packet.packet_id))
            case Puback() | Pubrec() | Pubcomp():
                self._acknowledged(packet)
            case Suback() | Unsuback():
                self._answered(packet)

    def _acknowledged(self, packet: Puback | Pubrec | Pubcomp) -> None:
        outgoing = self.outgoing.get(packet.packet_id)
        if packet.reason >= FAILURE and not isinstance(packet, Pubcomp):  # a PUBREL may come a second time
            raise Lost(f"{self.name}: {packet}")
        if outgoing is None:
            return
        if isinstance(packet, Pubrec):
            if not outgoing.released:
                outgoing.released = True
                outgoing.taken()
            self._send(Pubrel(packet.packet_id))
            return
        if isinstance(packet, Puback):
            outgoing.taken()
        del self.outgoing[packet.packet_id]
        outgoing.done()

    def _answered(self, packet: Suback | Unsuback) -> None:
        if any(reason >= FAILURE for reason in packet.reasons):
            raise Lost(f"{self.name}: {packet}")
        if (asked := self._requests.pop(packet.packet_id, None)) is not None:
            asked[1]()


class Link(asyncio.Protocol):
    """One connection of a session, to its end."""

    def __init__(self, session: Session) -> None:
        self.ended = asyncio.Event()
        self.goodbye: int | None = None
        self._session = session
        self._decoder = Decoder(Side.CLIENT, session.version)
        self._out: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._session.begins(self)

    def data_received(self, data: bytes) -> None:
        try:
            for packet in self._decoder.receive_data(data):
                if isinstance(packet, Disconnect):
                    self.goodbye = packet.reason
                elif self._session.has(self) and not self._transport.is_closing():
                    self._session.hears(packet)
        except Lost as lost:
            self._session.broken(lost)
        except ProtocolError as error:
            self._session.broken(Lost(f"{self._session.name} got what is no MQTT: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()

    def send(self, packet: Packet) -> None:
        """In one piece with what else is sent in this turn of the loop."""
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(encode(packet, self._session.version))

    def cut(self) -> None:
        self._transport.abort()
        self.ended.set()

    def _flush(self) -> None:
        data = b"".join(self._out)
        self._out.clear()
        if not self._transport.is_closing():
            self._transport.write(data)
