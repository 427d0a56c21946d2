"""The messages of both MQTT documents, in and out. Pure: bytes to values, values to bytes.

{"id": xid, "type": "ADD_BILL", "book_id": …, "content": "<entity as JSON; for a deletion the id>", "timestamp": version}
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.errors import HoldfastError, InvalidField, Malformed
from holdfast.http.body import read_json
from holdfast.ids import is_xid
from holdfast.ledger.actions.deed import NewsType
from holdfast.ledger.model import Entity, Kind, Shown, as_json

Verb = Literal["add", "update", "delete"]
TYPES: dict[str, tuple[Kind, Verb]] = {
    "ADD_BOOK": ("book", "add"),
    "UPDATE_BOOK": ("book", "update"),
    "DELETE_BOOK": ("book", "delete"),
    "ADD_BILL": ("bill", "add"),
    "UPDATE_BILL": ("bill", "update"),
    "DELETE_BILL": ("bill", "delete"),
    "IMAGE_UPLOADED": ("image", "add"),
    "IMAGE_DELETED": ("image", "delete"),
}
LONGEST_ID = 64
_ID = re.compile(rb'"id"\s*:\s*"([!#-\[\]-~]{1,64})"')
_TYPE = re.compile(rb'"type"\s*:\s*"([A-Z_]{1,32})"')


class Message(Struct, frozen=True, omit_defaults=True):
    """What members are sent."""

    id: str
    type: str
    book_id: str
    content: str
    timestamp: int
    origin: str | None = None
    """The author's device, for the author's other ones."""
    sender_id: str | None = None
    """The author; on the topic of a book alone."""


class Sent(Struct, frozen=True):
    """What a client sent. Its `timestamp` orders nothing, its `receiver_ids` nobody needs."""

    id: str
    type: str
    book_id: str
    content: msgspec.Raw
    sender_id: str | None = None


class Accepted(Struct, frozen=True):
    ok: Literal[True]
    id: str = msgspec.field(name="_id")
    version: int | None


class RefusedContent(Struct, frozen=True):
    ok: Literal[False]
    code: int
    reason: str
    message: str


class _Named(Struct, frozen=True):
    """Enough of an entity to know which one it is."""

    id: str | None = msgspec.field(name="_id", default=None)
    image_id: str | None = None
    bill_id: str | None = None


def read(payload: bytes) -> Sent:
    """Raises an error of the 400 family."""
    sent = read_json(payload, Sent)
    if not 1 <= len(sent.id) <= LONGEST_ID or not sent.id.isprintable():
        raise InvalidField("id", f"must have 1 to {LONGEST_ID} printable characters")
    return sent


def readable(payload: bytes) -> tuple[str, str] | None:
    """Of a message that is malformed: its id and its type, if its id can be made out."""
    id_ = _ID.search(payload)
    if id_ is None:
        return None
    kind = _TYPE.search(payload)
    return id_[1].decode("ascii"), "MESSAGE" if kind is None else kind[1].decode("ascii")


def entity_in(sent: Sent) -> bytes:
    """The entity's JSON: the content is a string that holds it; the object itself is accepted too."""
    text = _text(sent)
    if text is None:
        return bytes(sent.content)
    return text.encode("utf-8", "surrogatepass")


def id_in(sent: Sent) -> str:
    """Which entity: the content is its id, or the entity."""
    text = _text(sent)
    if text is not None and is_xid(text):
        return text
    named = _named(sent)
    found = named.id or named.image_id
    if found is None or not is_xid(found):
        raise InvalidField("content", "must be an id, or an entity with its _id")
    return found


def image_in(sent: Sent) -> tuple[str, str]:
    """An image's id, and its bill's."""
    named = _named(sent)
    image_id = named.image_id or named.id
    if image_id is None or named.bill_id is None:
        raise InvalidField("content", "must have image_id and bill_id")
    return image_id, named.bill_id


def _text(sent: Sent) -> str | None:
    raw = bytes(sent.content)
    return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else None


def _named(sent: Sent) -> _Named:
    try:
        return read_json(entity_in(sent), _Named)
    except (InvalidField, Malformed):
        raise InvalidField("content", "must be an id, or an entity as JSON") from None


def content_of(about: Entity | str) -> str:
    """As it stands in a message: JSON, or the id of what is gone."""
    return about if isinstance(about, str) else as_json(about).decode()


def spelled(
    id_: str,
    type_: NewsType,
    book_id: str,
    content: str,
    version: int,
    *,
    origin: str | None = None,
    sender: str | None = None,
) -> bytes:
    return as_json(Message(id_, type_, book_id, content, version, origin, sender))


def ack(id_: str, type_: str, book_id: str, outcome: Shown | HoldfastError, now_ms: int) -> bytes:
    """The answer to a message: applied, or why not."""
    content: Accepted | RefusedContent
    timestamp = now_ms
    if isinstance(outcome, HoldfastError):
        content = RefusedContent(False, outcome.code(), outcome.reason, outcome.message)
    else:
        content = Accepted(True, outcome.id, outcome.version)
        timestamp = outcome.version or now_ms
    return as_json(Message(id_, f"{type_}_ACK", book_id, as_json(content).decode(), timestamp))
