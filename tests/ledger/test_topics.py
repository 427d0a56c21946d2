"""What a user may do on the ledger's topics."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.model import By
from holdfast.ledger.topics import LedgerTopics, author_of, book_of
from holdfast.messenger import Ruling
from tests.conftest import OpenStore
from tests.ledger.house import new_id
from tests.ledger.wired import ANN, BOB, CAT, wired

ME, OTHER = 7, 77
BOOK = "9m4e2mr0ui3e8a215n4g"

RULES = LedgerTopics(None)

# filter or topic: may I subscribe, publish, receive? (- not a topic of the ledger's)
TABLE = """
heji/notify/7/#            yes no  no
heji/notify/7/bill         yes no  yes
heji/notify/7/+            yes no  no
heji/notify/7              no  no  no
heji/notify/77/#           no  no  no
heji/notify/77/bill        no  no  no
heji/notify/+/bill         no  no  no
heji/notify/#              no  no  no
heji/down/7/#              yes no  no
heji/down/7/image          yes no  yes
heji/down/77/book          no  no  no
heji/down/+/book           no  no  no
heji/up/7/book             no  yes no
heji/up/7/bill             no  yes no
heji/up/7/image            no  yes no
heji/up/7/other            no  no  no
heji/up/7/bill/more        no  no  no
heji/up/77/bill            no  no  no
heji/up/07/bill            no  no  no
heji/up/#                  no  no  no
heji/up/7/#                no  no  no
heji/book/9m4e2mr0ui3e8a215n4g/sync no no no
heji/+/7/bill              no  no  no
heji/#                     no  no  no
heji                       no  no  no
heji/                      no  no  no
Heji/notify/7/bill         -   -   -
hejix/notify/7/bill        -   -   -
/heji/notify/7/bill        -   -   -
+/notify/7/bill            -   -   -
#                          -   -   -
user/7/x                   -   -   -
"""
SAID = {"yes": True, "no": False, "-": None}
LINES = [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize(("topic", "subscribe", "publish", "receive"), LINES, ids=[line[0] for line in LINES])
def test_a_user_has_his_own_topics_and_no_other(
    topic: str, subscribe: str, publish: str, receive: str
) -> None:
    assert RULES.may_subscribe(ME, topic) is SAID[subscribe]
    assert RULES.may_publish(ME, topic) is SAID[publish]
    if "+" not in topic and "#" not in topic:  # what is received has a topic, not a filter
        assert RULES.may_receive(ME, topic) is SAID[receive]
        assert RULES.may_receive(OTHER, topic) in (SAID["no"], None) or f"/{OTHER}/" in topic


levels = st.sampled_from(
    ["heji", "notify", "down", "up", "book", "7", "77", "", "+", "#", BOOK, "sync", "bill"]
)


@given(st.lists(levels, min_size=1, max_size=5).map("/".join))
def test_nothing_of_another_user_is_ever_allowed(topic: str) -> None:
    for answer in (
        RULES.may_subscribe(ME, topic),
        RULES.may_publish(ME, topic),
        RULES.may_receive(ME, topic),
    ):
        assert not answer or topic.split("/")[2] == str(ME)
    author = author_of(topic)
    assert author is None or topic == f"heji/up/{author[0]}/{author[1]}"
    assert book_of(topic) in (None, BOOK)


async def ruled(ruling: Ruling) -> bool | None:
    return await ruling if inspect.isawaitable(ruling) else ruling


async def test_the_topic_of_a_book_is_for_its_members_as_long_as_they_are(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with wired(open_store, tmp_path, legacy_book_topic=True) as here:
        book = await here.book_of(ANN, BOB)
        topic = f"heji/book/{book.id}/sync"
        for who, may in ((ANN, True), (BOB, True), (CAT, False)):
            assert await ruled(here.rules.may_subscribe(who, topic)) is may
            assert await ruled(here.rules.may_publish(who, topic)) is may
            assert here.rules.may_receive(who, topic) is may
        assert await ruled(here.rules.may_subscribe(ANN, f"heji/book/{new_id()}/sync")) is False
        assert await ruled(here.rules.may_subscribe(ANN, "heji/book/+/sync")) is False
        assert await ruled(here.rules.may_subscribe(ANN, topic + "/more")) is False
        await here.ledger.leave(By(ANN, here.clock.now_ms()), book.id, BOB)
        await here.settled()
        assert here.rules.may_receive(BOB, topic) is False
        assert here.rules.may_receive(ANN, topic) is True
        await here.does(ANN, here.orders.delete_book(book.id))
        assert here.rules.may_receive(ANN, topic) is False
        assert await ruled(here.rules.may_subscribe(ANN, topic)) is False
