"""Who may do what on the ledger's topics, asked of the real broker: every verb × everybody, and what is delivered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.accounts.model import Grant
from holdfast.accounts.tokens import AccessTokens
from holdfast.broker.packets import Publish, Reason
from holdfast.clock import ManualClock, SystemClock
from holdfast.settings import Ledger
from tests.broker.client import Client
from tests.ledger.conftest import OpenHouse
from tests.ledger.house import LUNCH, House, Person, new_id, together
from tests.ledger.phone import online

NO = int(Reason.NOT_AUTHORIZED)
BAD = int(Reason.BAD_USER_NAME_OR_PASSWORD)


def mqtt(home: House) -> str:
    return home.app.addresses["mqtt"]


async def comes(home: House, person: Person, name: str | None = None, **more: Any) -> Client:
    assert person.token is not None
    return await Client.connected(
        mqtt(home), name or f"c{new_id()}", username=person.id, password=person.token.encode(), **more
    )


# {me}: the one who asks; {co}: a co-member of the same book; his verbs: subscribe, publish (QoS 1)
TABLE = """
                          subscribe publish
heji/notify/{me}/#        yes       -
heji/notify/{me}/bill     yes       no
heji/notify/{me}/+        yes       -
heji/down/{me}/#          yes       -
heji/down/{me}/book       yes       no
heji/up/{me}/bill         no        yes
heji/up/{me}/image        no        yes
heji/up/{me}/other        no        no
heji/up/{me}/#            no        -
heji/notify/{co}/#        no        -
heji/notify/{co}/bill     no        no
heji/down/{co}/#          no        -
heji/down/{co}/book       no        no
heji/up/{co}/bill         no        no
heji/notify/+/bill        no        -
heji/notify/#             no        -
heji/down/#               no        -
heji/up/#                 no        -
heji/#                    no        -
+/notify/{co}/bill        no        -
#                         no        -
$share/g/heji/notify/{me}/# yes     -
$share/g/heji/notify/{co}/# no      -
heji/book/{book}/sync     no        no
heji/other                no        no
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()[1:]]


async def test_every_verb_on_every_topic(quick_home: House) -> None:
    ann, bob = await quick_home.people(2)
    book = await together(ann, bob)
    client = await comes(quick_home, bob)
    wrong = []
    for row, subscribe, publish in ROWS:
        topic = row.format(me=bob.id, co=ann.id, book=book["_id"])
        (reason,) = await client.subscribe(topic, qos=1)
        if reason != (1 if subscribe == "yes" else NO):
            wrong.append(f"subscribe {row}: {reason:#x}")
        if publish == "-":
            continue
        reason = await client.publish(topic, b"{}", qos=1)
        if (reason < 0x80) != (publish == "yes") or (publish == "no" and reason != NO):
            wrong.append(f"publish {row}: {reason:#x}")
    assert wrong == []
    await client.quiet()
    client.drop()


async def test_nobody_comes_in_without_a_good_token(quick_home: House) -> None:
    ann = await quick_home.person()
    past = ManualClock(SystemClock().now_ms() - 3_600_000)
    accounts = quick_home.app.accounts
    expired = AccessTokens(accounts._keys, quick_home.app.settings.auth, past).issue(
        Grant(ann.user_id, ann.name, 1)
    )
    bob = await quick_home.person()
    assert bob.token is not None
    for user, password in (
        (None, None),
        (ann.id, None),
        (ann.id, b"not a token"),
        (ann.id, expired.encode()),
        (ann.id, bob.token.encode()),
    ):
        client = await Client.open(mqtt(quick_home))
        connack = await client.connect("c", username=user, password=password)
        assert connack.reason in (NO, BAD), (user, password, connack)
        client.drop()


async def test_a_message_nobody_committed_reaches_nobody(quick_home: House) -> None:
    """What is refused, or malformed, is told to its author alone."""
    ann, bob = await quick_home.people(2)
    book = await together(ann, bob)
    bill = await ann.makes_bill(book)
    async with (
        online(ann, mqtt(quick_home), "notify", "down") as at_ann,
        online(bob, mqtt(quick_home), "notify", "down") as at_bob,
    ):
        sent = await at_bob.publishes("bill", "UPDATE_BILL", book["_id"], {**LUNCH, "_id": bill["_id"]})
        assert (await at_bob.acked(sent))["reason"] == "forbidden"
        await at_bob.client.publish(f"heji/up/{bob.id}/bill", b'{"id":"m","type":"ADD_BILL",', qos=1)
        (refused,) = await at_bob.hears_many(1)
        assert (refused["id"], refused["type"]) == ("m", "ADD_BILL_ACK")
        await ann.makes_bill(book)
        await at_bob.hears_many(2)
        assert at_ann.heard == []


@pytest.fixture
def legacy() -> Ledger:
    return Ledger(legacy_book_topic=True, join_tries=10**6)


async def test_the_topic_of_a_book_carries_what_is_committed_to_its_members(
    open_house: OpenHouse, legacy: Ledger
) -> None:
    """Members publish and subscribe one topic: what a member publishes is taken, and comes back stored."""
    async with open_house(ledger=legacy) as home:
        ann, bob, cat = await home.people(3)
        book = await together(ann, bob)
        topic = f"heji/book/{book['_id']}/sync"
        at_ann, at_bob, at_cat = [await comes(home, person) for person in (ann, bob, cat)]
        await at_ann.subscribed(topic, qos=1)
        await at_bob.subscribed(topic, qos=1)
        assert await at_cat.subscribe(topic, qos=1) == (NO,)
        assert await at_cat.publish(topic, b"{}", qos=1) == NO
        bill = {**LUNCH, "_id": new_id(), "book_id": book["_id"], "crt_user": "forged"}
        message = {
            "id": new_id(), "type": "ADD_BILL", "book_id": book["_id"], "sender_id": bob.id,
            "content": msgspec.json.encode(bill).decode(), "receiver_ids": [cat.id], "timestamp": 1,
        }  # fmt: skip
        assert await at_bob.publish(topic, msgspec.json.encode(message), qos=1, retain=True) < 0x80
        for client in (at_ann, at_bob):
            came = [await client.expect_a(Publish) for _ in range(2)]
            said = {
                found["type"]: found for found in (msgspec.json.decode(packet.payload) for packet in came)
            }
            assert said.keys() == {"ADD_BILL", "ADD_BILL_ACK"}
            assert said["ADD_BILL"]["sender_id"] == bob.id
            assert msgspec.json.decode(said["ADD_BILL"]["content"])["crt_user"] == bob.id
            assert not any(packet.retain for packet in came)
        late = await comes(home, ann)
        await late.subscribed(topic, qos=1)
        await late.quiet()  # nothing was retained
        for client in (at_ann, at_bob, at_cat, late):
            client.drop()


async def test_whoever_is_removed_gets_nothing_more_of_the_book_not_even_after_resuming(
    open_house: OpenHouse, legacy: Ledger
) -> None:
    async with open_house(ledger=legacy) as home:
        ann, bob = await home.people(2)
        book = await together(ann, bob)
        topic = f"heji/book/{book['_id']}/sync"
        lasting: dict[str, Any] = {"clean": False, "session_expiry": 1_000}
        at_bob = await comes(home, bob, "bob's", **lasting)
        await at_bob.subscribed(topic, qos=1)
        await ann.makes_bill(book)
        assert b"ADD_BILL" in (await at_bob.expect_a(Publish)).payload
        at_bob.drop()
        await ann.makes_bill(book)  # queued for bob
        await ann.removes(book, bob)
        await ann.makes_bill(book)
        again = await comes(home, bob, "bob's", present=True, **lasting)
        await again.quiet()
        await ann.makes_bill(book)
        await again.quiet()
        assert await again.publish(topic, b"{}", qos=1) == NO
        again.drop()


async def test_notifications_of_a_book_end_with_the_membership(quick_home: House) -> None:
    ann, bob = await quick_home.people(2)
    book = await together(ann, bob)
    async with online(bob, mqtt(quick_home), "notify") as at_bob:
        await ann.makes_bill(book)
        await ann.removes(book, bob)
        await ann.makes_bill(book)
        other = await together(ann, bob)
        messages = await at_bob.hears_many(3)
        assert [(m["type"], m["book_id"]) for m in messages] == [
            ("ADD_BILL", book["_id"]),
            ("DELETE_BOOK", book["_id"]),
            ("ADD_BOOK", other["_id"]),
        ]
