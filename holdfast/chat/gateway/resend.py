"""Brings connections up to their logs: pages of 200, for each conversation in turn, until nothing is left.

A connection that has something to read stands in one line; a few workers take them in turn, one page of one of its
conversations each time, so that neither a busy conversation nor a busy user starves another, and so that memory
holds a few pages and no more, however many come back at once. Who has no room (write buffer, unacknowledged window)
is parked, and comes back with the next room. Acknowledgements alone never hold a backlog up: after `PATIENCE` a
parked window lets one more page through.
"""

from __future__ import annotations

import asyncio
from collections import deque

from holdfast.chat import queries
from holdfast.chat.flow import UNKNOWN, Flow
from holdfast.chat.frames import asks_for, encode, message_frame
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.receipts import Receipts
from holdfast.chat.gateway.recent import Recent
from holdfast.chat.model import Kind
from holdfast.chat.queries import PAGE, Page
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

WORKERS = 4
PATIENCE = 2.0  # seconds without an acknowledgement after which a full window lets one page through
RETRY_SECONDS = 0.5  # after a read that failed

log = get_logger("chat")


class Resend:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        metrics: Metrics,
        instance: str,
        receipts: Receipts,
        recent: Recent,
    ) -> None:
        self._db = db
        self._settings = settings
        self._instance = instance
        self._receipts = receipts
        self._recent = recent
        self._line: deque[Connection] = deque()
        self._someone = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []
        self._pages = metrics.counter("holdfast_chat_resend_pages", "Pages of messages read for connections")
        self._messages = metrics.counter(
            "holdfast_chat_resent", "Messages written from the log rather than fresh from their commit"
        )
        metrics.gauge(
            "holdfast_chat_resend_waiting", "Connections that wait for a page", lambda: len(self._line)
        )

    def start(self) -> None:
        self._workers = [
            asyncio.create_task(self._work(), name=f"chat: resend {number}") for number in range(WORKERS)
        ]

    async def stop(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    def want(self, connection: Connection, flow: Flow) -> None:
        """There is something to read for this flow."""
        if flow.waiting or flow.reading or not connection.is_open:
            return
        flow.waiting = True
        if connection.waiting is None:
            connection.waiting = deque()
        connection.waiting.append(flow)
        if not connection.parked:
            self._line_up(connection)

    def room(self, connection: Connection) -> None:
        """A connection can take messages again."""
        if connection.parked:
            connection.parked = False
            if connection.patience is not None:
                connection.patience.cancel()
                connection.patience = None
            self._line_up(connection)

    def _line_up(self, connection: Connection) -> None:
        if not connection.in_line and connection.waiting and connection.is_open:
            connection.in_line = True
            self._line.append(connection)
            self._someone.set()

    # -- the workers

    async def _work(self) -> None:
        while True:
            while not self._line:
                self._someone.clear()
                await self._someone.wait()
            connection = self._line.popleft()
            # `in_line` stays set meanwhile: one worker at a time, so that a conversation's pages come in order
            try:
                await self._serve(connection)
            except HoldfastError as error:
                log.warning("resend_failed", error=error.reason, connId=connection.id)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                # whatever it was, the other connections must not wait for ever
                log.exception("resend_failed", connId=connection.id)
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                connection.in_line = False
            if not connection.parked:
                self._line_up(connection)

    async def _serve(self, connection: Connection) -> None:
        if not connection.is_open or not connection.waiting:
            return
        if not connection.has_room:
            self._park(connection)
            return
        flow = connection.waiting.popleft()
        flow.waiting = False
        if not _concerns(connection, flow):
            return
        flow.reading = True
        wanted = flow.wanted
        try:
            page = await self._db.read(
                queries.page, flow.conversation, connection.user_id, max(flow.sent, 0), PAGE
            )
        except BaseException:
            flow.reading = False
            self.want(connection, flow)
            raise
        flow.reading = False
        if not _concerns(connection, flow):
            return
        if page is None:
            connection.forget(flow.conversation)
            return
        self._write(connection, flow, page)
        if not page.messages:
            flow.rest(wanted)
        if flow.needs_a_read:
            self.want(connection, flow)  # behind the connection's other conversations

    def _write(self, connection: Connection, flow: Flow, page: Page) -> None:
        if flow.sent == UNKNOWN or page.above > flow.sent:
            flow.begin(page.above)
        user, is_single = connection.user_id, flow.kind == Kind.SINGLE
        before, written, own = flow.sent, 0, False
        if page.messages:
            flow.wake(page.messages[-1].seq if len(page.messages) < PAGE else page.head)
        for message in page.messages:
            if message.seq <= flow.sent:
                continue
            if message.sender == user:
                flow.passed(message.seq)
                own = True
                continue
            if not connection.has_room:
                break
            frame = message_frame(
                message, user if is_single else 0, important=not is_single and asks_for(message, user)
            )
            self._recent.keep(message, flow.kind)
            connection.write_message(flow, encode(frame), message.seq, message.id, message.sender)
            written += 1
        if own and not flow.open:
            self._receipts.own(flow.kind, flow.conversation, user, flow.sent)
        self._pages.add()
        if written:
            self._messages.add(amount=written)
            log.info(
                "resend",
                chatType="single" if is_single else "group",
                chatId=str(flow.conversation),
                ackUserId=str(user),
                deviceId=connection.device_id,
                connId=connection.id,
                instanceId=self._instance,
                prevCursor=str(before),
                newCursor=str(flow.sent),
                result="written",
                messages=written,
            )

    # -- room

    def _park(self, connection: Connection) -> None:
        connection.parked = True
        if connection.takes_messages and connection.patience is None:
            loop = asyncio.get_running_loop()
            connection.patience = loop.call_later(PATIENCE, self._let_one_through, connection)

    def _let_one_through(self, connection: Connection) -> None:
        connection.patience = None
        connection.window = connection.unacknowledged + PAGE
        self.room(connection)


def _concerns(connection: Connection, flow: Flow) -> bool:
    """Not when the connection has closed, or its user has left the conversation."""
    return connection.is_open and connection.flows.get(flow.conversation) is flow
