"""What `holdfast check` proves of this room: generators of sentences, one per problem.

| what | why |
|---|---|
| a living book has its open space, a dead one a closed one, and its creator is in it | nobody else can delete it |
| every bill has its book, every image its bill, in the same book | a page carries parents along |
| a living image is listed by its living bill, once, and nothing else is | the list is kept beside the rows |
| money can be read, and a bill is listed where its time says | totals; newest first |
| a revision's time is not before its creation | it names the revision |
| a code leads to a living book, a message that was taken has its answer | |

Positions, heads and checksums are the feed's, with `hashes`; files are the blobs', with `references`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation

import msgspec

from holdfast.errors import InvalidField
from holdfast.ledger.actions.revisions import revision
from holdfast.ledger.model import BILL, BOOK, IMAGE
from holdfast.ledger.rules import checked_money, moment_ms
from holdfast.store import Query, Snapshot

PAGE = 1_000
MOST = 100  # problems of one kind; nobody reads more

_REVISIONS = (
    (BOOK, Query(tuple[str, int], "SELECT id, upd_ms FROM ledger_book WHERE space = :space AND deleted_ms IS NULL")),
    (BILL, Query(tuple[str, int], "SELECT id, upd_ms FROM ledger_bill WHERE space = :space AND deleted_ms IS NULL")),
    (IMAGE, Query(tuple[str, int], "SELECT id, upd_ms FROM ledger_image WHERE space = :space AND deleted_ms IS NULL")),
)  # fmt: skip
_REFERENCES = Query(
    tuple[str, int], "SELECT sha256, count(*) FROM ledger_image WHERE deleted_ms IS NULL GROUP BY sha256"
)

_BOOKS_WITHOUT_SPACE = Query(
    str,
    """
    SELECT b.id FROM ledger_book b LEFT JOIN feed_space s ON s.space = b.space
    WHERE b.deleted_ms IS NULL AND (s.space IS NULL OR s.closed_ms IS NOT NULL) LIMIT :most
    """,
)
_DEAD_BUT_OPEN = Query(
    str,
    """
    SELECT b.id FROM ledger_book b JOIN feed_space s ON s.space = b.space
    WHERE b.deleted_ms IS NOT NULL AND s.closed_ms IS NULL LIMIT :most
    """,
)
_SPACES_WITHOUT_BOOK = Query(
    str,
    """
    SELECT CAST(s.space AS TEXT) FROM feed_space s WHERE s.closed_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM ledger_book b WHERE b.space = s.space) LIMIT :most
    """,
)
_CREATORS_OUTSIDE = Query(
    str,
    """
    SELECT b.id FROM ledger_book b WHERE b.deleted_ms IS NULL AND NOT EXISTS
        (SELECT 1 FROM feed_link l WHERE l.owner = b.creator AND l.space = b.space AND l.inside = TRUE) LIMIT :most
    """,
)
_BILLS_WITHOUT_BOOK = Query(
    str,
    """
    SELECT i.id FROM ledger_bill i WHERE i.deleted_ms IS NULL
        AND NOT EXISTS (SELECT 1 FROM ledger_book b WHERE b.space = i.space) LIMIT :most
    """,
)
_IMAGES_WITHOUT_BILL = Query(
    str,
    """
    SELECT i.id FROM ledger_image i LEFT JOIN ledger_bill b ON b.id = i.bill
    WHERE i.deleted_ms IS NULL AND (b.id IS NULL OR b.space <> i.space OR b.deleted_ms IS NOT NULL) LIMIT :most
    """,
)
_BOOKS_FROM_THE_FUTURE = Query(str, "SELECT id FROM ledger_book WHERE upd_ms < crt_ms LIMIT :most")
_CODES_TO_NOWHERE = Query(
    str,
    """
    SELECT c.code FROM ledger_code c WHERE NOT EXISTS
        (SELECT 1 FROM ledger_book b WHERE b.space = c.space AND b.deleted_ms IS NULL) LIMIT :most
    """,
)
_UNANSWERED = Query(str, "SELECT id FROM ledger_uplink WHERE length(ack) = 0 LIMIT :most")

_RULES = (
    (_BOOKS_WITHOUT_SPACE, "book {}: it lives, and its feed is not there or closed"),
    (_DEAD_BUT_OPEN, "book {}: it is deleted, and its feed is open"),
    (_SPACES_WITHOUT_BOOK, "the feed's space {}: it is open, and has no book"),
    (_CREATORS_OUTSIDE, "book {}: its creator is not a member"),
    (_BILLS_WITHOUT_BOOK, "bill {}: its book is not there"),
    (_IMAGES_WITHOUT_BILL, "image {}: its bill is not there, deleted, or in another book"),
    (_BOOKS_FROM_THE_FUTURE, "book {}: it was changed before it was made"),
    (_CODES_TO_NOWHERE, "code {}: its book is not there"),
    (_UNANSWERED, "uplink message {}: it was taken, and has no answer"),
)


class _BillRow(msgspec.Struct, frozen=True):
    id: str
    money: str
    time: str
    time_ms: int
    images: str
    crt_ms: int
    upd_ms: int
    deleted_ms: int | None


_BILLS = Query(
    _BillRow,
    """
    SELECT id, money, time, time_ms, images, crt_ms, upd_ms, deleted_ms FROM ledger_bill
    WHERE id > :above ORDER BY id LIMIT :limit
    """,
)
_IMAGES_OF_BILLS = Query(
    tuple[str, str],
    """
    SELECT i.bill, i.id FROM ledger_image i WHERE i.bill = ANY(:bills) AND i.deleted_ms IS NULL
    """,
)
_EMPTIED = Query(
    str,
    """
    SELECT i.id FROM ledger_bill i JOIN ledger_book b ON b.space = i.space
    WHERE i.id = ANY(:bills) AND b.deleted_ms IS NOT NULL
    """,
)


def problems(view: Snapshot) -> Iterator[str]:
    for query, problem in _RULES:
        for found in view.rows(query, most=MOST):
            yield problem.format(found)
    above = ""
    while page := view.rows(_BILLS, above=above, limit=PAGE):
        yield from _bills(view, page)
        above = page[-1].id


def hashes(view: Snapshot, space: int) -> Mapping[tuple[int, str], int]:
    """The living entities of a book and the hashes of their revisions, as the feed's check wants them."""
    return {
        (kind, id_): revision(kind, id_, upd_ms)
        for kind, query in _REVISIONS
        for id_, upd_ms in view.rows(query, space=space)
    }


def references(view: Snapshot) -> Mapping[str, int]:
    """SHA-256 → how many live rows of this room name it."""
    return dict(view.rows(_REFERENCES))


def _bills(view: Snapshot, page: list[_BillRow]) -> Iterator[str]:
    ids = [bill.id for bill in page]
    # a deleted book's images are let go by a sweep, which does not touch its bills
    in_dead_books = set(view.rows(_EMPTIED, bills=ids))
    living: dict[str, Counter[str]] = {id_: Counter() for id_ in ids}
    for bill_id, image in view.rows(_IMAGES_OF_BILLS, bills=ids):
        living[bill_id][image] += 1
    for bill in page:
        for problem in _problems_of(bill):
            yield f"bill {bill.id}: {problem}"
        if bill.id not in in_dead_books and Counter(bill.images.split()) != living[bill.id]:
            yield f"bill {bill.id}: it lists other images than it has"


def _problems_of(bill: _BillRow) -> Iterator[str]:
    if not _holds(lambda: checked_money(Decimal(bill.money)) == bill.money):
        yield f"its money is {bill.money!r}"
    if not _holds(lambda: moment_ms("time", bill.time) == bill.time_ms):
        yield f"its time {bill.time!r} is not where it is listed"
    if bill.upd_ms < bill.crt_ms:
        yield "it was changed before it was made"
    if bill.deleted_ms is not None and bill.images:
        yield "it is deleted, and lists images"


def _holds(rule: Callable[[], bool]) -> bool:
    try:
        return rule()
    except (InvalidField, InvalidOperation):
        return False
