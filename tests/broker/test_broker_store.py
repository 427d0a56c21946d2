"""The contract of the broker's store: what a batch leaves, on both databases, also when it is written twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.broker import check
from holdfast.broker.packets import MessageProperties
from holdfast.broker.store import reads
from holdfast.broker.store.apply import apply
from holdfast.broker.store.purge import TURN, expired, purge, shared_part
from holdfast.broker.store.rows import Changes, Row, StoredMessage, Trim, Trimmed, key_of, packed, unpacked
from holdfast.store import Database, Query
from tests.broker.speaking import migrations
from tests.conftest import OpenStore

LISTS = [name for name in Changes.__struct_fields__ if name not in ("batch", "now_ms")]
COUNT = {
    table: Query(int, f"SELECT count(*) FROM broker_{table}")
    for table in ("session", "subscription", "inbound", "message", "queue", "retained", "will", "gone")
}


class Store:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.batch = 0

    async def write(self, **lists: Any) -> list[Trimmed]:
        self.batch += 1
        changes = self.changes(**lists)
        return await self.db.write(apply, changes)

    def changes(self, **lists: Any) -> Changes:
        return Changes(batch=self.batch, now_ms=1_000, **{name: lists.get(name, []) for name in LISTS})

    async def count(self, table: str) -> int:
        return await self.db.read(lambda view: view.one(COUNT[table]))

    async def queue(self, session_id: int, limit: int = 1_000) -> list[StoredMessage]:
        part, _ = await self.db.read(reads.queue_part, session_id, 0, limit, 1 << 30)
        return part

    async def numbers(self, session_id: int) -> list[int]:
        return [stored.number for stored in await self.queue(session_id)]

    async def sound(self) -> list[str]:
        return await self.db.read(lambda view: list(check.problems(view)))


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store(migrations()) as db:
        yield Store(db)


def session(number: int, client_id: str = "", **fields: Any) -> Row:
    name = client_id or f"c{number}"
    away = fields.get("disconnected_ms", 5)
    return (number, key_of(name), name, "me", False, 5, fields.get("expiry"), 1, away, fields.get("sent", 0))


def queued(
    session_id: int, number: int, message_id: int | None = None, *, qos: int = 1, **fields: Any
) -> Row:
    inline = message_id is None
    return (
        session_id,
        number,
        qos,
        False,
        fields.get("released", False),
        fields.get("replay", False),
        fields.get("size", 10),
        fields.get("expires_ms"),
        fields.get("identifiers"),
        fields.get("share"),
        message_id,
        "t" if inline else None,
        b"%d" % number if inline else None,
        fields.get("properties") if inline else None,
    )


def message(number: int, payload: bytes = b"shared") -> Row:
    return (number, "t/shared", payload, None)


async def test_sessions_come_back_with_everything_that_is_theirs(store: Store) -> None:
    name = "a client id of very many letters " * 200
    await store.write(
        sessions=[session(1, expiry=60, sent=7), session(2, name, disconnected_ms=None)],
        subscriptions=[
            (1, key_of("a/#"), "a/#", 1, True, False, 9),
            (1, key_of("b/" * 3_000), "b/" * 3_000, 2, False, True, 0),
        ],
        inbound=[(1, 5), (1, 65_535), (2, 1)],
        queue=[queued(1, 8), queued(1, 9, replay=True)],
    )
    page = await store.db.read(reads.session_page, 0)
    first, second = page.sessions
    assert (first.client_id, first.owner, first.expiry_s, first.disconnected_ms, first.sent) == (
        "c1",
        "me",
        60,
        5,
        7,
    )
    assert (second.client_id, second.expiry_s, second.disconnected_ms) == (name, None, None)
    assert {
        (s.filter, s.qos, s.no_local, s.retain_as_published, s.identifier) for s in page.subscriptions
    } == {
        ("a/#", 1, True, False, 9),
        ("b/" * 3_000, 2, False, True, 0),
    }
    assert sorted(page.inbound) == [(1, 5), (1, 65_535), (2, 1)]
    (length,) = page.lengths
    assert (length.session_id, length.count, length.size, length.replayed, length.last) == (1, 1, 10, 1, 9)
    found = await store.db.read(reads.beginnings)
    assert (found.batch, found.beat_ms, found.session_id, found.message_id) == (1, 1_000, 2, 0)
    assert await store.sound() == []


async def test_a_queue_is_read_in_order_from_any_place_with_its_messages(store: Store) -> None:
    properties = packed(MessageProperties(content_type="x", user_properties=(("a", "ä"),)))
    await store.write(
        sessions=[session(1)],
        messages=[message(3)],
        queue=[
            queued(1, 10, identifiers="1,2"),
            queued(1, 2, 3, qos=2),
            queued(1, 30, properties=properties, share="$share/g/t"),
        ],
    )
    second, first, third = (
        sorted(await store.queue(1), key=lambda stored: stored.number)[1],
        *(
            (await store.queue(1))[0],
            (await store.queue(1))[2],
        ),
    )
    assert [first.number, second.number, third.number] == [2, 10, 30]
    assert (first.topic, first.payload, first.message_id, first.qos) == ("t/shared", b"shared", 3, 2)
    assert (second.topic, second.payload, second.message_id, second.identifiers) == ("t", b"10", None, "1,2")
    assert unpacked(third.properties) == MessageProperties(content_type="x", user_properties=(("a", "ä"),))
    part, is_last = await store.db.read(reads.queue_part, 1, 2, 1, 1 << 30)
    assert ([stored.number for stored in part], is_last) == ([10], False)
    part, is_last = await store.db.read(reads.queue_part, 1, 10, 5, 1 << 30)
    assert ([stored.number for stored in part], is_last) == ([30], True)


async def test_a_part_of_a_queue_is_bounded_in_bytes_and_has_one_message_at_least(store: Store) -> None:
    await store.write(sessions=[session(1)], queue=[queued(1, n, size=100) for n in range(1, 6)])
    part, is_last = await store.db.read(reads.queue_part, 1, 0, 10, 250)
    assert ([stored.number for stored in part], is_last) == ([1, 2, 3], False)
    part, is_last = await store.db.read(reads.queue_part, 1, 4, 10, 1)
    assert ([stored.number for stored in part], is_last) == ([5], True)
    assert await store.db.read(reads.queue_part, 1, 5, 10, 1) == ([], True)


async def test_what_leaves_a_queue_leaves_it_and_a_message_goes_with_its_last_reader(store: Store) -> None:
    await store.write(
        sessions=[session(1), session(2)],
        messages=[message(1), message(2)],
        queue=[queued(1, 1), queued(1, 2, 1), queued(1, 3, 2), queued(2, 1, 1), queued(1, 4)],
        retained=[(key_of("t/shared"), 2, 1, 7, None)],
    )
    await store.write(
        removed_below=[(1, 3)], removed=[(1, 3), (1, 4)], unreferenced=[(1,), (2,)], queue=[queued(1, 5)]
    )
    assert await store.numbers(1) == [5]
    assert await store.count("message") == 2  # one is in another queue, one is retained
    await store.write(removed=[(2, 1)], unretained=[(key_of("t/shared"),)], unreferenced=[(1,), (2,)])
    assert await store.count("message") == 0
    assert await store.sound() == []


async def test_a_batch_that_is_written_twice_leaves_what_it_left_once(store: Store) -> None:
    await store.write(sessions=[session(1)], queue=[queued(1, n) for n in range(1, 11)])
    trim = Trim(1, 2, 3, 0)
    assert await store.write(trims=[trim], queue=[queued(1, 11)]) == [Trimmed(1, 3, 30)]
    assert await store.numbers(1) == [1, 2, 6, 7, 8, 9, 10, 11]
    again = await store.db.write(apply, store.changes(trims=[trim], queue=[queued(1, 11)]))
    assert again == [Trimmed(1, 8, 80, is_rest=True)]
    assert await store.numbers(1) == [1, 2, 6, 7, 8, 9, 10, 11]


async def test_a_trim_takes_the_oldest_that_were_never_sent_and_no_replayed_ones(store: Store) -> None:
    rows = [queued(1, n, replay=n % 2 == 0, message_id=n if n == 5 else None) for n in range(1, 1_001)]
    await store.write(sessions=[session(1)], messages=[message(5)], queue=rows)
    assert await store.write(trims=[Trim(1, 2, 0, 4_000)]) == [Trimmed(1, 400, 4_000)]
    left = await store.numbers(1)
    assert [n for n in left if n % 2] == [1, *range(803, 1_001, 2)]
    assert len([n for n in left if n % 2 == 0]) == 500
    assert await store.count("message") == 0
    assert await store.write(trims=[Trim(1, 0, 10_000, 0)]) == [Trimmed(1, 100, 1_000)]


async def test_a_session_ends_and_begins_again_under_the_same_client_id_in_one_batch(store: Store) -> None:
    await store.write(
        sessions=[session(1, "same")],
        subscriptions=[(1, "t", "t", 1, False, False, 0)],
        inbound=[(1, 1)],
        queue=[queued(1, 1)],
    )
    await store.write(gone=[(1,)], left_behind=[(1, 0)], sessions=[session(2, "same")])
    page = await store.db.read(reads.session_page, 0)
    assert [found.id for found in page.sessions] == [2]
    assert page.subscriptions == page.inbound == page.lengths == []
    assert await store.db.read(reads.gone) == [(1, 0)]
    assert (await store.db.read(reads.beginnings)).session_id == 2
    assert await store.sound() == []


async def test_what_an_ended_session_left_is_removed_in_turns(store: Store) -> None:
    shared = [queued(1, n, n % 7 + 1) for n in range(1, 2 * TURN + 10)]
    await store.write(sessions=[session(1)], messages=[message(n) for n in range(1, 8)], queue=shared)
    await store.write(gone=[(1,)], left_behind=[(1, 0)])
    assert await store.db.write(purge, 1) == TURN
    assert await store.db.write_in_turns(purge, 1) == TURN + 9
    for table in ("queue", "message", "gone"):
        assert await store.count(table) == 0


async def test_others_of_a_shared_subscription_get_what_was_never_sent_at_qos_2(store: Store) -> None:
    share = "$share/g/t"
    rows = [queued(1, n, qos=1 + n % 2, share=share if n < 9 else None) for n in range(1, 11)]
    await store.write(sessions=[session(1)], queue=rows)
    found = await store.db.read(shared_part, 1, 4, 0)
    assert [stored.number for stored in found] == [2, 4, 5, 6, 7, 8]
    assert [stored.number for stored in await store.db.read(shared_part, 1, 4, 5, 2)] == [6, 7]


async def test_messages_expire_where_nobody_is_connected_and_they_were_never_sent(store: Store) -> None:
    await store.write(
        sessions=[session(1, sent=1), session(2, disconnected_ms=None)],
        queue=[queued(s, n, expires_ms=100 + n) for s in (1, 2) for n in range(1, 5)],
    )
    assert await store.db.read(expired, 103) == [(1, 2, 10, 0), (1, 3, 10, 0)]


async def test_marks_only_rise_and_a_session_row_says_where_they_stand(store: Store) -> None:
    await store.write(sessions=[session(1)], marks=[(9, 1)])
    await store.write(marks=[(4, 1)])
    assert (await store.db.read(reads.session_page, 0)).sessions[0].sent == 9
    await store.write(sessions=[session(1, sent=6)])
    assert (await store.db.read(reads.session_page, 0)).sessions[0].sent == 6


async def test_packet_ids_of_messages_that_arrive_are_kept_until_they_are_released(store: Store) -> None:
    await store.write(sessions=[session(1)], inbound=[(1, 1), (1, 2)])
    await store.write(inbound=[(1, 2), (1, 3)], released_inbound=[(1, 1), (1, 9)])
    assert (await store.db.read(reads.session_page, 0)).inbound == [(1, 2), (1, 3)]


async def test_released_messages_say_so(store: Store) -> None:
    await store.write(sessions=[session(1, sent=2)], queue=[queued(1, 1, qos=2), queued(1, 2, qos=2)])
    await store.write(released=[(1, 1)])
    assert [stored.released for stored in await store.queue(1)] == [True, False]
    assert await store.sound() == []


async def test_retained_messages_are_replaced_and_read_in_pages(store: Store) -> None:
    long = "t/" * 20_000
    await store.write(
        messages=[message(n, b"%d" % n) for n in range(1, 6)],
        retained=[(key_of(f"{n}" + long), n, 1, 7, 70 + n) for n in range(1, 6)],
    )
    await store.write(
        messages=[message(6, b"new")], retained=[(key_of("1" + long), 6, 2, 8, None)], unreferenced=[(1,)]
    )
    first = await store.db.read(reads.retained_page, 0, 3)
    rest = await store.db.read(reads.retained_page, first[-1].message_id, 3)
    assert [found.payload for found in first + rest] == [b"2", b"3", b"4", b"5", b"new"]
    assert (rest[-1].qos, rest[-1].stored_ms, rest[-1].expires_ms) == (2, 8, None)
    assert await store.count("message") == 5


async def test_wills_are_kept_replaced_and_forgotten(store: Store) -> None:
    properties = packed(MessageProperties(message_expiry=5))
    will = (key_of("c"), "c", "me", True, "w", b"bye", properties, 1, True, 30, None)
    await store.write(wills=[will, (key_of("d"), "d", "", False, "w", b"", None, 0, False, 0, 99)])
    await store.write(wills=[(*will[:-1], 500)], unwilled=[(key_of("d"),)])
    (found,) = await store.db.read(reads.wills)
    assert (found.client_id, found.owner, found.is_server, found.topic, found.payload) == (
        "c",
        "me",
        True,
        "w",
        b"bye",
    )
    assert (found.qos, found.retain, found.delay_s, found.due_ms) == (1, True, 30, 500)
    assert unpacked(found.properties) == MessageProperties(message_expiry=5)


async def test_check_finds_what_does_not_fit_together(store: Store) -> None:
    await store.write(
        sessions=[session(1, sent=70_000)],
        subscriptions=[(9, "t", "t", 1, False, False, 0), (1, "x", "a/#/b", 1, False, False, 0)],
        inbound=[(8, 1)],
        messages=[message(1)],
        queue=[
            queued(1, 1, 77),
            queued(7, 1),
            queued(1, 3, released=True),
            queued(1, 69_999),
            queued(1, 70_001),
        ],
        retained=[(key_of("t"), 66, 1, 7, None)],
        left_behind=[(1, 0)],
    )
    found = await store.sound()
    for said in (
        "message 1 in the queue of session 1 is not there",
        "the retained message of 't' is not there",
        "message 1 is in no queue and not retained",
        "a queue belongs to session 7",
        "a subscription belongs to session 9",
        "a packet id belongs to session 8",
        "session 1 has ended and is there",
        "message 3 of session 1 is released and cannot be",
        "two have one packet id",
        "kept under another name than its own: 'x'",
        "no topic filter: 'a/#/b'",
    ):
        assert any(said in problem for problem in found), (said, found)
