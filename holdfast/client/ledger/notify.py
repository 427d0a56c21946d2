"""A message that came over MQTT, applied if it says more than we know. It never moves the cursor.

| type | what is done |
|---|---|
| `ADD_BOOK` | a pull: who joins a book of others needs what is in it |
| `UPDATE_BOOK`, `ADD_BILL`, `UPDATE_BILL`, `IMAGE_UPLOADED` | the entity is written; a pull if what it belongs to is not here |
| `DELETE_BOOK`, `DELETE_BILL`, `IMAGE_DELETED` | it goes, with what is in it; remembered until the cursor has passed it |
"""

from __future__ import annotations

from functools import partial

import msgspec

from holdfast.client.ledger import rows
from holdfast.client.ledger.apply import apply_notified, apply_notified_deletion, at_cursor
from holdfast.client.ledger.rules import is_newer
from holdfast.client.ledger.wire import Entity, Message, decode
from holdfast.client.replica import Replica, Transaction

LIVE = {"UPDATE_BOOK": "book", "ADD_BILL": "bill", "UPDATE_BILL": "bill", "IMAGE_UPLOADED": "image"}
DEAD = {"DELETE_BOOK": "book", "DELETE_BILL": "bill", "IMAGE_DELETED": "image"}


async def take(replica: Replica, message: Message, now_ms: int) -> bool:
    """True: there is more to it than the message says, pull."""
    if (kind := LIVE.get(message.type)) is not None:
        try:
            entity = decode(kind, message.content)
        except msgspec.DecodeError:
            return True
        return not await replica.apply(
            partial(_live, kind=kind, entity=entity, timestamp=message.timestamp, now_ms=now_ms)
        )
    if (kind := DEAD.get(message.type)) is not None:
        await replica.apply(
            partial(_dead, kind=kind, identity=message.content, timestamp=message.timestamp, now_ms=now_ms)
        )
        return False
    return True


def _live(tx: Transaction, kind: str, entity: Entity, timestamp: int, now_ms: int) -> bool:
    if not _is_news(tx, kind, entity.id, timestamp):
        return True
    return apply_notified(tx, entity, timestamp, now_ms)


def _dead(tx: Transaction, kind: str, identity: str, timestamp: int, now_ms: int) -> None:
    if _is_news(tx, kind, identity, timestamp):
        apply_notified_deletion(tx, kind, identity, timestamp, now_ms)


def _is_news(tx: Transaction, kind: str, identity: str, timestamp: int) -> bool:
    at = at_cursor(tx)
    if not at.pulled_ms:
        return False  # the first pull brings it; of which history a message is cannot be told before
    row = rows.sync_of(tx, kind, identity)
    tombstone = tx.number("SELECT version FROM tombstone WHERE id = ?", identity)
    return is_newer(timestamp, at.since, row.version if row else 0, tombstone)
