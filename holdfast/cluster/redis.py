"""`Cluster` over Redis (or Valkey).

Two connections of ours: one that is told to (commands, in pipelines) and one that listens. Each finds its own way
back when it breaks. What is told while the way is broken, or faster than Redis takes it, is dropped and counted; when
the way is there again everybody is told that something may be missing (`on_back`).

| | commands | listening | rooms see |
|---|---|---|---|
| up | pipelines, each within the timeout | a subscription | answers |
| an answer late, or no connection | dropped; tried every `REST_SECONDS` | as it is | "not known" at once |
| the subscription gone | as it is | again every `REST_SECONDS` | nothing heard; then `on_back` |
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from holdfast.cluster.cluster import Cluster
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Redis as Settings

T = TypeVar("T")

MOST_WAITING = 20_000  # commands; more are dropped
PIPELINE = 500
REST_SECONDS = 1.0
ROUTE_SECONDS = 90
SILENCE_SECONDS = 5.0  # a subscription is asked whether it lives when it has said nothing for so long
BACK = b"\0back"  # told to all when commands go through again
FAILURES = (RedisError, OSError, TimeoutError, asyncio.TimeoutError)

log = get_logger("cluster")
Words = tuple[str | bytes | int, ...]


class RedisCluster(Cluster):
    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.instance = secrets.token_hex(4)
        self._timeout = settings.timeout_ms / 1000
        self._redis = _client(settings.url, self._timeout)
        self._ear = _client(settings.url, max(2.0, self._timeout))
        self._waiting: deque[Words] = deque()
        self._something = asyncio.Event()
        self._rests_until = 0.0
        self._lost = False
        self._listeners: list[Callable[[bytes], None]] = []
        self._on_back: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._told = metrics.counter("holdfast_cluster_told", "Commands for other processes", "result")
        metrics.gauge("holdfast_cluster_up", "1 while Redis answers", lambda: float(self.is_up))

    async def start(self, namespace: str) -> None:
        self._prefix = f"holdfast:{namespace}"
        self._channel = f"{self._prefix}:all"
        self._from = self.instance.encode()
        self._tasks = [
            asyncio.create_task(self._say(), name="cluster: commands"),
            asyncio.create_task(self._listen(), name="cluster: listening"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in (self._redis, self._ear):
            try:
                await client.aclose()
            except FAILURES as error:
                log.debug("not_closed", error=str(error))

    @property
    def is_alone(self) -> bool:
        return False

    @property
    def is_up(self) -> bool:
        return asyncio.get_running_loop().time() >= self._rests_until

    def hear(self, listener: Callable[[bytes], None]) -> None:
        self._listeners.append(listener)

    def on_back(self, listener: Callable[[], None]) -> None:
        self._on_back.append(listener)

    # -- commands that nobody waits for

    def tell(self, what: bytes) -> None:
        self._put("PUBLISH", self._channel, self._from + what)

    def arrived(self, user: int) -> None:
        key = self._route(user)
        self._put("HSET", key, self.instance, 1)
        self._put("EXPIRE", key, ROUTE_SECONDS)

    def left(self, user: int) -> None:
        self._put("HDEL", self._route(user), self.instance)

    def still_here(self, users: Iterable[int]) -> None:
        for user in users:
            self.arrived(user)

    def remember(self, what: Mapping[str, bytes], seconds: int) -> None:
        for name, value in what.items():
            self._put("SET", f"{self._prefix}:memo:{name}", value, "EX", seconds)

    def _put(self, *words: str | bytes | int) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._lost = True
            self._told.add("dropped")
            return
        self._waiting.append(words)
        self._something.set()

    async def _say(self) -> None:
        while True:
            while not self._waiting:
                self._something.clear()
                await self._something.wait()
            rest = self._rests_until - asyncio.get_running_loop().time()
            if rest > 0:
                await asyncio.sleep(rest)
            batch = list(islice(self._waiting, PIPELINE))
            for _ in batch:
                self._waiting.popleft()
            if self._lost:
                # first, so that nobody relies on what follows before they have looked for what is missing
                batch.insert(0, ("PUBLISH", self._channel, self._from + BACK))
            sent = await self._ask(lambda words=batch: self._pipeline(words))  # type: ignore[misc]
            if sent is None:
                self._told.add("dropped", amount=len(batch))
                self._lost = True
                self._drop_all()
            else:
                self._told.add("sent", amount=len(batch))
                if self._lost:
                    self._lost = False
                    self._tell_back()

    def _drop_all(self) -> None:
        """What waited is old by the time that Redis answers again; `BACK` will stand for all of it."""
        self._told.add("dropped", amount=len(self._waiting))
        self._waiting.clear()
        self._put("PING")

    async def _pipeline(self, batch: Sequence[Words]) -> bool:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for words in batch:
                pipeline.execute_command(*words)
            await pipeline.execute()
        return True

    # -- questions

    async def where(self, user: int) -> Sequence[str] | None:
        found = await self._ask(lambda: self._command("HKEYS", self._route(user)))
        if found is None:
            return None
        return [name.decode() for name in found if name != self._from]

    async def lock(self, name: str, seconds: float) -> bool | None:
        async def ask() -> bool:
            key = f"{self._prefix}:lock:{name}"
            return bool(await self._command("SET", key, self.instance, "NX", "PX", round(seconds * 1000)))

        return await self._ask(ask)

    async def recall(self, names: Sequence[str]) -> Sequence[bytes | None]:
        keys = [f"{self._prefix}:memo:{name}" for name in names]
        found = await self._ask(lambda: self._command("MGET", *keys))
        return [None] * len(names) if found is None else found

    def _command(self, *words: str | int) -> Awaitable[Any]:
        found: Awaitable[Any] = self._redis.execute_command(*words)  # type: ignore[no-untyped-call]
        return found

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T | None:
        """The answer, or None: not in time, or not at all. Then nobody asks for a moment."""
        if not self.is_up:
            return None
        try:
            async with asyncio.timeout(self._timeout):
                return await question()
        except FAILURES as error:
            loop = asyncio.get_running_loop()
            if not self._lost:
                log.warning("redis_does_not_answer", error=str(error) or type(error).__name__)
            self._rests_until = loop.time() + REST_SECONDS
            self._lost = True
            self._put("PING")  # somebody has to find out when it answers again
            return None

    def _route(self, user: int) -> str:
        return f"{self._prefix}:route:{user}"

    # -- listening

    async def _listen(self) -> None:
        has_heard = False
        while True:
            try:
                async with self._ear.pubsub() as subscription:
                    await subscription.subscribe(self._channel)
                    if has_heard:
                        log.info("redis_is_heard_again")
                        self._tell_back()
                    has_heard = True
                    await self._hear_all(subscription)
            except FAILURES as error:
                log.warning("redis_is_not_heard", error=str(error) or type(error).__name__)
                has_heard = True
            await asyncio.sleep(REST_SECONDS)

    async def _hear_all(self, subscription: PubSub) -> None:
        """Until the connection breaks. One that is silent is asked, since a machine that vanished says nothing."""
        asked = False
        while True:
            message = await subscription.get_message(ignore_subscribe_messages=True, timeout=SILENCE_SECONDS)
            if message is None:
                if asked:
                    raise TimeoutError("the subscription is silent")
                await subscription.ping()
                asked = True
                continue
            asked = False
            if message["type"] == "message":
                self._heard(message["data"])

    def _heard(self, data: bytes) -> None:
        sender, what = data[: len(self._from)], data[len(self._from) :]
        if sender == self._from:
            return
        if what == BACK:
            self._tell_back()
            return
        for listener in self._listeners:
            try:
                listener(what)
            except Exception:
                # what one process says wrongly must not make us deaf to the others
                log.exception("not_understood")

    def _tell_back(self) -> None:
        for listener in self._on_back:
            listener()


def _client(url: str, timeout: float) -> Redis:
    return Redis.from_url(
        url,
        socket_connect_timeout=max(timeout, 0.5),
        socket_timeout=None,  # ours is around every question
        socket_keepalive=True,
        health_check_interval=0,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
    )
