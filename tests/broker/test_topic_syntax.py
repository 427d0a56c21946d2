"""Which strings are topic names, topic filters and shared filters (4.7, 4.8.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.topics import (
    SharedFilter,
    count_levels,
    is_shared,
    shared_filter_fault,
    split_shared,
    topic_filter_fault,
    topic_name_fault,
)
from holdfast.broker.topics.matching import covers, matches, overlaps
from tests.broker.naive_matching import naive_match

LEVEL = st.sampled_from(["", "a", "b", "$s"])
TOPIC = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
FILTER = st.builds(
    lambda levels, deep: "/".join(levels + ["#"] * deep),
    st.lists(LEVEL | st.just("+"), max_size=4),
    st.booleans(),
).filter(bool)


@pytest.mark.parametrize("name", ["a", "/", "//", "a/b", "/a", "a/", " ", "$SYS/x", "日本/🎵", "\ufeff"])
def test_a_topic_name_is_any_string_without_wildcards(name: str) -> None:
    assert topic_name_fault(name) is None
    assert topic_filter_fault(name) is None


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("", "MQTT-4.7.3-1"),
        ("+", "MQTT-4.7.0-1"),
        ("a/#", "MQTT-4.7.0-1"),
        ("a+b", "MQTT-4.7.0-1"),
        ("a\0", "MQTT-4.7.3-2"),
        ("a" * 65_536, "MQTT-4.7.3-3"),
        ("é" * 32_768, "MQTT-4.7.3-3"),
    ],
)
def test_what_is_not_a_topic_name_breaks_a_clause(name: str, clause: str) -> None:
    assert topic_name_fault(name) == clause


def test_a_topic_name_may_be_65535_bytes_long() -> None:
    assert topic_name_fault("é" * 32_767 + "a") is None
    assert topic_filter_fault("/" * 65_535) is None


@pytest.mark.parametrize("pattern", ["#", "+", "/#", "+/+", "a/+/#", "+/a", "$SYS/#", "$share/g/a", "+//+"])
def test_a_wildcard_stands_alone_on_its_level(pattern: str) -> None:
    assert topic_filter_fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("$share/g/a", None),
        ("$share/g/#", None),
        ("$share/g//", None),
        ("$share/g/$SYS/a", None),
        ("$share/", "MQTT-4.8.2-1"),
        ("$share//a", "MQTT-4.8.2-1"),
        ("$share/g", "MQTT-4.8.2-2"),
        ("$share/g/", "MQTT-4.8.2-2"),
        ("$share/g+/a", "MQTT-4.8.2-2"),
        ("$share/#/a", "MQTT-4.8.2-2"),
        ("$share/g/a/#/b", "MQTT-4.7.1-1"),
        ("$share/g/a+", "MQTT-4.7.1-2"),
    ],
)
def test_a_shared_filter_has_a_group_and_a_filter(pattern: str, fault: str | None) -> None:
    assert is_shared(pattern)
    assert shared_filter_fault(pattern) == fault


def test_a_shared_filter_is_taken_apart_behind_its_group() -> None:
    assert split_shared("$share/g/a/b") == SharedFilter("g", "a/b")
    assert split_shared("$share/g//") == SharedFilter("g", "/")
    assert split_shared("$sharE/g/a") is None


def test_levels_are_what_slashes_separate() -> None:
    assert [count_levels(name) for name in ("a", "/", "a/b/c")] == [1, 2, 3]


@given(FILTER, TOPIC)
def test_matching_agrees_with_the_standards_own_words(pattern: str, topic: str) -> None:
    assert matches(pattern, topic) == naive_match(pattern, topic)


@given(FILTER, FILTER, st.lists(TOPIC, max_size=20))
def test_a_filter_that_covers_another_matches_all_its_topics(
    wide: str, narrow: str, topics: list[str]
) -> None:
    if covers(wide, narrow):
        assert all(naive_match(wide, topic) for topic in topics if naive_match(narrow, topic))


@given(FILTER, FILTER, TOPIC)
def test_filters_that_share_a_topic_overlap(one: str, other: str, topic: str) -> None:
    if naive_match(one, topic) and naive_match(other, topic):
        assert overlaps(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "b"), ("a/+", "a"), ("$SYS/a", "#"), ("$SYS/a", "+/a"), ("a/+/c", "a/b/d"), ("a/b", "a/b/+")],
)
def test_filters_without_a_common_topic_do_not_overlap(one: str, other: str) -> None:
    assert not overlaps(one, other)
    assert not overlaps(other, one)


@pytest.mark.parametrize(
    ("wide", "narrow", "does"),
    [
        ("#", "a/b", True),
        ("#", "+/b", True),
        ("a/#", "a", True),
        ("a/#", "a/#", True),
        ("a/+", "a/+", True),
        ("a/+", "a/#", False),
        ("#", "$SYS/a", False),
        ("+", "a/b", False),
        ("a/b", "a/+", False),
    ],
)
def test_covering_is_decided_level_by_level(wide: str, narrow: str, does: bool) -> None:
    assert covers(wide, narrow) is does
