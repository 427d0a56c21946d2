"""An open chat connection: what each frame leads to, what is sent when, and how long it goes on.

Its parts run beside each other; the first one that fails ends all, and says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
from websockets.asyncio.client import ClientConnection

from holdfast.client.account import EARLY_MS, Account
from holdfast.client.chat import outgoing, stored
from holdfast.client.chat.filling import Filling
from holdfast.client.chat.rules import ENDINGS, Fate, Pace, fate
from holdfast.client.chat.wire import FRAME, Frame, conversation_of, encode
from holdfast.client.errors import Offline, Unanswered
from holdfast.client.news import MessageArrived, News, Parked, Signal
from holdfast.client.replica import Replica, Transaction
from holdfast.client.timing import Timing, first_of

ANSWER_SECONDS = 20.0
PING_SECONDS = 25.0
SILENCE_SECONDS = 75.0
AT_ONCE = 200  # frames that share a commit
QUIET_SECONDS = 1.0
LATER_SECONDS = 3.0


class Ended(Exception):
    """The connection is over, for a reason that the server gave."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Shared(Protocol):
    """What all connections of a client have in common."""

    replica: Replica
    account: Account
    filling: Filling
    timing: Timing
    news: News
    pace: Pace


async def next_frame(socket: ClientConnection) -> Frame:
    while True:
        data = await socket.recv()
        try:
            return FRAME.decode(data)
        except msgspec.DecodeError:
            continue  # a frame of a newer server


class Session:
    """An open connection."""

    def __init__(self, link: Shared, socket: ClientConnection) -> None:
        self._socket = socket
        self._replica = link.replica
        self._account = link.account
        self._timing = link.timing
        self._news = link.news
        self._filling = link.filling
        self._pace = link.pace
        self._arrived: asyncio.Queue[Frame] = asyncio.Queue(maxsize=4 * AT_ONCE)
        self._heard = self._timing.monotonic()
        self._came = asyncio.Event()
        self._under_way: dict[str, float] = {}
        """clientMsgId → until when its answer is waited for."""
        self._not_before: dict[str, float] = {}
        """Conversation → when it is tried again."""
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Until one of its parts says that it is over."""
        parts = (self._read(), self._store(), self._send(), self._catch_up(), self._stay())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        # a reason that the server gave says more than the broken connection behind it
        failures = [result for result in results if isinstance(result, Exception)]
        failures.sort(key=lambda failure: not isinstance(failure, Ended))
        if failures:
            raise failures[0]

    async def _read(self) -> None:
        while True:
            frame = await next_frame(self._socket)
            self._heard = self._timing.monotonic()
            match frame.type:
                case "PING":
                    await self._write(Frame(type="PONG"))
                case "PONG":
                    continue
                case "AUTH_FAIL":
                    raise Ended(frame.reason)
                case "ERROR" if frame.reason in ENDINGS:
                    # at once: the connection is closed behind it, and that would be all that is heard of it
                    raise Ended(frame.reason)
                case _:
                    await self._arrived.put(frame)

    async def _write(self, frame: Frame) -> None:
        await self._socket.send(encode(frame).decode())

    # -- what came

    async def _store(self) -> None:
        """In their order, many in one commit; receipts leave after it."""
        while True:
            frames = [await self._arrived.get()]
            while len(frames) < AT_ONCE and not self._arrived.empty():
                frames.append(self._arrived.get_nowait())
            me = self._account.user_id
            fresh = await self._replica.write(partial(_taken, frames=frames, me=me))
            self._came.set()
            for frame in fresh:
                self._news.tell(
                    MessageArrived(conversation_of(frame, me), frame.server_msg_id, frame.from_, frame.body)
                )
            for frame in frames:
                await self._heed(frame)
            await self._tell_receipts()

    async def _heed(self, frame: Frame) -> None:
        match frame.type:
            case "ACK" if frame.ack_type.lower() == "saved":
                self._done(frame.client_msg_id)
            case "ERROR" if frame.client_msg_id:
                await self._message_refused(frame)
            case "ERROR" if frame.server_msg_id and fate(frame.reason) is Fate.REFUSED:
                await self._replica.write(partial(_no_revocation, server_msg_id=frame.server_msg_id))
            case kind if kind.startswith("CALL_"):
                self._news.tell(Signal(kind, encode(frame)))

    async def _message_refused(self, frame: Frame) -> None:
        if fate(frame.reason) is Fate.LATER:
            conversation = await self._replica.read(
                lambda view: view.value(
                    "SELECT conversation FROM chat_outbox WHERE client_msg_id = ?", frame.client_msg_id
                )
            )
            delay = LATER_SECONDS * (1 + self._timing.draw())
            self._not_before[str(conversation)] = self._timing.monotonic() + delay
        else:
            await self._replica.write(
                partial(outgoing.refused, client_msg_id=frame.client_msg_id, reason=frame.reason)
            )
            self._news.tell(Parked("chat", frame.client_msg_id, frame.reason, frame.reason))
        self._done(frame.client_msg_id)

    def _done(self, client_msg_id: str) -> None:
        self._under_way.pop(client_msg_id, None)
        self._answered.set()

    async def _tell_receipts(self) -> None:
        """Only what is stored, and only as far as nothing is missing."""
        for read in (False, True):
            due = await self._replica.read(
                partial(outgoing.due_receipts, me=self._account.user_id, read=read)
            )
            for receipt in due:
                kind = "read" if read else "delivered"
                await self._write(Frame(type="ACK", ack_type=kind, server_msg_id=receipt.server_msg_id))
            if due:
                await self._replica.apply(partial(outgoing.told, receipts=due, read=read))

    # -- what goes

    async def _send(self) -> None:
        changed = self._replica.watch((outgoing.OUTBOX,))
        try:
            while True:
                changed.clear()
                self._answered.clear()
                await self._send_what_can_go()
                await self._tell_receipts()
                await self._revoke()
                await self._rest(changed)
        finally:
            self._replica.unwatch(changed)

    async def _send_what_can_go(self) -> None:
        for message in await self._replica.read(outgoing.first_of_each):
            now = self._timing.monotonic()
            if message.client_msg_id in self._under_way:
                if now > self._under_way[message.client_msg_id]:
                    raise Unanswered("chat: a message was not acknowledged in time")
                continue
            if now < self._not_before.get(message.conversation, 0.0):
                continue
            while (wait := self._pace.wait(self._timing.monotonic())) > 0:
                await self._timing.sleep(wait)
            self._under_way[message.client_msg_id] = self._timing.monotonic() + ANSWER_SECONDS
            await self._write(_framed(message))

    async def _rest(self, changed: asyncio.Event) -> None:
        """Until there is more to send, an answer came, or something is due."""
        waits = [asyncio.ensure_future(event.wait()) for event in (changed, self._answered)]
        waits.append(asyncio.ensure_future(self._timing.sleep(QUIET_SECONDS)))  # type: ignore[arg-type]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _revoke(self) -> None:
        found = await self._replica.read(lambda view: view.rows("SELECT server_msg_id FROM chat_revocation"))
        for server_msg_id in (str(row[0]) for row in found):
            key = f"revoke {server_msg_id}"
            if self._timing.monotonic() > self._under_way.get(key, 0.0):
                self._under_way[key] = self._timing.monotonic() + ANSWER_SECONDS
                await self._write(Frame(type="MESSAGE_REVOKE", server_msg_id=server_msg_id))

    # -- what is missing, and how long it goes on

    async def _catch_up(self) -> None:
        """When the server's resend has come to rest, whatever it did not bring; later, each gap that stays open."""
        await self._until_quiet()
        await self._over_http(self._filling.catch_up)
        while True:
            await self._came.wait()
            await self._until_quiet()
            if await self._replica.read(stored.behind):
                await self._over_http(self._filling.fill)
            await self._over_http(self._filling.name_unnamed)

    async def _over_http(self, read: Callable[[], Awaitable[None]]) -> None:
        """HTTP may be away while this connection stands: then again, when the gate lets it through."""
        while True:
            try:
                await read()
            except Offline as error:
                self._news.trouble(error)
                continue
            await self._tell_receipts()
            return

    async def _until_quiet(self) -> None:
        while True:
            self._came.clear()
            await first_of(self._came, self._timing.sleep(QUIET_SECONDS))
            if not self._came.is_set():
                return

    async def _stay(self) -> None:
        """Pings, and another token before this one ends."""
        while True:
            expires_ms = self._account.expires_ms
            left = (expires_ms - EARLY_MS - self._timing.now_ms()) / 1000
            await self._timing.sleep(max(0.1, min(PING_SECONDS, left)))
            if self._timing.monotonic() - self._heard > SILENCE_SECONDS:
                raise Unanswered("chat: the server is silent")
            if self._timing.now_ms() >= expires_ms - EARLY_MS:
                token = await self._account.token()
                await self._write(Frame(type="REAUTH", token=token))
            await self._write(Frame(type="PING"))


def _framed(message: outgoing.Outgoing) -> Frame:
    kind, _, other = message.conversation.partition(":")
    return Frame(
        type="GROUP_CHAT" if kind == "g" else "SINGLE_CHAT",
        client_msg_id=message.client_msg_id,
        to=other if kind == "u" else None,
        group_id=other if kind == "g" else None,
        msg_type=message.msg_type,
        body=message.body,
        mentions=list(message.mentions) or None,
        reply_to_server_msg_id=message.reply_to,
        important=message.important or None,
    )


def _taken(tx: Transaction, frames: list[Frame], me: str) -> list[Frame]:
    """Everything that arrived, in its order, in one transaction; answers the messages that are new."""
    fresh: list[Frame] = []
    for frame in frames:
        match frame.type:
            case "SINGLE_CHAT" | "GROUP_CHAT":
                fresh += stored.stored(tx, [frame], me)
            case "GROUP_NOTIFY":
                stored.heard_of(tx, f"g:{frame.group_id}", frame.seq)
            case "MESSAGE_REVOKED":
                stored.revoked(tx, frame.server_msg_id)
            case "ACK":
                _acknowledged(tx, frame, me)
    return fresh


def _acknowledged(tx: Transaction, frame: Frame, me: str) -> None:
    match frame.ack_type.lower():
        case "saved":
            outgoing.saved(tx, frame, me)
        case "revoked":
            stored.revoked(tx, frame.server_msg_id)
        case "delivered" | "read" | "ack_read" if frame.group_id is None and frame.from_:
            stored.they_have(tx, f"u:{frame.from_}", frame.seq, read=frame.ack_type.lower() != "delivered")


def _no_revocation(tx: Transaction, server_msg_id: str) -> None:
    """Too late, or not ours: it stays as it is."""
    tx.execute("DELETE FROM chat_revocation WHERE server_msg_id = ?", server_msg_id)
    tx.changed(stored.CHAT)
