"""The rows of the broker's tables as plain values, and how names and properties are spelled in them."""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.broker.packets.message import MESSAGE_PROPERTIES, MessageProperties
from holdfast.broker.packets.wire import Reader
from holdfast.store.statement import Value

Row = tuple[Value, ...]

LONGEST_KEY = 255


def key_of(name: str) -> str:
    """A name as a key: itself, or its beginning and its hash when it is long."""
    if len(name) <= LONGEST_KEY:
        return name
    return name[:LONGEST_KEY] + "\x1f" + hashlib.sha256(name.encode()).hexdigest()


def packed(properties: MessageProperties | None) -> bytes | None:
    return None if properties is None else MESSAGE_PROPERTIES.write(properties)


def unpacked(raw: bytes | None) -> MessageProperties | None:
    return None if raw is None else MessageProperties(**MESSAGE_PROPERTIES.read(Reader(bytes(raw))))


def joined(identifiers: tuple[int, ...]) -> str | None:
    return ",".join(map(str, identifiers)) if identifiers else None


def split(identifiers: str | None) -> tuple[int, ...]:
    return tuple(map(int, identifiers.split(","))) if identifiers else ()


class StoredSession(msgspec.Struct, frozen=True):
    id: int
    client_id: str
    owner: str
    is_server: bool
    version: int
    expiry_s: int | None
    """None: never."""
    created_ms: int
    disconnected_ms: int | None
    """None while it was connected."""
    sent: int
    """Messages up to this number may have been sent."""


class StoredSubscription(msgspec.Struct, frozen=True):
    session_id: int
    filter: str
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int


class StoredMessage(msgspec.Struct, frozen=True):
    """A message in a queue."""

    number: int
    qos: int
    retain: bool
    released: bool
    replay: bool
    expires_ms: int | None
    identifiers: str | None
    share: str | None
    message_id: int | None
    topic: str
    payload: bytes
    properties: bytes | None


class StoredRetained(msgspec.Struct, frozen=True):
    message_id: int
    qos: int
    stored_ms: int
    expires_ms: int | None
    topic: str
    payload: bytes
    properties: bytes | None


class StoredWill(msgspec.Struct, frozen=True):
    client_id: str
    owner: str
    is_server: bool
    topic: str
    payload: bytes
    properties: bytes | None
    qos: int
    retain: bool
    delay_s: int
    due_ms: int | None


class Length(msgspec.Struct, frozen=True):
    """How much waits for a session; `count` and `size` without the replayed messages, which no cap counts."""

    session_id: int
    count: int
    size: int
    replayed: int
    last: int


class Trim(msgspec.Struct, frozen=True):
    """Take the oldest messages above `sent` out of a queue, until it is shorter by this much."""

    session_id: int
    sent: int
    count: int
    size: int


class Trimmed(msgspec.Struct, frozen=True):
    session_id: int
    count: int
    size: int
    is_rest: bool = False
    """What is left, not what was taken: nobody knows any more what that was."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as rows: everything that changed since the last one, each row repeatable."""

    batch: int
    now_ms: int
    gone: list[Row]
    left_behind: list[Row]
    """Sessions that ended while messages waited for them."""
    sessions: list[Row]
    subscriptions: list[Row]
    unsubscriptions: list[Row]
    messages: list[Row]
    queue: list[Row]
    released: list[Row]
    marks: list[Row]
    removed_below: list[Row]
    removed: list[Row]
    inbound: list[Row]
    released_inbound: list[Row]
    retained: list[Row]
    unretained: list[Row]
    wills: list[Row]
    unwilled: list[Row]
    trims: list[Trim]
    unreferenced: list[Row]
