"""The flow, explored exhaustively: every order of commits, pushes, reads, acknowledgements and broken connections.

One conversation, one reader, a few messages. Pushes may be lost, doubled in time, out of order; writes may not fit.
Whatever happens: the cursor never passes a message that the reader has not stored, and when all is quiet the reader
has everything. The explorer drives the real `Flow` as `Delivery` and `Resend` do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from holdfast.chat.flow import Flow
from holdfast.chat.model import Kind

Own = frozenset[int]


class World(NamedTuple):
    committed: int
    cursor: int
    stored: frozenset[int]
    pushes: tuple[int, ...]
    """On their way: may be overtaken, may be lost."""
    sent: int | None
    """None: not connected."""
    wanted: int
    page: tuple[int, int] | None
    """A read under way: the head of its snapshot, and what was wanted when it began."""
    wire: tuple[int, ...]
    """Written, not yet received."""
    unacknowledged: tuple[int, ...]
    drops: int


class Rules(NamedTuple):
    """What the explorer may break, to show that the proof can fail."""

    direct_only_when_next: bool = True
    wanted_compared_after_a_read: bool = True


def flow_of(world: World) -> Flow:
    assert world.sent is not None
    flow = Flow(1, Kind.SINGLE, world.sent, world.wanted)
    flow.reading = world.page is not None
    for seq in world.unacknowledged:
        at = flow.sent
        flow.wrote(seq, seq, 2)
        flow.sent = at
    return flow


def with_flow(world: World, flow: Flow, **changes: object) -> World:
    left = tuple(written.seq for written in flow._written())
    return world._replace(sent=flow.sent, wanted=flow.wanted, unacknowledged=left, **changes)


def pushed(world: World, seq: int, own: Own, fits: bool, rules: Rules) -> World:
    """As `Delivery`: their own pass, the next one is written if it fits, anything else only wakes."""
    flow = flow_of(world)
    wire = world.wire
    if seq in own:
        if flow.is_next(seq):
            flow.passed(seq)
    elif (flow.is_next(seq) or not rules.direct_only_when_next) and fits:
        flow.wrote(max(flow.sent, seq), seq, 2)
        wire = (*wire, seq)
    else:
        flow.wake(seq)
    return with_flow(world, flow, wire=wire)


def read(world: World, own: Own, fits: int, rules: Rules) -> World:
    """As `Resend`: writes what it read above `sent` as far as it fits; an empty read compares `wanted` once more."""
    assert world.page is not None
    head, wanted = world.page
    flow = flow_of(world)
    flow.reading = False
    found = range(flow.sent + 1, head + 1)
    wire = world.wire
    if found:
        flow.wake(head)
    for seq in found:
        if seq in own:
            flow.passed(seq)
        elif fits:
            flow.wrote(seq, seq, 2)
            wire = (*wire, seq)
            fits -= 1
        else:
            break
    if not found:
        flow.rest(wanted)
    if not rules.wanted_compared_after_a_read:
        flow.wanted = flow.sent
    return with_flow(world, flow, wire=wire, page=None)


def steps(world: World, most: int, own: Own, lossy: bool, rules: Rules) -> Iterator[World]:
    if world.committed < most:
        seq = world.committed + 1
        yield world._replace(committed=seq, pushes=(*world.pushes, seq))
    for at, seq in enumerate(world.pushes):
        left = world._replace(pushes=world.pushes[:at] + world.pushes[at + 1 :])
        if world.sent is None:
            yield left
            continue
        if lossy:
            yield left
        for fits in (True, False):
            yield pushed(left, seq, own, fits, rules)
    if world.sent is None:
        head = world.committed
        yield world._replace(sent=world.cursor, wanted=head, page=None, wire=(), unacknowledged=())
        return
    if world.drops:
        yield world._replace(sent=None, page=None, wire=(), unacknowledged=(), drops=world.drops - 1)
    if world.page is not None:
        for fits in (0, 1, 9):
            yield read(world, own, fits, rules)
    elif world.wanted > world.sent:
        yield world._replace(page=(world.committed, world.wanted))
    if world.wire:
        seq = world.wire[0]
        flow = flow_of(world)
        flow.acknowledge(seq)
        yield with_flow(
            world,
            flow,
            wire=world.wire[1:],
            stored=world.stored | {seq},
            cursor=max(world.cursor, flow.settled(seq)),
        )


def is_quiet(world: World) -> bool:
    return (
        world.sent is not None
        and not world.pushes
        and world.page is None
        and world.wanted <= world.sent
        and not world.wire
    )


def explore(most: int, own: Own, *, lossy: bool, rules: Rules = Rules()) -> tuple[int, list[str]]:
    begin = World(0, 0, frozenset(), (), None, 0, None, (), (), 2)
    seen = {begin}
    queue = deque([begin])
    wrong: list[str] = []
    while queue:
        world = queue.popleft()
        missing = [seq for seq in range(1, world.cursor + 1) if seq not in world.stored and seq not in own]
        if missing:
            wrong.append(f"the cursor is at {world.cursor}, and {missing} were never stored: {world}")
            break
        complete = all(seq in world.stored or seq in own for seq in range(1, world.committed + 1))
        if not lossy and is_quiet(world) and not complete:
            wrong.append(f"all is quiet, and something is missing: {world}")
            break
        for after in steps(world, most, own, lossy, rules):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return len(seen), wrong


@pytest.mark.parametrize("own", [(), (1,), (2,), (1, 3), (2, 3), (1, 2, 3)])
def test_nothing_is_skipped_and_nothing_stays_behind_whatever_the_order(own: tuple[int, ...]) -> None:
    states, wrong = explore(3, frozenset(own), lossy=False)
    assert wrong == []
    assert states > 100


@pytest.mark.parametrize("own", [(), (2,)])
def test_a_lost_push_skips_nothing(own: tuple[int, ...]) -> None:
    """It leaves something behind for the next look at the heads, no more."""
    assert explore(3, frozenset(own), lossy=True)[1] == []


BROKEN: list[Callable[[], Rules]] = [
    lambda: Rules(direct_only_when_next=False),
    lambda: Rules(wanted_compared_after_a_read=False),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_the_proof_fails_when_a_rule_is_broken(broken: Callable[[], Rules]) -> None:
    assert explore(3, frozenset(), lossy=False, rules=broken())[1] != []


# -- what the acknowledgement of a message closes


def test_an_acknowledgement_closes_all_before_it_and_carries_the_cursor_over_their_own() -> None:
    flow = Flow(1, Kind.GROUP, 0)
    for seq in (1, 2, 4):
        flow.wrote(seq, 100 + seq, 9)
    flow.passed(5)
    assert flow.find(104) is not None
    assert flow.acknowledge(2) == 2
    assert flow.settled(2) == 2, "4 is still open"
    assert flow.acknowledge(1) == 0
    assert flow.acknowledge(4) == 1
    assert (flow.open, flow.settled(4)) == (0, 5)


def test_what_was_fetched_over_http_need_not_be_sent() -> None:
    flow = Flow(1, Kind.GROUP, 3)
    flow.acknowledge(7)
    assert flow.sent == 7
    unknown = Flow(1, Kind.GROUP, -1)
    unknown.acknowledge(7)
    assert unknown.sent == -1, "where it begins is for the log to say"
