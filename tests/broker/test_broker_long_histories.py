"""Long histories with many crashes, drawn from a seed: what short random ones seldom meet.

Most of a history is messages and their handshakes, so that a crash mostly finds some of them half-way.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from random import Random

import pytest

from holdfast.broker import check
from holdfast.settings import Broker as Settings
from tests.broker.perfect_clients import Publisher, Subscriber
from tests.broker.speaking import migrations
from tests.broker.test_broker_histories import History, small_window
from tests.servers.stores import SqliteStores

SEEDS = int(os.environ.get("HOLDFAST_LONG_HISTORIES", "12"))
ROUNDS = 3
STEPS = 150
OTHERS = ("connect", "answer", "answer", "send", "receive", "send", "receive")


def drawn(random: Random, crash: float, cut: float, commit: float) -> tuple[str, int]:
    number = random.randrange(64)
    place = random.random()
    for share, kind in ((crash, "crash"), (cut, random.choice(("cut", "take over"))), (commit, "commit")):
        if place < share:
            return kind, number
        place -= share
    if place < 0.1:
        return "publish", number | 16 if random.random() < 0.8 else number  # mostly QoS 2
    return random.choice(OTHERS), number


async def play(random: Random, folder: Path, subscribers: list[Subscriber], *, is_crew: bool) -> None:
    publishers = [Publisher("p", ("t/a", "t/b")), Publisher("q", ("t/a",), 4)]
    crash, cut = random.choice((0.01, 0.03, 0.06)), random.choice((0.01, 0.05))
    commit = random.choice((0.1, 0.25, 0.4))
    async with SqliteStores(folder)(migrations()) as db:
        limits = Settings(max_inflight=random.choice((64, 1, 2)))
        history = History(db, limits, publishers, subscribers)
        await history.start()
        await history.subscribe()
        for _ in range(ROUNDS):
            for _ in range(STEPS):
                step = drawn(random, crash, cut, commit)
                await history.step(step)
                if step[0] == "crash":
                    for client in history.clients:
                        if random.random() < 0.8:
                            client.connect(history.house)
            await history.come_to_rest()
            (history.judge_crew if is_crew else history.judge)()
            assert await db.read(lambda view: list(check.problems(view))) == []
        history.turnstile.forget()
        await history.crash()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_or_doubled_in_many_crashes(seed: int) -> None:
    random = Random(seed)
    is_crew = bool(seed % 2)
    if is_crew:
        subscribers = [Subscriber(name, "$share/crew/t/#", 2, is_eager=name == "u") for name in "suv"]
    else:
        subscribers = [
            Subscriber("s", "t/#", 2),
            Subscriber("u", "t/+", 2, 4),
            Subscriber("e", "t/#", 2, is_eager=True),
        ]
    window = (1_000, 3, 2)[seed % 3]
    with tempfile.TemporaryDirectory(prefix="holdfast-history-") as folder, small_window(window):
        asyncio.run(play(random, Path(folder), subscribers, is_crew=is_crew))
