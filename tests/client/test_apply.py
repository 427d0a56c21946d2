"""What the server says, in any order it can arrive: pages of any size, notifications late, doubled, lost and out of order,
local edits in between, a server that starts over, a client that dies in the middle of a reset. Pure rules over a database
in memory; the server here is a list with versions."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import hypothesis.strategies as st
import msgspec
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.client.ledger import changes, notify, rows
from holdfast.client.ledger.apply import apply_page, at_cursor
from holdfast.client.ledger.model import SYNCED, Bill, Book
from holdfast.client.ledger.outbox import next_batch
from holdfast.client.ledger.verify import MODULUS, own_checksum
from holdfast.client.ledger.wire import Message, Page, WireBill, WireBook, decode, encode
from holdfast.client.replica.schema import prepare
from holdfast.client.replica.transaction import Transaction
from holdfast.client.replica.worker import connect
from holdfast.clock import rfc3339
from holdfast.feed.digest import revision_hash

ME, OTHER = "1", "2"
NOW = 1_750_000_000_000
PICK = st.integers(0, 10**6)
EXAMPLES = int(os.environ.get("HOLDFAST_APPLY_EXAMPLES", "40"))


class Feed:
    """A server that shows one user a few books: each entity at the version of its latest change."""

    def __init__(self) -> None:
        self.head = 100
        self.epoch = "a"
        self.books: dict[str, WireBook] = {}
        self.bills: dict[str, WireBill] = {}
        self.dead: dict[str, tuple[str, int]] = {}
        self._numbers = 0
        self._revision = 0

    def _next(self) -> int:
        self.head += 1
        return self.head

    def _stamp(self) -> str:
        self._revision += 1
        return rfc3339(NOW + self._revision)

    def name(self) -> str:
        self._numbers += 1
        return f"{self._numbers:020}"

    def put_book(self, identity: str) -> WireBook:
        old = self.books.get(identity)
        book = WireBook(
            identity,
            self._next(),
            "update" if old else "add",
            f"name {self.head}",
            "daily",
            crt_user_id=OTHER,
        )
        book.members, book.crt_time, book.upd_time = [ME, OTHER], rfc3339(NOW), self._stamp()
        self.books[identity] = book
        return book

    def put_bill(self, identity: str, book_id: str, maker: str) -> WireBill:
        bill = WireBill(
            identity, self._next(), "update", book_id, category=f"bought {self.head}", time="2026-02-18"
        )
        bill.crt_user, bill.crt_time, bill.upd_time = maker, rfc3339(NOW), self._stamp()
        self.bills[identity] = bill
        return bill

    def bury(self, kind: str, identity: str) -> int:
        {"book": self.books, "bill": self.bills}[kind].pop(identity)  # type: ignore[attr-defined]
        self.dead[identity] = (kind, self._next())
        return self.head

    def close_book(self, identity: str) -> int:
        for bill in [bill.id for bill in self.bills.values() if bill.book_id == identity]:
            self.bury("bill", bill)
        return self.bury("book", identity)

    def page(self, since: int, limit: int, epoch: str) -> Page:
        reset = since > self.head or epoch not in ("", self.epoch)
        since = 0 if reset else since
        entries: list[tuple[int, str, str]] = [
            *((book.version, "book", book.id) for book in self.books.values()),
            *((bill.version, "bill", bill.id) for bill in self.bills.values()),
            *((version, kind, identity) for identity, (kind, version) in self.dead.items()),
        ]
        above = sorted(entry for entry in entries if entry[0] > since)
        page, more = above[:limit], len(above) > limit
        end = page[-1][0] if more else self.head
        found = Page(self.head, end, more, self.epoch, reset)
        books: dict[str, WireBook] = {}
        for version, kind, identity in page:
            if identity in self.dead and self.dead[identity][1] == version:
                gone = WireBook(identity, version, "delete")
                (
                    books.__setitem__(identity, gone)
                    if kind == "book"
                    else found.bills.append(WireBill(identity, version, "delete"))
                )
            elif kind == "book":
                books[identity] = self.books[identity]
            else:
                found.bills.append(self.bills[identity])
        for bill in found.bills:  # parents first, also from beyond the page's end
            if (
                bill.action != "delete"
                and bill.book_id not in books
                and self.books[bill.book_id].version > end
            ):
                books[bill.book_id] = self.books[bill.book_id]
        found.books = list(books.values())
        return decode_again(found)

    def restore(self) -> None:
        """From a backup: another epoch, positions are handed out again, some things never happened."""
        self.epoch += "'"
        self.head = 100
        self.dead.clear()
        for bill in list(self.bills)[::3]:
            del self.bills[bill]
        for each in (*self.books.values(), *self.bills.values()):
            each.version = self._next()


def decode_again(page: Page) -> Page:
    """Over the wire: nothing is shared with the server."""
    return msgspec.json.decode(encode(page), type=Page)


class Client:
    def __init__(self, path: str) -> None:
        self.connection = connect(Path(path))
        prepare(self.connection)
        with self.tx() as tx:
            tx.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('user_id', ?)", ME)

    def tx(self) -> _Tx:
        return _Tx(self.connection)


class _Tx:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> Transaction:
        self._connection.execute("BEGIN IMMEDIATE")
        return Transaction(self._connection)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._connection.execute("COMMIT" if error is None else "ROLLBACK")


class AnyArrival(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.feed = Feed()
        self.client = Client(":memory:")
        self.told: list[Message] = []
        self.epoch_told = self.feed.epoch
        self.edited: dict[str, str] = {}
        """Bills of ours with a local change that the server has not been told."""

    def _tell(self, kind: str, content: str, version: int) -> None:
        self.told.append(Message(kind, content, version))

    # -- the server

    @rule()
    def somebody_makes_a_book(self) -> None:
        book = self.feed.put_book(self.feed.name())
        self._tell("ADD_BOOK", encode(book).decode(), book.version)

    @precondition(lambda self: self.feed.books)
    @rule(which=PICK, mine=st.booleans())
    def somebody_writes_a_bill(self, which: int, mine: bool) -> None:
        book = list(self.feed.books)[which % len(self.feed.books)]
        bill = self.feed.put_bill(self.feed.name(), book, ME if mine else OTHER)
        self._tell("ADD_BILL", encode(bill).decode(), bill.version)

    @precondition(lambda self: self.feed.bills)
    @rule(which=PICK)
    def somebody_changes_a_bill(self, which: int) -> None:
        old = list(self.feed.bills.values())[which % len(self.feed.bills)]
        bill = self.feed.put_bill(old.id, old.book_id, old.crt_user)
        self._tell("UPDATE_BILL", encode(bill).decode(), bill.version)

    @precondition(lambda self: self.feed.books)
    @rule(which=PICK)
    def somebody_renames_a_book(self, which: int) -> None:
        book = self.feed.put_book(list(self.feed.books)[which % len(self.feed.books)])
        self._tell("UPDATE_BOOK", encode(book).decode(), book.version)

    @precondition(lambda self: self.feed.bills)
    @rule(which=PICK)
    def somebody_deletes_a_bill(self, which: int) -> None:
        identity = list(self.feed.bills)[which % len(self.feed.bills)]
        self._tell("DELETE_BILL", identity, self.feed.bury("bill", identity))

    @precondition(lambda self: len(self.feed.books) > 1)
    @rule(which=PICK)
    def a_book_is_deleted(self, which: int) -> None:
        identity = list(self.feed.books)[which % len(self.feed.books)]
        self._tell("DELETE_BOOK", identity, self.feed.close_book(identity))

    @rule()
    def the_server_is_restored(self) -> None:
        self.feed.restore()
        self.told.clear()  # its connections ended with it

    # -- what arrives

    @precondition(lambda self: self.told)
    @rule(which=PICK, again=st.booleans())
    def a_notification_arrives(self, which: int, again: bool) -> None:
        """Any of them, in any order; some never, some twice."""
        message = self.told[which % len(self.told)]
        if not again:
            self.told.remove(message)
        with self.client.tx() as tx:
            before = at_cursor(tx)
            if message.type in notify.LIVE:
                kind = notify.LIVE[message.type]
                notify._live(tx, kind, decode(kind, message.content), message.timestamp, NOW)
            elif message.type in notify.DEAD:
                notify._dead(tx, notify.DEAD[message.type], message.content, message.timestamp, NOW)
            assert at_cursor(tx) == before

    @rule(limit=st.integers(1, 6))
    def a_page_arrives(self, limit: int) -> None:
        with self.client.tx() as tx:
            at = at_cursor(tx)
            page = self.feed.page(at.since, limit, at.epoch)
            assert apply_page(tx, page, at.since, NOW)

    # -- the app

    @rule(which=PICK)
    def we_change_a_bill_of_ours(self, which: int) -> None:
        with self.client.tx() as tx:
            mine = tx.rows("SELECT id FROM bill WHERE crt_user = ? AND deleted = 0 ORDER BY id", ME)
            if not mine:
                return
            identity = str(mine[which % len(mine)][0])
            word = f"ours {which}"
            changes.change_bill(tx, ME, identity, {"category": word}, uplink=False)
            self.edited[identity] = word

    @invariant()
    def an_unsynced_change_is_never_overwritten(self) -> None:
        if not hasattr(self, "client"):
            return
        with self.client.tx() as tx:
            for identity, word in list(self.edited.items()):
                row = tx.row("SELECT category, synced FROM bill WHERE id = ?", identity)
                if row is None:  # gone on the server: then it is told as lost
                    assert tx.value("SELECT 1 FROM lost WHERE id = ?", identity)
                    del self.edited[identity]
                else:
                    assert row == (word, 0)

    def teardown(self) -> None:
        if not hasattr(self, "client"):
            return
        self._pull_all()
        with self.client.tx() as tx:
            books = [rows.as_book(row) for row in tx.rows(rows.BOOKS)]
            bills = [
                bill
                for book in books
                for bill in map(rows.as_bill, tx.rows(rows.BILLS, book.id, "", "~", -1))
            ]
            assert {book.id for book in books} - set(self.feed.books) <= self._spared(tx)
            self._compare(books, bills)
            if not self.edited:
                own = own_checksum(tx)
                everything = (
                    *(("book", book) for book in self.feed.books.values()),
                    *(("bill", bill) for bill in self.feed.bills.values()),
                )
                digest = sum(revision_hash(kind, each.id, each.upd_time) for kind, each in everything)
                assert (own.count, own.digest) == (len(everything), f"{digest % MODULUS:016x}")
            assert not tx.rows("SELECT 1 FROM tombstone")
        self.client.connection.close()

    def _spared(self, tx: Transaction) -> set[str]:
        return {str(row[0]) for row in tx.rows("SELECT book_id FROM bill WHERE synced <> 1")}

    def _pull_all(self) -> None:
        while True:
            with self.client.tx() as tx:
                at = at_cursor(tx)
                page = self.feed.page(at.since, 3, at.epoch)
                apply_page(tx, page, at.since, NOW)
            if not page.has_more:
                return

    def _compare(self, books: list[Book], bills: list[Bill]) -> None:
        assert {(book.id, book.name) for book in books if book.synced == SYNCED} == {
            (book.id, book.name) for book in self.feed.books.values()
        }
        there = {bill.id: bill.category for bill in self.feed.bills.values()}
        here = {bill.id: bill.category for bill in bills if bill.synced == SYNCED}
        assert here == {identity: word for identity, word in there.items() if identity not in self.edited}


AnyArrival.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None)
test_whatever_arrives_in_whatever_order_the_replica_ends_up_as_the_server = AnyArrival.TestCase


# -- between two pulls: notifications alone have to be right


@given(seed=st.integers(0, 2**32))
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_notifications_alone_in_any_order_and_twice_lead_to_what_the_server_holds(seed: int) -> None:
    """No pull heals anything here, unless a notification asks for one; some pages come late, with old news."""
    source = random.Random(seed)
    feed, client = Feed(), Client(":memory:")
    books = [feed.put_book(feed.name()).id for _ in range(2)]
    for _ in range(4):
        feed.put_bill(feed.name(), source.choice(books), OTHER)
    with client.tx() as tx:
        apply_page(tx, feed.page(0, 100, ""), 0, NOW)
    told: list[Message] = []
    late: list[tuple[int, Page]] = []
    for _ in range(source.randrange(1, 12)):
        bills = list(feed.bills.values())
        match source.choice(("add", "change", "change", "delete", "page")):
            case "add":
                bill = feed.put_bill(feed.name(), source.choice(books), OTHER)
                told.append(Message("ADD_BILL", encode(bill).decode(), bill.version))
            case "change" if bills:
                old = source.choice(bills)
                bill = feed.put_bill(old.id, old.book_id, OTHER)
                told.append(Message("UPDATE_BILL", encode(bill).decode(), bill.version))
            case "delete" if bills:
                identity = source.choice(bills).id
                told.append(Message("DELETE_BILL", identity, feed.bury("bill", identity)))
            case "page":
                with client.tx() as tx:
                    at = at_cursor(tx)
                late.append((at.since, feed.page(at.since, 3, at.epoch)))
    arrivals = [*told, *source.choices(told, k=len(told) // 2)] if told else []
    source.shuffle(arrivals)
    for message in arrivals:
        with client.tx() as tx:
            if message.type in notify.LIVE:
                assert notify._live(tx, "bill", decode("bill", message.content), message.timestamp, NOW)
            else:
                notify._dead(tx, "bill", message.content, message.timestamp, NOW)
            if late and source.random() < 0.3:
                since, page = late.pop(0)
                apply_page(tx, page, since, NOW)
    with client.tx() as tx:
        here = {
            bill.id: bill.category
            for book in books
            for bill in map(rows.as_bill, tx.rows(rows.BILLS, book, "", "~", -1))
        }
    assert here == {bill.id: bill.category for bill in feed.bills.values()}
    client.connection.close()


# -- starting over


def filled(feed: Feed, path: str) -> tuple[Client, str, list[str]]:
    """A book with five bills, all of them pulled."""
    client, book = Client(path), feed.put_book(feed.name()).id
    bills = [feed.put_bill(feed.name(), book, ME).id for _ in range(5)]
    with client.tx() as tx:
        apply_page(tx, feed.page(0, 100, ""), 0, NOW)
    return client, book, bills


def held(tx: Transaction) -> set[str]:
    return {str(row[0]) for row in tx.rows("SELECT id FROM bill")}


def test_a_reset_goes_on_after_a_restart_and_sweeps_at_its_last_page(tmp_path: Path) -> None:
    feed = Feed()
    client, book, bills = filled(feed, str(tmp_path / "replica.db"))
    del feed.bills[bills[0]]
    feed.epoch = "another"
    with client.tx() as tx:
        at = at_cursor(tx)
        assert apply_page(tx, feed.page(at.since, 2, at.epoch), at.since, NOW)
        assert bills[0] in held(tx)  # nothing is swept before the end
    client.connection.close()
    again = Client(str(tmp_path / "replica.db"))
    new = feed.put_bill(feed.name(), book, OTHER).id
    more = True
    while more:
        with again.tx() as tx:
            at = at_cursor(tx)
            page = feed.page(at.since, 2, at.epoch)
            assert not page.reset
            apply_page(tx, page, at.since, NOW)
            more = page.has_more
    with again.tx() as tx:
        assert held(tx) == {*bills[1:], new}
        assert at_cursor(tx).resetting == 0
    again.connection.close()


def test_the_sweep_spares_what_was_told_after_the_last_page(tmp_path: Path) -> None:
    feed = Feed()
    client, book, bills = filled(feed, str(tmp_path / "replica.db"))
    feed.epoch = "another"
    with client.tx() as tx:
        at = at_cursor(tx)
        apply_page(tx, feed.page(at.since, 2, at.epoch), at.since, NOW)
        at = at_cursor(tx)
        last = feed.page(at.since, 100, at.epoch)  # its moment
        bill = feed.put_bill(feed.name(), book, OTHER)
        assert notify._live(tx, "bill", decode("bill", encode(bill)), bill.version, NOW)
        apply_page(tx, last, at.since, NOW)
        assert held(tx) == {*bills, bill.id}
    client.connection.close()


def test_the_sweep_spares_what_is_not_synced_and_sends_it_as_new(tmp_path: Path) -> None:
    feed = Feed()
    client, _book, bills = filled(feed, str(tmp_path / "replica.db"))
    with client.tx() as tx:
        changes.change_bill(tx, ME, bills[0], {"category": "ours"}, uplink=False)
        changes.delete_bill(tx, ME, bills[1])
    del feed.bills[bills[0]], feed.bills[bills[1]], feed.bills[bills[2]]
    feed.epoch = "another"
    with client.tx() as tx:
        at = at_cursor(tx)
        apply_page(tx, feed.page(at.since, 100, at.epoch), at.since, NOW)
        assert held(tx) == {bills[0], *bills[3:]}
        [op] = next_batch(tx, 10, ())
        assert (op.op, op.id) == ("create", bills[0])
    client.connection.close()


def test_a_page_that_was_asked_for_elsewhere_is_not_applied_twice(tmp_path: Path) -> None:
    feed = Feed()
    client, book, _bills = filled(feed, str(tmp_path / "replica.db"))
    with client.tx() as tx:
        at = at_cursor(tx)
        feed.put_bill(feed.name(), book, OTHER)
        page = feed.page(at.since, 100, at.epoch)
        assert apply_page(tx, page, at.since, NOW)
        assert not apply_page(tx, page, at.since, NOW)
    client.connection.close()
