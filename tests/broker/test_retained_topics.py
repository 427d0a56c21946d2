"""The retained topics: found by any filter, while they come and go beneath the walk."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.topics import RetainedTopics
from tests.broker.naive_matching import naive_match
from tests.broker.test_topic_syntax import FILTER, TOPIC

STORED = st.dictionaries(TOPIC, st.integers(), max_size=12)


def holding(stored: dict[str, int]) -> RetainedTopics[int]:
    topics: RetainedTopics[int] = RetainedTopics()
    for topic, message in stored.items():
        topics.put(topic, message)
    return topics


@given(STORED, FILTER)
def test_a_filter_finds_each_topic_it_matches_once(stored: dict[str, int], pattern: str) -> None:
    found = list(holding(stored).match(pattern))
    assert sorted(found) == sorted((topic, m) for topic, m in stored.items() if naive_match(pattern, topic))


@given(STORED, FILTER)
def test_the_messages_alone_are_the_same_ones(stored: dict[str, int], pattern: str) -> None:
    topics = holding(stored)
    assert sorted(topics.values(pattern)) == sorted(message for _, message in topics.match(pattern))


@given(st.sets(TOPIC, max_size=12), FILTER, st.data())
def test_a_walk_over_messages_survives_every_change_beneath_it(stored: set[str], pattern: str, data) -> None:
    topics: RetainedTopics[str] = RetainedTopics()
    for topic in stored:
        topics.put(topic, topic)
    always, found = set(stored), []
    for topic in topics.values(pattern):
        found.append(topic)
        for changed in data.draw(st.lists(TOPIC, max_size=3)):
            always.discard(changed)
            if data.draw(st.booleans()):
                topics.remove(changed)
            else:
                topics.put(changed, changed)
    assert len(found) == len(set(found))
    assert {topic for topic in always if naive_match(pattern, topic)} <= set(found)


@given(STORED, st.lists(TOPIC))
def test_what_is_put_is_there_and_what_is_removed_leaves_nothing(stored: dict[str, int], removed) -> None:
    topics = holding(stored)
    plain = dict(stored)
    for topic in removed:
        assert topics.remove(topic) == plain.pop(topic, None)
    assert all(topics.get(topic) == plain.get(topic) for topic in [*stored, *removed])
    assert len(topics) == len(plain)
    for topic in plain:
        topics.remove(topic)
    assert (len(topics), topics.nodes()) == (0, 0)


def test_a_new_message_replaces_the_old_one() -> None:
    topics = holding({"a": 1})
    assert topics.put("a", 2) == 1
    assert list(topics.match("a")) == [("a", 2)]
    assert len(topics) == 1


@given(STORED, FILTER, st.data())
def test_a_walk_survives_every_change_beneath_it(stored: dict[str, int], pattern: str, data) -> None:
    """What was there all the time is found exactly once; what is found was there at that moment."""
    topics, plain, always = holding(stored), dict(stored), set(stored)
    found = []
    for topic, message in topics.match(pattern):
        assert plain[topic] == message
        found.append(topic)
        for changed in data.draw(st.lists(TOPIC, max_size=3)):
            always.discard(changed)
            if changed in plain and data.draw(st.booleans()):
                topics.remove(changed)
                del plain[changed]
            else:
                topics.put(changed, -1)
                plain[changed] = -1
    assert len(found) == len(set(found))
    assert {topic for topic in always if naive_match(pattern, topic)} <= set(found)
    assert sorted(topics.match("#")) == sorted(i for i in plain.items() if not i[0].startswith("$"))


def test_many_topics_are_walked_a_few_at_a_time_without_a_copy() -> None:
    topics = holding({f"a/{number}": number for number in range(10_000)})
    walk = topics.match("a/+")
    first = list(islice(walk, 3))
    level = topics._root.children["a"]
    before = level.children
    topics.put("a/0", -1)
    assert level.children is before, "replacing a message changes no level"
    topics.put("a/new", 1)
    assert level.children is not before, "a level under a walk is copied before it changes"
    copied = level.children
    topics.put("a/newer", 1)
    assert level.children is copied, "once"
    assert len(first) + len(list(walk)) == 10_000


def test_a_walk_that_is_given_up_lets_go_of_its_levels() -> None:
    topics = holding({"a/1": 1, "a/2": 2})
    walk = topics.match("#")
    next(walk)
    walk.close()
    values = topics.values("#")
    next(values)
    values.close()
    assert topics._root.walks == [0]
    assert topics._root.children["a"].walks == [0]


def test_a_topic_of_sixty_thousand_levels_is_stored_found_and_removed() -> None:
    deep = "/" * 60_000
    topics = holding({deep: 1})
    assert list(topics.match(deep)) == [(deep, 1)]
    assert list(topics.match("#")) == [(deep, 1)]
    assert list(topics.values("#")) == [1]
    assert topics.remove(deep) == 1
    assert topics.nodes() == 0
