"""MQTT load, in a process of its own: one task for each JSON line, answered with what was counted.

    python -m bench.load.mqtt

Every task keeps a window, so that no broker is made to drop what it is measured by, and ends only when everything that
was sent has come: what is lost is an error, not a faster broker.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections import deque
from typing import Literal

import msgspec
import uvloop
from msgspec import Struct

from bench.load.mqtt_connections import Connection, Publisher, Subscriber
from bench.load.mqtt_wire import publish, size_of_publish

STALLED_SECONDS = float(os.environ.get("HOLDFAST_BENCH_STALLED_SECONDS", "60"))
PAYLOAD = bytes(range(64))
FAN_OUT = "fan/out"
AWAY = "away/queue"
BATCHES = 4
FILLED_AT_ONCE = 500
QUEUERS = 4
Kind = Literal["fan-out", "pairs", "retain", "replay", "queue", "drain"]


class Task(Struct, frozen=True):
    kind: Kind
    address: str
    seconds: float = 0.0
    count: int = 0
    """Subscribers, pairs or messages."""
    window: int = 20
    qos: int = 1
    clean: bool = True
    name: str = ""
    """Of its clients."""


class Counted(Struct, frozen=True):
    messages: int
    seconds: float


class Tally:
    """How many have come; when the last of all that were wanted did."""

    def __init__(self) -> None:
        self.came = 0
        self._wanted = sys.maxsize
        self._all = asyncio.Event()
        self._last = 0.0

    def more(self, count: int) -> None:
        self.came += count
        if self.came >= self._wanted:
            self._last = time.perf_counter()
            self._all.set()

    async def all(self, wanted: int) -> float:
        self._wanted = wanted
        self.more(0)
        before = -1
        while not self._all.is_set():
            if self.came == before:
                raise SystemExit(f"only {self.came} of {wanted} messages came")
            before = self.came
            await asyncio.wait([asyncio.ensure_future(self._all.wait())], timeout=STALLED_SECONDS)
        if self.came > wanted:
            raise SystemExit(f"{self.came} messages came, {wanted} were sent")
        return self._last


class FanOut:
    """One publisher at QoS 0; a batch goes out when the slowest subscriber has the one a window before."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._batch = max(1, task.window // BATCHES)
        self._chunk = publish(FAN_OUT, PAYLOAD) * self._batch
        self._tally = Tally()
        self._lacking: deque[int] = deque()
        """For each batch under way: how many subscribers have yet to get it."""
        self._oldest = 0
        self._sent = 0
        self._until = 0.0

    async def run(self) -> Counted:
        task = self._task
        self._publisher = await Connection.open(task.address, f"{task.name}-publisher")
        subscribers = [await self._subscriber(number) for number in range(task.count)]
        began = time.perf_counter()
        self._until = began + task.seconds
        for _ in range(BATCHES):
            self._send()
        await asyncio.sleep(task.seconds)
        self._until = 0.0
        ended = await self._tally.all(self._sent * self._batch * task.count)
        close(self._publisher, *subscribers)
        return Counted(self._tally.came, ended - began)

    async def _subscriber(self, number: int) -> Subscriber:
        have = 0

        def counted(more: int) -> None:
            nonlocal have
            whole = have // self._batch
            have += more
            self._tally.more(more)
            for batch in range(whole, have // self._batch):
                self._lacking[batch - self._oldest] -= 1
            while self._lacking and not self._lacking[0]:
                self._lacking.popleft()
                self._oldest += 1
                if time.perf_counter() < self._until:
                    self._send()

        size = size_of_publish(FAN_OUT, PAYLOAD, 0)
        name = f"{self._task.name}-{number}"
        subscriber = await Subscriber.open(self._task.address, name, size, 0, 0, counted)
        await subscriber.subscribe(FAN_OUT)
        return subscriber

    def _send(self) -> None:
        self._lacking.append(self._task.count)
        self._sent += 1
        self._publisher.write(self._chunk)


async def pairs(task: Task) -> Counted:
    """Each publisher keeps `window` messages unacknowledged; each subscriber has a topic of its own."""
    tally = Tally()
    subscribers, publishers = [], []
    for number in range(task.count):
        topic = f"pair/{number:06}"
        subscriber = await _subscriber(task, f"{task.name}-s{number}", topic, tally)
        await subscriber.subscribe(topic)
        subscribers.append(subscriber)
        ring = _ring(topic, task.window)
        publishers.append(await Publisher.open(task.address, f"{task.name}-p{number}", ring))
    began = time.perf_counter()
    for publisher in publishers:
        publisher.start()
    await asyncio.sleep(task.seconds)
    for publisher in publishers:
        publisher.stop()
        await publisher.acknowledged.wait()
    ended = await tally.all(sum(publisher.sent for publisher in publishers))
    close(*publishers, *subscribers)
    if not task.clean:
        await _forget(task.address, *(f"{task.name}-s{number}" for number in range(task.count)))
    return Counted(tally.came, ended - began)


async def retain(task: Task) -> Counted:
    """Fills the broker with retained messages."""
    publisher = await Publisher.open(task.address, f"{task.name}-publisher", ())
    began = time.perf_counter()
    for first in range(0, task.count, FILLED_AT_ONCE):
        numbers = range(first, min(first + FILLED_AT_ONCE, task.count))
        publisher.write(
            b"".join(publish(retained_topic(n), PAYLOAD, 1, n - first + 1, retain=True) for n in numbers)
        )
        publisher.sent += len(numbers)
        publisher.acknowledged.clear()
        publisher.stop()
        await publisher.acknowledged.wait()
    close(publisher)
    return Counted(task.count, time.perf_counter() - began)


async def replay(task: Task) -> Counted:
    """A new subscriber gets every retained message."""
    tally = Tally()
    subscriber = await _subscriber(task, f"{task.name}-s", retained_topic(0), tally)
    began = time.perf_counter()
    await subscriber.subscribe(f"{retained_topic(0)[:-6]}#")
    ended = await tally.all(task.count)
    close(subscriber)
    return Counted(task.count, ended - began)


async def queue(task: Task) -> Counted:
    """A subscriber that goes away, and `count` messages for it while it is."""
    subscriber = await _subscriber(task, f"{task.name}-s", AWAY, Tally())
    await subscriber.subscribe(AWAY)
    close(subscriber)
    share = task.count // QUEUERS
    ring = _ring(AWAY, task.window)
    publishers = [
        await Publisher.open(task.address, f"{task.name}-p{number}", ring, share) for number in range(QUEUERS)
    ]
    began = time.perf_counter()
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        await publisher.acknowledged.wait()
    ended = time.perf_counter()
    close(*publishers)
    return Counted(share * QUEUERS, ended - began)


async def drain(task: Task) -> Counted:
    """It comes back and takes everything."""
    tally = Tally()
    began = time.perf_counter()
    subscriber = await _subscriber(task, f"{task.name}-s", AWAY, tally)
    ended = await tally.all(task.count)
    close(subscriber)
    await _forget(task.address, f"{task.name}-s")
    return Counted(tally.came, ended - began)


def retained_topic(number: int) -> str:
    return f"kept/{number:06}"


def _ring(topic: str, window: int) -> list[bytes]:
    return [publish(topic, PAYLOAD, 1, number) for number in range(1, window + 1)]


async def _subscriber(task: Task, name: str, topic: str, tally: Tally) -> Subscriber:
    size = size_of_publish(topic, PAYLOAD, task.qos)
    return await Subscriber.open(
        task.address, name, size, 4 + len(topic), task.qos, tally.more, clean=task.clean
    )


async def _forget(address: str, *names: str) -> None:
    for name in names:
        close(await Connection.open(address, name))


def close(*connections: Connection) -> None:
    for connection in connections:
        connection.close()


async def measure(task: Task) -> Counted:
    tasks = {"pairs": pairs, "retain": retain, "replay": replay, "queue": queue, "drain": drain}
    gc.collect()
    gc.disable()  # our own pauses must not be taken for the broker's
    try:
        return await (FanOut(task).run() if task.kind == "fan-out" else tasks[task.kind](task))
    finally:
        gc.enable()


def main() -> None:
    for line in sys.stdin.buffer:
        done = uvloop.run(measure(msgspec.json.decode(line, type=Task)))
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
