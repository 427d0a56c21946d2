"""`user/{id}/#`: the owner's, and whom the operator lets read there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.entry.spaces import UserSpaces
from holdfast.broker.topics.matching import matches
from holdfast.errors import CannotStart


def test_a_space_is_its_owners_alone() -> None:
    spaces = UserSpaces(())
    assert spaces.may_publish(7, "user/7/photos/1") is True
    assert spaces.may_subscribe(7, "user/7/#") is True
    assert spaces.may_receive(7, "user/7/photos/1") is True
    for topic in ("user/8/photos", "user/77/x", "user/7", "user/", "user//x", "user/+/x"):
        assert spaces.may_publish(7, topic) is False
        assert spaces.may_subscribe(7, topic) is False
        assert spaces.may_receive(7, topic) is False
    for wide in ("user/#", "user/+/photos", "user/+/#"):
        assert spaces.may_subscribe(7, wide) is False


def test_other_topics_are_not_its_business() -> None:
    spaces = UserSpaces(("*:*",))
    for topic in ("heji/notify/7/book", "users/7/x", "$SYS/user/7", "#", "+/7/#"):
        assert spaces.may_publish(7, topic) is None
        assert spaces.may_subscribe(7, topic) is None
        assert spaces.may_receive(7, topic) is None


def test_a_reader_reads_what_he_was_given_and_writes_nothing() -> None:
    spaces = UserSpaces(("7:9:photos/#", "8:*", "*:*:public/#"))
    assert spaces.may_subscribe(9, "user/7/photos/+") is True
    assert spaces.may_receive(9, "user/7/photos/1") is True
    assert spaces.may_subscribe(9, "user/7/#") is False
    assert spaces.may_receive(9, "user/7/letters") is False
    assert spaces.may_subscribe(10, "user/7/photos/+") is False
    assert spaces.may_subscribe(10, "user/8/#") is True
    assert spaces.may_subscribe(10, "user/+/public/#") is True
    assert spaces.may_subscribe(10, "user/+/#") is False
    assert spaces.may_receive(10, "user/77/public/x") is True
    for topic in ("user/7/photos/1", "user/8/x", "user/77/public/x"):
        assert spaces.may_publish(9, topic) is False


@pytest.mark.parametrize(
    "text", ["7", "7:", ":9", "ann:9", "7:bob", "-7:9", "7:9:a/#/b", "7:9:a+", "0:9", "9" * 20 + ":1", "٧:9"]
)
def test_a_grant_that_cannot_be_read_is_one_sentence_that_names_it(text: str) -> None:
    with pytest.raises(CannotStart, match=r"broker\.readers") as refused:
        UserSpaces((text,))
    assert repr(text) in str(refused.value)


LEVEL = st.sampled_from(["user", "7", "8", "a", "b", "+"])
FILTER = st.builds(
    lambda levels, wild: "/".join(["user", *levels, *(["#"] if wild else [])]),
    st.lists(LEVEL, min_size=1, max_size=4),
    st.booleans(),
)
TOPIC = st.lists(st.sampled_from(["7", "8", "a", "b"]), min_size=1, max_size=4).map(
    lambda levels: "/".join(["user", *levels])
)


@given(topic_filter=FILTER, topic=TOPIC)
def test_what_is_granted_at_subscribe_is_never_more_than_what_is_received(
    topic_filter: str, topic: str
) -> None:
    """Whoever may subscribe to a filter may receive all of what it brings, the space's bare name left out."""
    spaces = UserSpaces(("8:7:a/#", "*:*:b/+"))
    if spaces.may_subscribe(7, topic_filter) and matches(topic_filter, topic) and topic.count("/") > 1:
        assert spaces.may_receive(7, topic)
