"""One MQTT connection as this client needs it: 5.0, QoS 1 both ways, acknowledged when it has been dealt with.

The packets are the broker's own codec, which is pure and needs nothing but msgspec: `pip install holdfast` brings no
second MQTT library, no thread of its own, and an acknowledgement leaves exactly when the replica has committed.
Reconnecting is the caller's.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from urllib.parse import urlsplit

from holdfast.broker.packets import (
    PINGREQ_FRAME,
    V5,
    Connack,
    Connect,
    Decoder,
    Disconnect,
    Packet,
    ProtocolError,
    Puback,
    Publish,
    Reason,
    Side,
    Suback,
    Subscribe,
    Subscription,
    encode,
)
from holdfast.client.errors import LoginNeeded, Unanswered
from holdfast.client.timing import Timing, within

KEEP_ALIVE = 30
ANSWER_SECONDS = 20.0
GOODBYE_SECONDS = 1.0
RECEIVE_MAXIMUM = 256
READ_BYTES = 65_536
NOT_LOGGED_IN = (Reason.BAD_USER_NAME_OR_PASSWORD, Reason.NOT_AUTHORIZED)

Handler = Callable[[Publish], Awaitable[None]]


class Place:
    """Where a broker is: `host:port`, `mqtt://host:port` or `mqtts://host:port`."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address if "://" in address else f"mqtt://{address}")
        self.tls = parts.scheme == "mqtts"
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or (8883 if self.tls else 1883)


class MqttLink:
    """Open from `open` until `ended` is set."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, timing: Timing
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._timing = timing
        self._decoder = Decoder(Side.CLIENT, V5)
        self._ids = count()
        self._answers: dict[int, asyncio.Future[Packet]] = {}
        self._arrived: asyncio.Queue[Publish] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._heard = timing.monotonic()
        self.ended = asyncio.Event()
        self.why: Exception | None = None
        self.session_present = False

    @classmethod
    async def open(
        cls,
        place: Place,
        *,
        client_id: str,
        username: str,
        password: str,
        session_expiry: int,
        handler: Handler,
        timing: Timing,
    ) -> MqttLink:
        """`session_expiry` 0: a clean session; otherwise the seconds for which the broker keeps one for us."""
        tls = ssl.create_default_context() if place.tls else None
        connecting = asyncio.create_task(asyncio.open_connection(place.host, place.port, ssl=tls))
        try:
            streams = await within(timing, ANSWER_SECONDS, connecting)
        except BaseException as error:
            connecting.cancel()
            connecting.add_done_callback(_hang_up)
            if isinstance(error, OSError):
                raise Unanswered(f"MQTT: {error}") from error
            raise
        link = cls(*streams, handler, timing)
        hello = Connect(
            client_id=client_id,
            clean_start=session_expiry == 0,
            keep_alive=KEEP_ALIVE,
            username=username,
            password=password.encode(),
            session_expiry=session_expiry,
            receive_maximum=RECEIVE_MAXIMUM,
        )
        try:
            await within(timing, ANSWER_SECONDS, link._introduce(hello))
        except BaseException:
            await link.close()
            raise
        return link

    async def _introduce(self, hello: Connect) -> None:
        self._writer.write(encode(hello, V5))
        packets: Sequence[Packet] = ()
        while not packets:
            packets = self._decoded(await self._read())
        answer, *more = packets
        if not isinstance(answer, Connack):
            raise Unanswered("MQTT: the broker did not answer CONNECT")
        if answer.reason in NOT_LOGGED_IN:
            raise LoginNeeded("the MQTT broker does not take this session")
        if answer.reason != Reason.SUCCESS:
            raise Unanswered(f"MQTT: refused with 0x{answer.reason:02X} {answer.reason_string or ''}".strip())
        self.session_present = answer.session_present
        for packet in more:
            self._take(packet)
        self._tasks = [
            asyncio.create_task(self._read_on(), name="holdfast mqtt reads"),
            asyncio.create_task(self._handle(), name="holdfast mqtt handles"),
            asyncio.create_task(self._ping(), name="holdfast mqtt pings"),
        ]

    # -- what the caller does

    async def subscribe(self, *filters: str) -> None:
        """Raises when the broker grants one of them not."""
        packet_id, answer = self._expect()
        wanted = tuple(Subscription(name, 1) for name in filters)
        self._send(encode(Subscribe(packet_id, wanted), V5))
        granted = await self._answered(packet_id, answer)
        if not isinstance(granted, Suback) or any(reason >= Reason.UNSPECIFIED for reason in granted.reasons):
            raise Unanswered("MQTT: the broker does not grant our subscriptions")

    async def publish(self, topic: str, payload: bytes) -> int:
        """Until the broker has acknowledged it; the reason, below 0x80 when it took it."""
        packet_id, answer = self._expect()
        self._send(encode(Publish(topic, payload, qos=1, packet_id=packet_id), V5))
        acknowledged = await self._answered(packet_id, answer)
        return acknowledged.reason if isinstance(acknowledged, Puback) else Reason.UNSPECIFIED

    async def close(self) -> None:
        """Says goodbye if it still can; harmless again."""
        if not self.ended.is_set():
            self._send(encode(Disconnect(), V5))
            self._end(Unanswered("MQTT: closed"))
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._writer.close()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                with suppress(OSError):
                    await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()

    # -- inside

    def _expect(self) -> tuple[int, asyncio.Future[Packet]]:
        if self.ended.is_set():
            raise Unanswered("MQTT: the connection has ended")
        packet_id = next(
            identity for number in self._ids if (identity := number % 65_535 + 1) not in self._answers
        )
        answer: asyncio.Future[Packet] = asyncio.get_running_loop().create_future()
        self._answers[packet_id] = answer
        return packet_id, answer

    async def _answered(self, packet_id: int, answer: asyncio.Future[Packet]) -> Packet:
        try:
            return await within(self._timing, ANSWER_SECONDS, answer)
        finally:
            self._answers.pop(packet_id, None)

    def _send(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError as error:
            raise Unanswered(f"MQTT: {error}") from error
        if not data:
            raise Unanswered("MQTT: the broker closed the connection")
        self._heard = self._timing.monotonic()
        return data

    def _decoded(self, data: bytes) -> Sequence[Packet]:
        try:
            return self._decoder.receive_data(data)
        except ProtocolError as error:
            raise Unanswered(f"MQTT: {error}") from error

    async def _read_on(self) -> None:
        try:
            while True:
                for packet in self._decoded(await self._read()):
                    self._take(packet)
        except Unanswered as error:
            self._end(error)

    def _take(self, packet: Packet) -> None:
        match packet:
            case Publish():
                self._arrived.put_nowait(packet)
            case Puback(packet_id) | Suback(packet_id):
                if (answer := self._answers.get(packet_id)) is not None and not answer.done():
                    answer.set_result(packet)
            case Disconnect():
                self._end(Unanswered(f"MQTT: ended by the broker with 0x{packet.reason:02X}"))

    async def _handle(self) -> None:
        """In their order; an acknowledgement leaves when the message has been dealt with."""
        try:
            while True:
                message = await self._arrived.get()
                await self._handler(message)
                if message.qos:
                    self._send(encode(Puback(message.packet_id), V5))
        except Exception as error:  # noqa: BLE001 - the message stays unacknowledged, and comes again
            self._end(error)

    async def _ping(self) -> None:
        while True:
            await self._timing.sleep(KEEP_ALIVE / 2)
            if self._timing.monotonic() - self._heard > KEEP_ALIVE * 1.5:
                self._end(Unanswered("MQTT: the broker is silent"))
                return
            self._send(PINGREQ_FRAME)

    def _end(self, why: Exception) -> None:
        if self.ended.is_set():
            return
        self.why = why
        self.ended.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Unanswered(str(why)))
                answer.exception()  # whoever waits gets it; nobody has to
        self._writer.close()


def _hang_up(connecting: asyncio.Task[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    """It was connected in the very moment in which nobody wanted it any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result()[1].close()
