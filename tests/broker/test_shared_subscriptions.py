"""Shared groups: one member gets each message, in turn, and a group without members is gone."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.topics import Grant, SharedFilter, SharedGroup, SharedSubscriptions

FILTER = SharedFilter("g", "a/+")


def always(_: str) -> bool:
    return True


def group_of(*members: str) -> SharedGroup[str]:
    group: SharedGroup[str] = SharedGroup("g", "a")
    for member in members:
        group.join(member, Grant())
    return group


def turns(group: SharedGroup[str], count: int) -> list[str]:
    return [chosen[0] for _ in range(count) if (chosen := group.next(always)) is not None]


def test_members_take_turns_in_the_order_they_joined() -> None:
    assert turns(group_of("ann", "bob", "cat"), 5) == ["ann", "bob", "cat", "ann", "bob"]


def test_a_member_that_cannot_take_a_message_is_passed_over() -> None:
    group = group_of("ann", "bob", "cat")
    assert [group.next(lambda member: member != "bob")[0] for _ in range(3)] == ["ann", "cat", "ann"]


def test_nobody_is_chosen_when_nobody_can() -> None:
    assert group_of("ann").next(lambda _: False) is None
    assert group_of().next(always) is None


def test_when_the_next_in_turn_leaves_the_one_behind_it_is_next() -> None:
    group = group_of("ann", "bob", "cat")
    assert turns(group, 1) == ["ann"]
    group.leave("bob")
    assert turns(group, 2) == ["cat", "ann"]
    group.leave("ann")
    assert turns(group, 1) == ["cat"]


def test_joining_again_keeps_the_place_and_takes_the_new_grant() -> None:
    group = group_of("ann", "bob")
    assert not group.join("ann", Grant(qos=2))
    assert group.members == ("ann", "bob")
    assert group.grant("ann") == Grant(qos=2)


@given(st.lists(st.sampled_from(["join a", "join b", "join c", "leave a", "leave b", "leave c", "turn"])))
def test_whoever_stays_gets_a_fair_share(steps: list[str]) -> None:
    group = group_of()
    for step in steps:
        verb, _, member = step.partition(" ")
        if verb == "join":
            group.join(member, Grant())
        elif verb == "leave":
            group.leave(member)
        else:
            group.next(always)
    shares = Counter(turns(group, 3 * len(group)))
    assert set(shares.values()) <= {3}
    assert set(shares) == set(group.members)


def test_each_group_of_a_matching_filter_gets_the_message_once() -> None:
    shared: SharedSubscriptions[str] = SharedSubscriptions()
    for name, pattern in (("g", "a/+"), ("h", "a/+"), ("g", "a/#"), ("g", "b")):
        shared.subscribe("ann", SharedFilter(name, pattern), Grant())
        shared.subscribe("bob", SharedFilter(name, pattern), Grant())
    found = sorted((group.name, group.filter) for group in shared.groups("a/x"))
    assert found == [("g", "a/#"), ("g", "a/+"), ("h", "a/+")]


def test_a_dollar_topic_is_not_shared_out_to_a_leading_wildcard() -> None:
    shared: SharedSubscriptions[str] = SharedSubscriptions()
    shared.subscribe("ann", SharedFilter("g", "#"), Grant())
    assert shared.groups("$SYS/x") == []


def test_a_group_that_everyone_left_is_gone() -> None:
    shared: SharedSubscriptions[str] = SharedSubscriptions()
    assert shared.subscribe("ann", FILTER, Grant())
    assert not shared.subscribe("ann", FILTER, Grant(qos=1))
    assert shared.subscribe("bob", FILTER, Grant())
    assert len(shared) == 2
    assert shared.unsubscribe("ann", FILTER)
    assert not shared.unsubscribe("ann", FILTER)
    assert shared.unsubscribe("bob", FILTER)
    assert shared.group(FILTER) is None
    assert (len(shared), shared.nodes(), shared.groups("a/x")) == (0, 0, [])
