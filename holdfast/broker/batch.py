"""What changed since the last commit, coalesced, and what waits for the next one.

A change is noted when it happens in memory; `frozen` turns all of them into rows when their commit begins. What came
and went in between leaves no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.broker.message import Message
from holdfast.broker.session.entry import Entry, State
from holdfast.broker.session.session import Session
from holdfast.broker.store.rows import Changes, Row, StoredWill, Trim, joined, key_of, packed
from holdfast.broker.topics import Grant

if TYPE_CHECKING:
    from holdfast.broker.peer import Peer

ENTRY_WEIGHT = 800
"""Bytes that a message on its way to the disk costs in memory besides its payload."""


class Batch:
    """`dirty`: there is something to write. `urgent`: something that no acknowledgement of a client can undo."""

    __slots__ = (
        "calls",
        "dirty",
        "entries",
        "gone",
        "inbound",
        "left_behind",
        "loaded",
        "messages",
        "number",
        "released",
        "removals",
        "removed_rows",
        "replies",
        "retained",
        "sessions",
        "subscriptions",
        "trims",
        "unreferenced",
        "urgent",
        "weight",
        "wills",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.dirty = False
        self.urgent = False
        self.weight = 0
        self.entries: list[Entry] = []
        self.removals: dict[Session, list[int]] = {}
        self.removed_rows: list[Row] = []
        self.released: list[Entry] = []
        self.loaded: dict[Session, int] = {}
        self.trims: dict[Session, None] = {}
        self.inbound: dict[tuple[int, int], bool] = {}
        self.sessions: dict[Session, None] = {}
        self.gone: dict[int, None] = {}
        self.left_behind: dict[int, int] = {}
        self.subscriptions: dict[tuple[int, str], Grant | None] = {}
        self.retained: dict[str, Message | None] = {}
        self.wills: dict[str, StoredWill | None] = {}
        self.unreferenced: set[int] = set()
        # who waits
        self.messages: list[Message] = []
        self.replies: list[tuple[Peer, bytes]] = []
        self.calls: list[Callable[[bool], None]] = []

    def is_empty(self) -> bool:
        """Nothing is left to write: what came has gone again."""
        return not self.urgent and all(entry.state is State.GONE for entry in self.entries)

    def committed(self) -> None:
        for entry in self.entries:
            if not entry.settled:
                entry.settled = True
                entry.message.settled()
        for message in self.messages:
            message.settled()
        for peer, data in self.replies:
            peer.send(data)
        for call in self.calls:
            call(True)

    def failed(self) -> None:
        """Nobody is acknowledged. The changes stay, and are tried again."""
        for entry in self.entries:
            if not entry.settled:
                entry.message.failed()
        for message in self.messages:
            message.failed()
        for peer, _ in self.replies:
            peer.store_failed()
        for call in self.calls:
            call(False)
        self.messages = []
        self.replies = []
        self.calls = []


class Ids:
    """Numbers for messages that lie in the store for themselves."""

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def frozen(batch: Batch, ids: Ids, now_ms: int, trims: list[Trim]) -> Changes:
    """The batch as rows."""
    messages: list[Row] = []
    retained, unretained = _retained(batch, ids, messages)
    queue, marks = _queue(batch, ids, messages)
    below, removed = _removals(batch)
    for session, number in batch.loaded.items():
        marks[session] = max(number, marks.get(session, 0))
    return Changes(
        batch=batch.number,
        now_ms=now_ms,
        gone=[(session_id,) for session_id in batch.gone],
        left_behind=list(batch.left_behind.items()),
        sessions=[_session(session) for session in batch.sessions if not session.ended],
        subscriptions=[
            (
                session_id,
                key_of(name),
                name,
                grant.qos,
                grant.no_local,
                grant.retain_as_published,
                grant.identifier,
            )
            for (session_id, name), grant in batch.subscriptions.items()
            if grant is not None and session_id not in batch.gone
        ],
        unsubscriptions=[
            (session_id, key_of(name))
            for (session_id, name), grant in batch.subscriptions.items()
            if grant is None
        ],
        messages=messages,
        queue=queue,
        released=[(entry.session.id, entry.number) for entry in batch.released],
        marks=[(sent, session.id) for session, sent in marks.items() if not session.ended],
        removed_below=below,
        removed=removed + batch.removed_rows,
        inbound=[key for key, held in batch.inbound.items() if held and key[0] not in batch.gone],
        released_inbound=[key for key, held in batch.inbound.items() if not held],
        retained=retained,
        unretained=unretained,
        wills=[_will(will) for will in batch.wills.values() if will is not None],
        unwilled=[(key_of(client_id),) for client_id, will in batch.wills.items() if will is None],
        trims=trims,
        unreferenced=[(message_id,) for message_id in batch.unreferenced],
    )


def _message(message: Message, ids: Ids, messages: list[Row]) -> None:
    message.id = ids.next()
    messages.append((message.id, message.topic, message.payload, packed(message.properties)))


def _retained(batch: Batch, ids: Ids, messages: list[Row]) -> tuple[list[Row], list[Row]]:
    kept: list[Row] = []
    cleared: list[Row] = []
    for topic, message in batch.retained.items():
        if message is None:
            cleared.append((key_of(topic),))
            continue
        if not message.id:
            _message(message, ids, messages)
        kept.append((key_of(topic), message.id, message.qos, message.stored_ms, message.expires_ms))
    return kept, cleared


def _queue(batch: Batch, ids: Ids, messages: list[Row]) -> tuple[list[Row], dict[Session, int]]:
    rows: list[Row] = []
    marks: dict[Session, int] = {}
    for entry in batch.entries:
        session, message = entry.session, entry.message
        if entry.state is State.GONE or session.ended:
            continue
        if not message.id and message.rows > 1:
            _message(message, ids, messages)
        inline = not message.id
        rows.append(
            (
                session.id,
                entry.number,
                entry.qos,
                entry.retain,
                entry.state is State.RELEASED,
                entry.replay,
                message.size,
                message.expires_ms,
                joined(entry.identifiers),
                entry.share,
                message.id or None,
                message.topic if inline else None,
                message.payload if inline else None,
                packed(message.properties) if inline else None,
            )
        )
        if session.peer is not None:
            outgoing = session.outgoing
            is_here = not outgoing.spilled or entry.number <= outgoing.loaded
            mark = entry.number if is_here else outgoing.sent
            marks[session] = max(mark, marks.get(session, 0))
    return rows, marks


def _removals(batch: Batch) -> tuple[list[Row], list[Row]]:
    """Everything below a queue's head in one statement, the few above it one by one."""
    below: list[Row] = []
    removed: list[Row] = []
    for session, numbers in batch.removals.items():
        if session.ended:  # they went to others of a shared subscription; the rest is removed in turns
            removed += [(session.id, number) for number in numbers]
            continue
        head = session.outgoing.head()
        above = [(session.id, number) for number in numbers if number >= head]
        if len(above) < len(numbers):
            below.append((session.id, head))
        removed += above
    return below, removed


def _session(session: Session) -> Row:
    return (
        session.id,
        key_of(session.client_id),
        session.client_id,
        session.name,
        session.is_server,
        session.version,
        session.expiry,
        session.created_ms,
        session.disconnected_ms,
        session.outgoing.sent,
    )


def _will(will: StoredWill) -> Row:
    return (
        key_of(will.client_id),
        will.client_id,
        will.owner,
        will.is_server,
        will.topic,
        will.payload,
        will.properties,
        will.qos,
        will.retain,
        will.delay_s,
        will.due_ms,
    )


def sessions_of(batch: Batch) -> Iterator[Session]:
    """The sessions for which a commit of this batch may open something."""
    seen: set[Session] = set()
    for entry in (*batch.entries, *batch.released):
        session = entry.session
        if session not in seen:
            seen.add(session)
            yield session
    for session in (*batch.removals, *batch.loaded):
        if session not in seen:
            seen.add(session)
            yield session
