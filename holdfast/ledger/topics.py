"""The ledger's topics, and what a user may do on them.

| topic | publish | subscribe, receive |
|---|---|---|
| `heji/notify/{own id}/#` | nobody | yes |
| `heji/down/{own id}/#` | nobody | yes |
| `heji/up/{own id}/{book, bill, image}` | yes | nobody |
| `heji/book/{book}/sync`, with `ledger.legacy_book_topic` | members | members |
| anything else under `heji/` | nobody | nobody |
"""

from __future__ import annotations

from holdfast.ids import MAX_ID, is_xid
from holdfast.ledger.members import BookMembers
from holdfast.ledger.model import NUMBERS, Kind
from holdfast.messenger import Ruling

ROOT = "heji"
UPLINK = "heji/up/#"
BOOK_TOPICS = "heji/book/+/sync"


def notify_topic(user_id: int, kind: Kind) -> str:
    return f"heji/notify/{user_id}/{kind}"


def down_topic(user_id: int, kind: Kind) -> str:
    return f"heji/down/{user_id}/{kind}"


def book_topic(book_id: str) -> str:
    return f"heji/book/{book_id}/sync"


def book_of(topic: str) -> str | None:
    """The book whose topic this is."""
    match topic.split("/"):
        case ["heji", "book", book_id, "sync"] if is_xid(book_id):
            return book_id
        case _:
            return None


def author_of(topic: str) -> tuple[int, Kind] | None:
    """Whose uplink this is, and which entity it is about."""
    match topic.split("/"):
        case ["heji", "up", author, kind] if author.isascii() and author.isdigit() and len(author) <= 19:
            user_id = int(author)
            for name in NUMBERS:
                if kind == name and 0 < user_id <= MAX_ID and str(user_id) == author:
                    return user_id, name
    return None


class LedgerTopics:
    """Implements `messenger.TopicRules`. `members`: of books, while the topic of a book is served."""

    def __init__(self, members: BookMembers | None) -> None:
        self._members = members

    def may_subscribe(self, user_id: int, topic_filter: str) -> Ruling:
        if not is_ours(topic_filter):
            return None
        if topic_filter.startswith((f"heji/notify/{user_id}/", f"heji/down/{user_id}/")):
            return True
        return self._is_member(user_id, topic_filter)

    def may_publish(self, user_id: int, topic: str) -> Ruling:
        if not is_ours(topic):
            return None
        if author_of(topic) is not None and topic.startswith(f"heji/up/{user_id}/"):
            return True
        return self._is_member(user_id, topic)

    def may_receive(self, user_id: int, topic: str) -> bool | None:
        if not is_ours(topic):
            return None
        if topic.startswith((f"heji/notify/{user_id}/", f"heji/down/{user_id}/")):
            return True
        book_id = book_of(topic) if self._members is not None else None
        return book_id is not None and self._members is not None and self._members.known(user_id, book_id)

    def _is_member(self, user_id: int, topic: str) -> Ruling:
        book_id = book_of(topic)
        if book_id is None or self._members is None:
            return False
        return self._members.ask(user_id, book_id)


def is_ours(topic: str) -> bool:
    return topic.startswith("heji/") or topic == ROOT
