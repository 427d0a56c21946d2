"""From a commit to the connections: who is concerned, and whether the message itself, a notice or nothing goes out.

A push is only a wake-up: what a connection cannot take at this moment stays in the log, and `Resend` reads it. Who
belongs to a group is remembered together with the revision of its membership; a message says under which revision
it was saved, so another process' joins and leaves are never overlooked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Sequence

from holdfast.chat import queries, rules
from holdfast.chat.flow import UNKNOWN
from holdfast.chat.frames import Frame, encode, message_frame
from holdfast.chat.gateway.connection import Connection, joined
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.receipts import Receipt, Receipts
from holdfast.chat.gateway.recent import Recent
from holdfast.chat.gateway.resend import Resend
from holdfast.chat.model import Gone, Kind, Message, Revoked, Saved
from holdfast.chat.queries import Members
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

MOST_GROUPS = 1_000
MOST_AT_ONCE = 32 * 1024  # bytes of one write: the mark is looked at between two of them
MOST_REMEMBERED = 2_000_000  # memberships, of all remembered groups together

log = get_logger("chat")


class Delivery:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        metrics: Metrics,
        online: Online,
        resend: Resend,
        receipts: Receipts,
        recent: Recent,
    ) -> None:
        self._db = db
        self._settings = settings
        self._online = online
        self._resend = resend
        self._receipts = receipts
        self._recent = recent
        self._groups: OrderedDict[int, Members] = OrderedDict()
        self._remembered = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._pushed = metrics.counter(
            "holdfast_chat_pushes", "Messages on their way to connections", "result"
        )

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- after a commit, here or in another process

    def saved(self, event: Saved) -> None:
        target = event.target
        for message in event.messages:
            self._recent.keep(message, target.kind)
        self._pass_own(event)
        if target.kind is Kind.SINGLE:
            connections = self._online.of(target.peer)
            if len(connections) != 1 or not self._pushed_at_once(connections[0], event):
                self._push(connections, Kind.SINGLE, target.peer, event.messages)
            return
        group = self._groups.get(target.conversation)
        if group is not None and group.revision == event.revision:
            self._to_group(event, group)
        else:
            self._later(self._load_and_deliver(event))

    def revoked(self, event: Revoked) -> None:
        if event.kind == Kind.SINGLE:
            self._tell_revoked(event, (event.peer,))
        else:
            self._later(self._load_and_tell(event))

    def gone(self, event: Gone) -> None:
        """Whoever left gets nothing more, at once."""
        self._forget_group(event.conversation)
        for connection in self._online.of_all(event.users):
            connection.forget(event.conversation)
            if connection.early is not None:
                connection.early.pop(event.conversation, None)

    def wake(self, connections: Iterable[Connection], conversation: int, kind: int, seq: int) -> None:
        """There is a message `seq` in the log that these may not have."""
        for connection in connections:
            if connection.early is not None:
                connection.early[conversation] = (
                    kind,
                    max(seq, connection.early.get(conversation, (0, 0))[1]),
                )
                continue
            flow = connection.flow(conversation, kind)
            if flow.wake(seq):
                self._resend.want(connection, flow)

    def pass_on(self, receipts: Sequence[Receipt]) -> None:
        """Tells the senders of messages who are connected here."""
        for receipt in receipts:
            connections = self._online.of(receipt.sender)
            if not connections:
                continue
            is_group = receipt.kind == Kind.GROUP
            frame = encode(
                Frame(
                    type="ACK",
                    ack_type=receipt.ack_type,
                    server_msg_id=str(receipt.message),
                    msg_seq=str(receipt.seq),
                    from_=str(receipt.user),
                    to=None if is_group else str(receipt.sender),
                    group_id=str(receipt.conversation) if is_group else None,
                    ts=receipt.ts,
                )
            )
            for connection in connections:
                if connection.takes_messages:  # whoever cannot be told reads the cursors over HTTP
                    connection.send(frame)

    # -- groups

    async def members(self, conversation: int) -> Members | None:
        """A group's members as they are now."""
        found = await self._db.read(queries.members, conversation)
        if found is not None:
            self._remember(conversation, found)
        return found

    def concerns(self, conversation: int, revision: int) -> bool:
        """Is a member connected here? Yes, if it is not known."""
        group = self._groups.get(conversation)
        return group is None or group.revision != revision or not group.users.isdisjoint(self._online.users)

    def mode(self, conversation: int, members: int) -> rules.Delivery:
        """How a group's messages travel at this moment."""
        group = self._groups.get(conversation)
        online = 0 if group is None else len(group.users & self._online.users)
        return rules.delivery(self._settings.group, members, online)

    def notify(
        self, connections: Iterable[Connection], conversation: int, message: int, seq: int, sender: int
    ) -> None:
        """There is something to pull."""
        frame = encode(
            Frame(
                type="GROUP_NOTIFY",
                group_id=str(conversation),
                server_msg_id=str(message) if message else None,
                msg_seq=str(seq),
                from_=str(sender) if sender else None,
            )
        )
        for connection in connections:
            if connection.takes_messages:
                connection.send(frame)
                self._pushed.add("notified")

    async def _load_and_deliver(self, event: Saved) -> None:
        conversation = event.target.conversation
        try:
            group = await self.members(conversation)
        except HoldfastError as error:
            log.warning("push_failed", chatId=str(conversation), error=error.reason, result="members_unknown")
            return  # the next look at the heads finds it
        if group is None:
            return
        if group.revision == event.revision:
            self._to_group(event, group)
        else:
            # members came or went since: who may see what is for the log's reader to say
            self.wake(self._connections(group), conversation, Kind.GROUP, event.messages[-1].seq)

    def _to_group(self, event: Saved, group: Members) -> None:
        here = group.users & self._online.users
        mode = rules.delivery(self._settings.group, len(group.users), len(here))
        if mode == "none":
            self._pushed.add("none", amount=len(event.messages))
            return
        sender = event.messages[0].sender
        connections = [connection for user in here if user != sender for connection in self._online.of(user)]
        if mode == "push":
            self._push(self._not_pushed_at_once(connections, event.messages), Kind.GROUP, 0, event.messages)
            return
        last = event.messages[-1]
        self.notify(connections, last.conversation, last.id, last.seq, last.sender)

    def _connections(self, group: Members) -> list[Connection]:
        return [*self._online.of_all(group.users & self._online.users)]

    def _remember(self, conversation: int, group: Members) -> None:
        self._forget_group(conversation)
        self._groups[conversation] = group
        self._remembered += len(group.users)
        while len(self._groups) > MOST_GROUPS or (
            self._remembered > MOST_REMEMBERED and len(self._groups) > 1
        ):
            _, oldest = self._groups.popitem(last=False)
            self._remembered -= len(oldest.users)

    def _forget_group(self, conversation: int) -> None:
        group = self._groups.pop(conversation, None)
        if group is not None:
            self._remembered -= len(group.users)

    # -- one message after another

    def _push(
        self, connections: Iterable[Connection], kind: Kind, to: int, messages: Sequence[Message]
    ) -> None:
        for message in messages:
            plain: bytes | None = None
            called = rules.called(message) if kind is Kind.GROUP else ()
            conversation, seq, server_msg_id, sender = (
                message.conversation,
                message.seq,
                message.id,
                message.sender,
            )
            for connection in connections:
                if connection.early is not None:
                    self.wake((connection,), conversation, kind, seq)
                    continue
                flow = connection.flow(conversation, kind)
                if not flow.is_next(seq) or not connection.has_room:
                    self._left_in_log(connection, seq)
                    if flow.wake(seq):
                        self._resend.want(connection, flow)
                    continue
                if connection.user_id in called:
                    data = encode(message_frame(message, to, important=True))
                else:
                    data = plain = plain or encode(message_frame(message, to))
                connection.write_message(flow, data, seq, server_msg_id, sender)
                self._pushed.add("written")

    def _pushed_at_once(self, connection: Connection, event: Saved) -> bool:
        """A run of small messages to somebody who keeps up goes out in one write."""
        messages, peer = event.messages, event.target.peer
        if connection.early is not None or len(messages) < 2:
            return False
        flow = connection.flow(event.target.conversation, Kind.SINGLE)
        room = connection.window - connection.unacknowledged
        if not flow.is_next(messages[0].seq) or not connection.takes_messages or room < len(messages):
            return False
        frames = [encode(message_frame(message, peer)) for message in messages]
        if sum(map(len, frames)) > MOST_AT_ONCE:
            return False
        connection.write_messages(flow, messages, frames)
        self._pushed.add("written", amount=len(messages))
        return True

    def _not_pushed_at_once(
        self, connections: Iterable[Connection], messages: Sequence[Message]
    ) -> Iterable[Connection]:
        """To members who keep up, what nobody is called in goes out as bytes that are made once, and in one write:
        with a thousand of them online nearly all of the cost is writing. Answers who is left."""
        if any(rules.called(message) for message in messages):
            return connections
        frames = joined([encode(message_frame(message, 0)) for message in messages])
        if len(messages) > 1 and len(frames) > MOST_AT_ONCE:
            return connections
        first, conversation, count = messages[0].seq, messages[0].conversation, len(messages)
        left, written = [], 0
        for connection in connections:
            if connection.early is None and connection.has_room_for(count):
                flow = connection.flow(conversation, Kind.GROUP)
                if flow.is_next(first):
                    connection.write_framed(flow, messages, frames)
                    written += count
                    continue
            left.append(connection)
        if written:
            self._pushed.add("written", amount=written)
        return left

    def _left_in_log(self, connection: Connection, seq: int) -> None:
        self._pushed.add("left_in_log")
        if connection.unwritable:
            connection.left_in_log += 1
            if connection.left_in_log == 1:
                log.info(
                    "push_failed",
                    ackUserId=str(connection.user_id),
                    deviceId=connection.device_id,
                    connId=connection.id,
                    msgSeq=str(seq),
                    result="above_high_mark",
                )

    def _pass_own(self, event: Saved) -> None:
        """A sender has its own messages; where nothing is open before them, its cursor goes along."""
        first, last = event.messages[0], event.messages[-1]
        conversation, kind = event.target.conversation, event.target.kind
        for connection in self._online.of(first.sender):
            if connection.early is not None:
                continue  # it will find its own messages behind its cursor, and pass them then
            flow = connection.flow(conversation, kind)
            if flow.is_next(first.seq):
                flow.passed(last.seq)
                if not flow.open:
                    self._receipts.own(kind, conversation, first.sender, last.seq)
            elif flow.sent == UNKNOWN and flow.wake(last.seq):
                self._resend.want(connection, flow)

    # -- revoked

    async def _load_and_tell(self, event: Revoked) -> None:
        group = self._groups.get(event.conversation)
        if group is None or group.revision != event.revision:
            try:
                group = await self.members(event.conversation)
            except HoldfastError as error:
                log.warning(
                    "push_failed", chatId=str(event.conversation), error=error.reason, result="revoked"
                )
                return
        if group is not None:
            self._tell_revoked(event, group.users & self._online.users)

    def _tell_revoked(self, event: Revoked, users: Iterable[int]) -> None:
        is_group = event.kind == Kind.GROUP
        frame = encode(
            Frame(
                type="MESSAGE_REVOKED",
                server_msg_id=str(event.message),
                msg_seq=str(event.seq),
                from_=str(event.sender),
                to=None if is_group else str(event.peer),
                group_id=str(event.conversation) if is_group else None,
                ts=event.revoked_ms,
            )
        )
        for connection in self._online.of_all(users):
            if connection.takes_messages and connection.user_id != event.sender:
                connection.send(frame)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
