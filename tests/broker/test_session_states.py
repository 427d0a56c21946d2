"""The state machine of a session's outgoing messages: its table, its packet ids, its order, beside a plain model."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.broker.message import Message
from holdfast.broker.session import LARGEST_ID, WINDOW, Entry, Incoming, Outgoing, State, packet_id_of

SESSION = cast("Any", None)  # the machine only passes it on
COMMITTED = 10**9


def queue(*qos: int, persistent: bool = False) -> Outgoing:
    outgoing = Outgoing(persistent=persistent)
    for each in qos:
        outgoing.add(SESSION, Message("t", b"x"), each)
    return outgoing


def sent(qos: int) -> Outgoing:
    outgoing = queue(qos)
    assert outgoing.next(COMMITTED) is not None
    return outgoing


def released() -> Outgoing:
    outgoing = sent(2)
    outgoing.receive(1, failed=False)
    return outgoing


STATES = {"sent at QoS 1": lambda: sent(1), "sent at QoS 2": lambda: sent(2), "released": released}
EVENTS = {
    "PUBACK": lambda outgoing: outgoing.acknowledge(1),
    "PUBREC": lambda outgoing: outgoing.receive(1, failed=False),
    "PUBREC with an error": lambda outgoing: outgoing.receive(1, failed=True),
    "PUBCOMP": lambda outgoing: outgoing.complete(1),
}
TABLE = {
    ("sent at QoS 1", "PUBACK"): State.GONE,
    ("sent at QoS 2", "PUBREC"): State.RELEASED,
    ("sent at QoS 2", "PUBREC with an error"): State.GONE,
    ("released", "PUBREC"): State.RELEASED,
    ("released", "PUBREC with an error"): State.RELEASED,
    ("released", "PUBCOMP"): State.GONE,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", EVENTS)
def test_each_state_knows_its_events_and_ignores_the_others(state: str, event: str) -> None:
    outgoing = STATES[state]()
    (entry,) = outgoing.inflight.values()
    before = entry.state
    found = EVENTS[event](outgoing)
    expected = TABLE.get((state, event))
    assert (found is entry) is (expected is not None)
    assert entry.state == (before if expected is None else expected)
    assert (entry in outgoing.inflight.values()) is (entry.state is not State.GONE)
    assert outgoing.count == (0 if entry.state is State.GONE else 1)


def test_packet_ids_start_at_1_count_up_and_never_are_0() -> None:
    assert [packet_id_of(n) for n in (1, 2, 65_535, 65_536, 131_070, 131_071)] == [1, 2, 65_535, 1, 65_535, 1]


def test_an_id_is_used_again_after_the_removal_of_its_last_message_is_committed() -> None:
    outgoing = queue(1)
    first = outgoing.next(5)
    assert first is not None
    outgoing.last = LARGEST_ID
    outgoing.add(SESSION, Message("t", b"again"), 1)
    assert outgoing.next(5) is None  # it is in flight
    outgoing.acknowledge(1)
    outgoing.removal = 6
    assert outgoing.next(5) is None  # it is gone, and not from the disk
    again = outgoing.next(6)
    assert again is not None
    assert packet_id_of(again.number) == 1


def test_a_message_that_is_not_committed_keeps_back_those_behind_it() -> None:
    outgoing = queue(2, 1)
    outgoing.waiting[0].hold = 3
    assert outgoing.next(2) is None
    assert [outgoing.next(3), outgoing.next(3)] == list(outgoing.inflight.values())


def test_what_may_have_been_sent_or_is_replayed_is_never_dropped() -> None:
    outgoing = queue(1, 1, 1)
    outgoing.waiting[0].dup = True
    outgoing.waiting[1].replay = True
    dropped = outgoing.drop_oldest()
    assert dropped is not None
    assert dropped.number == 3
    assert outgoing.drop_oldest() is None


def test_a_persistent_queue_spills_above_its_window_and_another_does_not() -> None:
    kept, spilling = queue(*[1] * (WINDOW + 5)), queue(*[1] * (WINDOW + 5), persistent=True)
    assert (kept.spilled, len(kept.waiting)) == (False, WINDOW + 5)
    assert (spilling.spilled, len(spilling.waiting), spilling.loaded) == (True, WINDOW, WINDOW)
    assert spilling.count == kept.count


def test_a_pubrec_for_a_message_that_is_still_to_be_sent_again_releases_it() -> None:
    outgoing = queue(2, 2)
    outgoing.waiting[0].dup = True
    entry = outgoing.receive(1, failed=False)
    assert entry is outgoing.waiting[0]
    assert outgoing.receive(2, failed=False) is None  # it was never sent
    assert outgoing.next(COMMITTED) is entry
    assert entry.state is State.RELEASED


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4))))
def test_incoming_ids_are_new_once_until_they_are_released(steps: list[tuple[bool, int]]) -> None:
    incoming, model = Incoming(), set[int]()
    for is_publish, packet_id in steps:
        if is_publish:
            assert incoming.receive(packet_id) is (packet_id not in model)
            model.add(packet_id)
        else:
            assert incoming.release(packet_id) is (packet_id in model)
            model.discard(packet_id)
        assert len(incoming) == len(model)


class BesideAList(RuleBasedStateMachine):
    """The queue beside a list of numbers: what is there, in which order, what may be in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.outgoing = Outgoing(persistent=True)
        self.outgoing.limit = 3
        self.store: dict[int, Entry] = {}

    @rule(qos=st.sampled_from((1, 2)), count=st.integers(1, 3))
    def add(self, qos: int, count: int) -> None:
        for _ in range(count):
            entry = self.outgoing.add(SESSION, Message("t", b"x"), qos)
            self.store[entry.number] = entry

    @rule()
    def send(self) -> None:
        entry = self.outgoing.next(COMMITTED)
        if entry is not None:
            others = [number for number in self.outgoing.inflight.values() if number is not entry]
            assert all(other.number < entry.number for other in others)

    @precondition(lambda self: self.outgoing.inflight)
    @rule(data=st.data())
    def answer(self, data: Any) -> None:
        packet_id = data.draw(st.sampled_from(sorted(self.outgoing.inflight)))
        entry = self.outgoing.inflight[packet_id]
        if entry.qos == 1:
            self.outgoing.acknowledge(packet_id)
        elif entry.state is State.SENT:
            self.outgoing.receive(packet_id, failed=False)
        else:
            self.outgoing.complete(packet_id)
        if entry.state is State.GONE:
            del self.store[entry.number]

    @rule()
    def go_away(self) -> None:
        self.outgoing.forget()

    @precondition(lambda self: self.outgoing.spilled)
    @rule(count=st.integers(1, 4))
    def come_back(self, count: int) -> None:
        behind = sorted(number for number in self.store if number > self.outgoing.loaded)
        part = [self.again(number) for number in behind[:count]]
        self.outgoing.load(part, complete=len(behind) <= count)

    def again(self, number: int) -> Entry:
        known = self.store[number]
        entry = self.store[number] = Entry(SESSION, known.message, number, known.qos)
        entry.dup = number <= self.outgoing.sent
        if known.state is State.RELEASED:
            entry.state = State.RELEASED
        return entry

    @rule()
    def drop(self) -> None:
        entry = self.outgoing.drop_oldest()
        if entry is not None:
            assert entry.number > self.outgoing.sent
            del self.store[entry.number]

    @invariant()
    def it_holds_what_the_list_holds(self) -> None:
        outgoing = self.outgoing
        assert outgoing.count == len(self.store)
        assert outgoing.size == sum(entry.message.size for entry in self.store.values())
        here = [*outgoing.inflight.values(), *outgoing.waiting]
        assert [entry.number for entry in here] == sorted(entry.number for entry in here)
        assert all(self.store[entry.number] is entry for entry in here)
        in_store_alone = len(self.store) - len(here)
        assert in_store_alone == 0 or outgoing.spilled
        assert outgoing.head() <= min(self.store, default=outgoing.last + 1)
        assert len(outgoing.inflight) <= 3
        assert outgoing.waiting_size == sum(entry.message.size for entry in outgoing.waiting)


TestBesideAList = BesideAList.TestCase
TestBesideAList.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
