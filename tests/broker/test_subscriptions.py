"""The subscription tree: the same answers as a list of filters asked one by one, and nothing left behind."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.broker.topics import Grant, Subscriptions
from tests.broker.naive_matching import naive_match
from tests.broker.test_topic_syntax import FILTER, TOPIC

WHO = st.sampled_from(["ann", "bob", "cat"])
GRANT = st.builds(Grant, st.integers(0, 2), st.booleans(), st.booleans(), st.integers(0, 3))


class AgainstAList(RuleBasedStateMachine):
    """Subscribe, unsubscribe, ask: the tree (and what it remembers) beside a plain dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.tree: Subscriptions[str] = Subscriptions()
        self.plain: dict[tuple[str, str], Grant] = {}
        self.asked: set[str] = set()

    @rule(who=WHO, pattern=FILTER, grant=GRANT)
    def subscribe(self, who: str, pattern: str, grant: Grant) -> None:
        assert self.tree.subscribe(who, pattern, grant) == ((who, pattern) not in self.plain)
        self.plain[who, pattern] = grant

    @rule(who=WHO, pattern=FILTER)
    def unsubscribe(self, who: str, pattern: str) -> None:
        assert self.tree.unsubscribe(who, pattern) == (self.plain.pop((who, pattern), None) is not None)

    @rule(data=st.data())
    def unsubscribe_one_that_is_there(self, data) -> None:
        if self.plain:
            who, pattern = data.draw(st.sampled_from(sorted(self.plain)))
            self.unsubscribe(who, pattern)

    @rule(topic=TOPIC)
    def ask(self, topic: str) -> None:
        self.asked.add(topic)

    @invariant()
    def every_topic_asked_for_has_the_routes_of_the_list(self) -> None:
        for topic in self.asked:
            expected: dict[str, list[Grant]] = {}
            for (who, pattern), grant in self.plain.items():
                if naive_match(pattern, topic):
                    expected.setdefault(who, []).append(grant)
            routes = self.tree.routes(topic)
            assert {route.subscriber for route in routes} == set(expected)
            assert len(routes) == len(expected)
            for route in routes:
                grants = expected[route.subscriber]
                assert route.qos == max(grant.qos for grant in grants)
                assert set(route.identifiers) == {grant.identifier for grant in grants} - {0}
                assert route.retain_as_published == any(grant.retain_as_published for grant in grants)
                local = [grant for grant in grants if not grant.no_local]
                own = route.for_publisher()
                assert (own is None) == (not local)
                assert own is None or own.qos == max(grant.qos for grant in local)

    @invariant()
    def the_count_is_right_and_an_empty_tree_has_no_nodes(self) -> None:
        assert len(self.tree) == len(self.plain)
        if not self.plain:
            assert self.tree.nodes() == 0

    def teardown(self) -> None:
        for who, pattern in self.plain:
            assert self.tree.unsubscribe(who, pattern)
        assert self.tree.nodes() == 0
        assert all(self.tree.routes(topic) == () for topic in self.asked)


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_leading_wildcard_does_not_match_a_dollar_topic() -> None:
    tree: Subscriptions[str] = Subscriptions()
    for pattern in ("#", "+/a", "+/#"):
        tree.subscribe(pattern, pattern, Grant())
    tree.subscribe("sys", "$SYS/#", Grant())
    assert [route.subscriber for route in tree.routes("$SYS/a")] == ["sys"]
    assert [route.subscriber for route in tree.routes("$SYS")] == ["sys"]


def test_a_wildcard_matches_a_dollar_on_a_later_level() -> None:
    tree: Subscriptions[str] = Subscriptions()
    tree.subscribe("ann", "a/+/b", Grant())
    assert len(tree.routes("a/$x/b")) == 1


def test_a_second_subscription_to_the_same_filter_replaces_the_first() -> None:
    tree: Subscriptions[str] = Subscriptions()
    assert tree.subscribe("ann", "a", Grant(qos=2, identifier=1))
    assert not tree.subscribe("ann", "a", Grant(qos=0))
    assert tree.get("ann", "a") == Grant(qos=0)
    assert tree.routes("a")[0].qos == 0
    assert tree.routes("a")[0].identifiers == ()


def test_filters_are_not_normalised() -> None:
    tree: Subscriptions[str] = Subscriptions()
    tree.subscribe("ann", "a//b", Grant())
    tree.subscribe("bob", "\u00e9", Grant())
    assert tree.routes("a/b") == ()
    assert tree.routes("e\u0301") == ()
    assert not tree.unsubscribe("ann", "a/b")


def test_a_filter_of_sixty_thousand_levels_is_an_ordinary_one() -> None:
    tree: Subscriptions[str] = Subscriptions()
    deep = "+/" * 32_000 + "#"
    tree.subscribe("ann", deep, Grant())
    assert len(tree.routes("/" * 32_000)) == 1
    assert tree.unsubscribe("ann", deep)
    assert tree.nodes() == 0


def test_filters_made_to_branch_cost_no_more_than_their_nodes() -> None:
    """Every choice of `+` and `a` on 12 levels, 4,096 filters: a topic meets each node once at the most."""
    tree: Subscriptions[int] = Subscriptions()
    for number in range(4_096):
        levels = ["+" if number >> place & 1 else "a" for place in range(12)]
        tree.subscribe(number, "/".join(levels), Grant())
    started = time.process_time()
    assert len(tree.routes("a/" * 11 + "a")) == 4_096
    assert tree.routes("a/" * 11 + "a/b") == ()
    assert time.process_time() - started < 1


@given(st.lists(TOPIC, max_size=30))
def test_what_is_remembered_is_bounded(topics: list[str]) -> None:
    tree: Subscriptions[int] = Subscriptions()
    for number in range(5):
        tree.subscribe(number, "#", Grant())
    from holdfast.broker.topics import subscriptions

    bound = subscriptions.REMEMBERED_ROUTES
    try:
        subscriptions.REMEMBERED_ROUTES = 20
        for topic in topics:
            tree.routes(topic)
            assert sum(1 + len(routes) for routes in tree._remembered.values()) <= 20
    finally:
        subscriptions.REMEMBERED_ROUTES = bound
