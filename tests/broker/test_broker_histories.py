"""Random histories: messages, acknowledgements, cut connections, takeovers, commits and crashes in any order.

Whatever happened, in the end: every message that was acknowledged to its publisher has arrived, at QoS 2 once, in the
order of its publisher and topic; nothing waits for ever; and the store holds nothing that nobody needs.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.broker import check, delivery
from holdfast.broker.session import outgoing
from holdfast.settings import Broker as Settings
from holdfast.store import Database
from tests.broker.perfect_clients import PerfectClient, Publisher, Subscriber
from tests.broker.speaking import House, migrations, settle
from tests.servers.stores import SqliteStores

EXAMPLES = int(os.environ.get("HOLDFAST_HISTORIES", "60"))
PATIENCE = 30.0
"""Seconds in which everything comes to rest, on a loaded machine too."""


@contextmanager
def small_window(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outgoing, "WINDOW", size)
        patch.setattr(delivery, "WINDOW", size)
        yield


class Turnstile:
    """Lets one batch to the store at a time, when it is told to; what waits when the process dies never happened."""

    def __init__(self, db: Database) -> None:
        self._write = db.write
        self._waiting: deque[asyncio.Future[None]] = deque()
        db.write = self.write  # type: ignore[method-assign]

    async def write(self, action: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(gate)
        await gate
        return await self._write(action, *args, **kwargs)

    async def pass_one(self, db: Database) -> None:
        while self._waiting:
            gate = self._waiting.popleft()
            if not gate.done():
                gate.set_result(None)
                await settle()
                await self._write(lambda tx: None)  # behind it in the store's line
                await settle()
                return

    def forget(self) -> None:
        for gate in self._waiting:
            gate.cancel()
        self._waiting.clear()


class History:
    def __init__(
        self, db: Database, broker: Settings, publishers: list[Publisher], subscribers: list[Subscriber]
    ) -> None:
        self.db = db
        self.settings = broker
        self.turnstile = Turnstile(db)
        self.publishers = publishers
        self.subscribers = subscribers
        self.house: House

    @property
    def clients(self) -> list[PerfectClient]:
        return [*self.publishers, *self.subscribers]

    async def start(self) -> None:
        self.house = House(self.db, self.settings)
        await self.house.broker.start()
        self.house.broker.ticking.stop()

    async def subscribe(self) -> None:
        for subscriber in self.subscribers:
            subscriber.connect(self.house)
            while not subscriber.is_subscribed:
                await self.step(("receive", self.clients.index(subscriber)))
                await self.step(("send", self.clients.index(subscriber)))
                await self.step(("commit", 0))

    async def step(self, what: tuple[str, int]) -> None:
        kind, number = what
        client = self.clients[number % len(self.clients)]
        publisher = self.publishers[number % len(self.publishers)]
        match kind:
            case "publish":
                publisher.publish(1 + (number >> 4) % 2)
            case "connect" | "take over":
                if kind == "take over" or client.speaker is None:
                    client.connect(self.house)
            case "cut":
                client.cut()
            case "receive":
                client.receive()
            case "send":
                client.send()
            case "answer":
                while client.receive() or client.send():
                    pass
            case "commit":
                await self.turnstile.pass_one(self.db)
            case "crash":
                self.turnstile.forget()
                await self.crash()
        await settle()

    async def crash(self) -> None:
        broker = self.house.broker
        broker.ticking.stop()
        for part in (broker.delivery, broker.leftovers, broker.admission):
            part.stop()
        broker.journal.give_up()
        broker.turns.start(asyncio.get_running_loop(), lambda _session: None, lambda: None)
        await settle()
        self.turnstile.forget()
        for client in self.clients:
            client.speaker = None
            client.cut()
        await self.start()

    async def come_to_rest(self) -> None:
        """Everyone is connected, everything is answered and committed, until nothing is left to do."""
        async with asyncio.timeout(PATIENCE):
            while not self.is_at_rest():
                for client in self.clients:
                    if client.speaker is None:
                        client.connect(self.house)
                    while client.receive() or client.send():
                        pass
                await settle()
                await self.turnstile.pass_one(self.db)
                await asyncio.sleep(0.0005)  # queues are read on threads

    def is_at_rest(self) -> bool:
        broker = self.house.broker
        return (
            all(client.is_in and not client.inbox and not client.outbox for client in self.clients)
            and not any(publisher.unacknowledged for publisher in self.publishers)
            and not broker.queued_count
            and broker.journal.is_clean
        )

    def judge(self) -> None:
        for publisher in self.publishers:
            for subscriber in self.subscribers:
                self._judge_one(publisher, subscriber)
        broker = self.house.broker
        assert broker.queued_count == broker.queued_bytes == 0

    def judge_crew(self) -> None:
        """Those who share a subscription got everything together, in any order, and at QoS 2 once."""
        got = [payload for subscriber in self.subscribers for _, _, payload in subscriber.got]
        for publisher in self.publishers:
            assert {payload for _, _, payload in publisher.published} <= set(got), "a message was lost"
        exactly_once = [payload for each in self.subscribers for _, qos, payload in each.got if qos == 2]
        assert len(exactly_once) == len(set(exactly_once)), "a QoS 2 message came twice"

    def _judge_one(self, publisher: Publisher, subscriber: Subscriber) -> None:
        mine = f"{publisher.name}:".encode()
        for topic in publisher.topics:
            sent = [payload for name, _, payload in publisher.published if name == topic]
            got = [
                payload for name, _, payload in subscriber.got if name == topic and payload.startswith(mine)
            ]
            firsts = list(dict.fromkeys(got))
            assert set(sent) <= set(got), "a message was lost"
            assert firsts == sorted(firsts, key=sent.index), "the order was lost"
            exactly_once = [
                payload
                for name, qos, payload in subscriber.got
                if name == topic and qos == 2 and payload.startswith(mine)
            ]
            assert len(exactly_once) == len(set(exactly_once)), "a QoS 2 message came twice"


KINDS = (
    ["publish"] * 6
    + ["send"] * 5
    + ["receive"] * 5
    + ["answer"] * 3
    + ["commit"] * 6
    + ["connect"] * 3
    + ["cut", "take over", "crash"]
)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 63)), min_size=10, max_size=120)


async def play(
    folder: Path,
    steps: list[tuple[str, int]],
    broker: Settings,
    subscribers: list[Subscriber],
    judge: Callable[[History], None],
) -> None:
    publishers = [Publisher("p", ("t/a", "t/b")), Publisher("q", ("t/a",), 4)]
    async with SqliteStores(folder)(migrations()) as db:
        history = History(db, broker, publishers, subscribers)
        await history.start()
        await history.subscribe()
        for publisher in publishers:
            publisher.connect(history.house)
        for step in steps:
            await history.step(step)
        await history.come_to_rest()
        judge(history)
        assert await db.read(lambda view: list(check.problems(view))) == []
        history.turnstile.forget()
        await history.crash()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.sampled_from((64, 1)), st.sampled_from((1_000, 3)))
@example([("publish", 16), ("answer", 0), ("crash", 0), ("connect", 0)], 64, 1_000)
def test_nothing_acknowledged_is_lost_or_doubled_whatever_happens(
    steps: list[tuple[str, int]], max_inflight: int, window: int
) -> None:
    """`window` is how many messages of a queue stay in memory: with 3, most are read back from the store."""
    with tempfile.TemporaryDirectory(prefix="holdfast-history-") as folder, small_window(window):
        subscribers = [
            Subscriber("s", "t/#", 2),
            Subscriber("u", "t/+", 1, 4),
            Subscriber("e", "t/#", 2, is_eager=True),
        ]
        asyncio.run(
            play(Path(folder), steps, Settings(max_inflight=max_inflight), subscribers, History.judge)
        )


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.sampled_from((64, 1)), st.sampled_from((1_000, 3)))
def test_those_who_share_a_subscription_lose_and_double_nothing_either(
    steps: list[tuple[str, int]], max_inflight: int, window: int
) -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-history-") as folder, small_window(window):
        crew = [Subscriber(name, "$share/crew/t/#", 2, is_eager=name == "u") for name in ("s", "u", "v")]
        asyncio.run(play(Path(folder), steps, Settings(max_inflight=max_inflight), crew, History.judge_crew))
