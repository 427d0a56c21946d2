"""A client that takes nothing on trust: packets out, packets in, in order, against any broker at HOST:PORT.

Our own codec, read from the client's side; `strictness` watches every packet. What should come is awaited with
`expect…` (a time-out is a failure, nothing ever sleeps), what must not come is ruled out by `quiet`, which asks for a
PINGRESP and takes nothing before it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import ssl
from collections import deque
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import msgspec

from holdfast.broker.packets import (
    V5,
    Connack,
    Connect,
    Decoder,
    Disconnect,
    MessageProperties,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Side,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    encode,
)
from tests.broker.strictness import FAILED, Watch

PATIENCE: Final = float(os.environ.get("HOLDFAST_TEST_PATIENCE", "20"))
SHOWN: Final = 40

P = TypeVar("P", bound=Packet)


class Unexpected(AssertionError):
    """Something else came, or nothing did; with the conversation so far."""


class Wire(asyncio.Protocol):
    """What came and whether it has ended; what came before a reset is not lost to it (as a stream would)."""

    def __init__(self) -> None:
        self.came = bytearray()
        self.ended = False
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.came += data
        self._changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = True
        self._changed.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def read(self) -> bytes:
        """What has come since, b"" at the end."""
        while not self.came and not self.ended:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self.came)
        self.came.clear()
        return data

    async def write(self, data: bytes) -> None:
        self.transport.write(data)
        await self._writable.wait()


class Client:
    """One connection. Packet identifiers of our own count up from 1."""

    def __init__(self, wire: Wire, version: int, name: str = "") -> None:
        self.version = version
        self.name = name
        self.connack = Connack()
        self._wire = wire
        self._decoder = Decoder(Side.CLIENT, version)
        self._watch = Watch(version)
        self._came: deque[Packet] = deque()
        self._ended = False
        self._numbers = itertools.cycle(range(1, 65_536))
        self._said: deque[str] = deque(maxlen=SHOWN)

    @classmethod
    async def open(cls, address: str, version: int = V5, *, tls: ssl.SSLContext | None = None) -> Self:
        """A connection on which nothing has been said."""
        host, _, port = address.rpartition(":")
        async with asyncio.timeout(PATIENCE):
            _, wire = await asyncio.get_running_loop().create_connection(Wire, host, int(port), ssl=tls)
        return cls(wire, version)

    @classmethod
    async def connected(
        cls,
        address: str,
        name: str,
        version: int = V5,
        *,
        clean: bool = True,
        present: bool | None = None,
        tls: ssl.SSLContext | None = None,
        **fields: Any,
    ) -> Self:
        """A client that was let in; `present` says what Session Present must have been."""
        client = await cls.open(address, version, tls=tls)
        connack = await client.connect(name, clean=clean, **fields)
        if connack.reason:
            raise client.unexpected(f"was refused: {connack}")
        if present is not None and version != 3 and connack.session_present != present:
            raise client.unexpected(f"session present is {connack.session_present}, not {present}")
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    # -- out

    async def send(self, *packets: Packet) -> None:
        for packet in packets:
            self._watch.sent(packet)
            self._said.append(f"→ {shown(packet)}")
        await self.send_bytes(b"".join(encode(packet, self.version) for packet in packets), silent=True)

    async def send_bytes(self, data: bytes, *, silent: bool = False) -> None:
        if not silent:
            self._said.append(f"→ {data[:60].hex(' ')}")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._wire.write(data)
        except TimeoutError:
            raise self.unexpected(f"could not send within {PATIENCE:g} s") from None

    def number(self) -> int:
        """The next packet identifier of our own."""
        return next(self._numbers)

    # -- in

    async def next(self) -> Packet:
        while not self._came:
            await self._more()
        return self._came.popleft()

    async def expect(self, *packets: Packet) -> None:
        """Exactly these, in this order."""
        for wanted in packets:
            found = await self.next()
            if found != wanted:
                raise self.unexpected(f"got {found} in place of {wanted}")

    async def expect_a(self, kind: type[P], **fields: object) -> P:
        """The next packet is of this kind, and says so much."""
        return self._checked(await self.next(), kind, fields)

    async def answer(self, kind: type[P], **fields: object) -> P:
        """The next packet that is not a message on its way to us: their order among each other is free."""
        place = 0
        while True:
            while place < len(self._came):
                packet = self._came[place]
                if not isinstance(packet, Publish):
                    del self._came[place]
                    return self._checked(packet, kind, fields)
                place += 1
            await self._more()

    async def closed(self) -> Packet | None:
        """Until the server has closed; what it said last, if anything. Anything before that is a failure."""
        said: Packet | None = None
        if self._came:
            said = self._came.popleft()
        while not self._ended:
            await self._more(end_is_fine=True)
        if self._came:
            if said is not None:
                raise self.unexpected(f"more than one packet before the end: {said}, {self._came[0]}")
            said = self._came.popleft()
        if self._came:
            raise self.unexpected(f"more than one packet before the end: {said}, {self._came[0]}")
        return said

    async def expect_end(self, reason: int | None = None) -> None:
        """The server closes: in 5.0 with a DISCONNECT that says why (when `reason` is given), else without a word."""
        said = await self.closed()
        if self.version != V5 or reason is None:
            if said is not None:
                raise self.unexpected(f"said {said} before it closed")
        elif not isinstance(said, Disconnect) or said.reason != reason:
            raise self.unexpected(f"said {said} before it closed, not DISCONNECT {reason:#04x}")

    async def closed_with_bytes(self) -> bytes:
        """Until the server has closed; everything it said, as it came: for who spoke a version of its own."""
        said = b""
        try:
            async with asyncio.timeout(PATIENCE):
                while data := await self._wire.read():
                    said += data
        except TimeoutError:
            raise self.unexpected(f"was not closed within {PATIENCE:g} s") from None
        self._ended = True
        return said

    async def quiet(self) -> None:
        """Nothing is on its way to us."""
        await self.send(Pingreq())
        await self.expect(Pingresp())

    async def _more(self, *, end_is_fine: bool = False) -> None:
        if self._ended:
            raise self.unexpected("the connection has ended")
        try:
            async with asyncio.timeout(PATIENCE):
                data = await self._wire.read()
        except TimeoutError:
            raise self.unexpected(f"nothing came within {PATIENCE:g} s") from None
        if not data:
            self._ended = True
            self._said.append("← (end)")
            if not end_is_fine:
                raise self.unexpected("the server closed")
            return
        for packet in self._decoder.receive_data(data):
            self._said.append(f"← {shown(packet)}")
            try:
                self._came.append(self._watch.received(packet))
            except AssertionError as error:
                error.add_note(self.conversation())
                raise

    def _checked(self, packet: Packet, kind: type[P], fields: dict[str, object]) -> P:
        if not isinstance(packet, kind):
            raise self.unexpected(f"got {packet} in place of {kind.__name__} {fields or ''}")
        for name, wanted in fields.items():
            found = getattr(packet, name)
            if found != wanted:
                raise self.unexpected(f"{name} is {found!r}, not {wanted!r}: {packet}")
        return packet

    def unexpected(self, what: str) -> Unexpected:
        return Unexpected(f"{self.name or 'a client'}: {what}\n{self.conversation()}")

    def conversation(self) -> str:
        return "\n".join(f"    {line[:300]}" for line in self._said)

    # -- what clients do

    async def connect(self, name: str = "", *, clean: bool = True, **fields: Any) -> Connack:
        self.name = self.name or name
        await self.send(Connect(version=self.version, client_id=name, clean_start=clean, **fields))
        self.connack = await self.expect_a(Connack)
        return self.connack

    async def subscribe(
        self, *filters: str | Subscription, qos: int = 0, identifier: int = 0, **options: Any
    ) -> tuple[int, ...]:
        """The reasons, which are the granted QoS unless somebody expects otherwise: see `subscribed`."""
        each = tuple(f if isinstance(f, Subscription) else Subscription(f, qos, **options) for f in filters)
        number = self.number()
        await self.send(Subscribe(number, each, identifier))
        return (await self.answer(Suback, packet_id=number)).reasons

    async def subscribed(
        self, *filters: str | Subscription, qos: int = 0, identifier: int = 0, **options: Any
    ) -> None:
        """As `subscribe`, and every filter was granted as asked."""
        reasons = await self.subscribe(*filters, qos=qos, identifier=identifier, **options)
        wanted = tuple(f.qos if isinstance(f, Subscription) else qos for f in filters)
        if reasons != wanted:
            raise self.unexpected(f"granted {reasons}, not {wanted}")

    async def unsubscribe(self, *filters: str) -> tuple[int, ...]:
        number = self.number()
        await self.send(Unsubscribe(number, filters))
        return (await self.answer(Unsuback, packet_id=number)).reasons

    async def publish(
        self,
        topic: str,
        payload: bytes = b"",
        qos: int = 0,
        *,
        retain: bool = False,
        properties: MessageProperties | None = None,
        topic_alias: int = 0,
    ) -> int:
        """To the end of the handshake: the reason of PUBACK or PUBREC (0 at QoS 0, whose answer is a PINGRESP)."""
        number = self.number() if qos else 0
        await self.send(Publish(topic, payload, qos, retain, False, number, properties, topic_alias))
        if qos == 0:
            await self.send(Pingreq())
            await self.answer(Pingresp)
            return 0
        if qos == 1:
            return (await self.answer(Puback, packet_id=number)).reason
        received = await self.answer(Pubrec, packet_id=number)
        if received.reason < FAILED:
            await self.send(Pubrel(number))
            await self.answer(Pubcomp, packet_id=number, reason=0)
        return received.reason

    async def expect_message(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **fields: object
    ) -> Publish:
        """The next packet is this message. It is not acknowledged."""
        return await self.expect_a(Publish, topic=topic, payload=payload, qos=qos, retain=retain, **fields)

    async def receive(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **fields: object
    ) -> Publish:
        """As `expect_message`, and to the end of the handshake."""
        message = await self.expect_message(topic, payload, qos, retain=retain, **fields)
        await self.acknowledge(message)
        return message

    async def acknowledge(self, message: Publish) -> None:
        number = message.packet_id
        if message.qos == 1:
            await self.send(Puback(number))
        elif message.qos == 2:
            await self.send(Pubrec(number))
            await self.answer(Pubrel, packet_id=number)
            await self.send(Pubcomp(number))

    # -- ends

    async def leave(self, reason: int = 0, session_expiry: int | None = None) -> None:
        """DISCONNECT, and until the server has closed."""
        await self.send(Disconnect(reason=reason, session_expiry=session_expiry))
        if (said := await self.closed()) is not None:
            raise self.unexpected(f"said {said} after our DISCONNECT")

    def drop(self) -> None:
        """The network goes away: no DISCONNECT."""
        self._wire.transport.abort()

    def stop_reading(self) -> None:
        """Nothing more is taken from the network, so that the server's buffers fill."""
        self._wire.transport.pause_reading()

    def read_on(self) -> None:
        self._wire.transport.resume_reading()


def shown(packet: Packet) -> str:
    """The fields that say something."""
    names = packet.__struct_fields__
    defaults = (msgspec.NODEFAULT,) * (
        len(names) - len(packet.__struct_defaults__)
    ) + packet.__struct_defaults__
    told = [
        f"{n}={getattr(packet, n)!r}" for n, d in zip(names, defaults, strict=True) if getattr(packet, n) != d
    ]
    return f"{type(packet).__name__.upper()} {' '.join(told)}"


def without_duplicate(message: Publish) -> Publish:
    return msgspec.structs.replace(message, dup=False)
