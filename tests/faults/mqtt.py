"""MQTT under the storm: persistent sessions that publish, subscribe, unsubscribe and break off, with QoS 1 and 2,
shared subscriptions, retained messages, wills with delay, and sessions that are discarded.

Whatever was acknowledged has to be there after every kill; `mqtt_truth` says what follows from what was heard.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from math import inf
from random import Random

import msgspec

from holdfast.broker.packets import V5, V311, Publish, Will
from tests.faults.mqtt_session import KEPT_SECONDS, Session
from tests.faults.mqtt_truth import Cover, Listener, Sent, Truth
from tests.faults.operations import Doors, Figures, Lost

COMMAND = (sys.executable, "-m", "holdfast", "broker", "--anonymous")

AWAY_SECONDS = 0.02
STAY_SECONDS = 0.2  # most kills find discarded sessions that are not made anew yet
PATIENCE = 60.0
LOOK_EVERY = 0.05
GROUPS = 5
TOPICS = 8  # in each group
WINDOW = 6
PACE = 0.004
WILLS = 30
WILL_DELAYS = (0, 0, 1)
LONG_DELAY = 60
"""Of a will whose client comes back in time."""
CREW = "$share/crew/pool/+"


class Kept(msgspec.Struct):
    """A retained topic, written by one publisher."""

    topic: str
    known: bytes = b""
    turn: int = 0
    under_way: bool = False


class Mourned(msgspec.Struct):
    """A client with a will: `due` when the will has to come, None while nobody can know."""

    session: Session
    due: bool | None = None
    came: int = 0


class Mqtt:
    def __init__(
        self, seed: int, *, sessions: int = 200, publishers: int = 12, patience: float = PATIENCE
    ) -> None:
        self.figures = Figures()
        self._patience = patience
        self._random = Random(seed)
        self._truth = Truth(
            [f"storm/{group}/{n}" for group in range(GROUPS) for n in range(TOPICS)]
            + [f"pool/{n}" for n in range(2)]
        )
        self._failure: Lost | None = None
        self._failed = asyncio.Event()
        self._listeners: dict[str, Listener] = {}
        self._subscribers = [self._subscriber(n) for n in range(sessions)]
        self._crew = Listener(CREW, self._truth, is_shared=True)
        self._pool = [
            Session(f"member{n}", V5, heard=self._hearing(self._crew), broken=self._broke) for n in range(5)
        ]
        self._publishers = [self._session(f"publisher{n}", n) for n in range(publishers)]
        self._kept = {p.name: [Kept(f"kept/{p.name}/{n}") for n in range(4)] for p in self._publishers}
        self._watcher = self._session("watcher", 0, self._will_came)
        self._is_watching = False
        self._mourned: dict[str, Mourned] = {}
        self._wills = 0
        self._fresh = [self._session(f"fresh{n}", n) for n in range(10)]

    # -- who is there

    def _session(self, name: str, n: int, heard: Callable[[Publish], None] = lambda _m: None) -> Session:
        version = V5 if n % 2 else V311
        return Session(name, version, heard=heard, broken=self._broke, lazy=0.5 if n % 3 == 0 else 0.0)

    def _subscriber(self, n: int) -> Session:
        name = f"subscriber{n}"
        listener = self._listeners[name] = Listener(name, self._truth)
        return self._session(name, n, self._hearing(listener))

    def _hearing(self, listener: Listener) -> Callable[[Publish], None]:
        return lambda message: listener.arrived(message.topic, message.payload, message.qos)

    def _broke(self, lost: Lost) -> None:
        self._failure = self._failure or lost
        self._failed.set()

    def _everybody(self) -> Iterator[Session]:
        yield from (*self._publishers, *self._subscribers, *self._pool, self._watcher)

    # -- load

    async def work(self, doors: Doors) -> None:
        address = doors["mqtt"]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._until_failed())
            for session in self._everybody():
                tasks.create_task(self._stay(session, address))
            for fresh in self._fresh:
                tasks.create_task(self._begin_anew(fresh, address))
            tasks.create_task(self._subscribe_all())
            tasks.create_task(self._change_minds())
            tasks.create_task(self._break_off())
            tasks.create_task(self._leave_wills(address))
            for publisher in self._publishers:
                tasks.create_task(self._publish(publisher))

    async def _until_failed(self) -> None:
        await self._failed.wait()
        assert self._failure is not None
        raise self._failure

    async def _stay(self, session: Session, address: str) -> None:
        while True:
            await session.connect(address)
            await asyncio.sleep(AWAY_SECONDS)

    async def _publish(self, publisher: Session) -> None:
        """A window of messages; now and then a retained one."""
        while True:
            await publisher.up.wait()
            while publisher.up.is_set() and len(publisher.outgoing) < WINDOW:
                if self._random.random() < 0.1:
                    self._retain(publisher)
                else:
                    self._say(publisher)
            await asyncio.sleep(PACE)

    def _say(self, publisher: Session) -> None:
        topic = self._random.choice(self._truth.topics)
        message = self._truth.send(publisher.name, topic, 1 + int(topic[-1]) % 2)
        publisher.publish(
            topic,
            message.payload,
            message.qos,
            taken=lambda: self._taken(message),
            again=lambda: setattr(message, "again", True),
        )

    def _taken(self, message: Sent) -> None:
        message.taken = self._truth.now()
        self.figures.acknowledged += 1

    def _retain(self, publisher: Session) -> None:
        """Values that count up, or nothing: removed."""
        free = [kept for kept in self._kept[publisher.name] if not kept.under_way]
        if not free:
            return
        kept = self._random.choice(free)
        kept.turn += 1
        kept.under_way = True
        payload = b"" if self._random.random() < 0.25 else b"%d" % kept.turn

        def done() -> None:
            kept.known, kept.under_way = payload, False
            self.figures.acknowledged += 1

        publisher.publish(kept.topic, payload, 1 + kept.turn % 2, retain=True, done=done)

    # -- subscriptions

    async def _subscribe_all(self) -> None:
        """Whoever has no subscription yet gets some, as soon as it is connected."""
        for n, session in enumerate(self._subscribers):
            listener = self._listeners[session.name]
            if listener.covers:
                continue
            await session.up.wait()
            group = n % GROUPS
            self._subscribe(session, listener, f"storm/{group}/{n % TOPICS}")
            self._subscribe(session, listener, f"storm/{(group + 1) % GROUPS}/{(n + 3) % TOPICS}")
            if n % 10 == 0:
                self._subscribe(session, listener, f"storm/{group}/+")
        for n, member in enumerate(self._pool):
            if len(self._crew.covers["pool/+"]) <= n:
                await member.up.wait()
                self._subscribe(member, self._crew, "pool/+", CREW)

    def _subscribe(
        self, session: Session, listener: Listener, topic_filter: str, spelled: str | None = None
    ) -> None:
        cover = Cover(self._truth.now())
        listener.covers[topic_filter].append(cover)

        def granted() -> None:
            cover.granted = self._truth.now()
            self.figures.acknowledged += 1

        session.subscribe(spelled or topic_filter, granted)

    async def _change_minds(self) -> None:
        """Somebody gives a filter up, or takes one."""
        while True:
            await asyncio.sleep(PACE * 2)
            session = self._random.choice(self._subscribers)
            listener = self._listeners[session.name]
            if not session.up.is_set() or not listener.covers or not session.is_idle:
                continue
            topic_filter = self._random.choice(list(listener.covers))
            covers = listener.covers[topic_filter]
            if covers and covers[-1].gone == inf:
                self._give_up(session, covers[-1], topic_filter)
            else:
                self._subscribe(session, listener, topic_filter)

    def _give_up(self, session: Session, cover: Cover, topic_filter: str) -> None:
        cover.given_up = self._truth.now()

        def gone() -> None:
            cover.gone = self._truth.now()
            self.figures.acknowledged += 1

        session.unsubscribe(topic_filter, gone)

    async def _break_off(self) -> None:
        while True:
            await asyncio.sleep(PACE * 4)
            self._random.choice(list(self._everybody())).drop()

    # -- sessions that are discarded

    async def _begin_anew(self, session: Session, address: str) -> None:
        """Kept, subscribed, discarded by a clean start, and then not there."""
        while True:
            await self._visit(session, address, clean=self._random.random() < 0.5)

    async def _visit(self, session: Session, address: str, *, clean: bool) -> None:
        """Once in and out. A clean session ends with its connection; who was not answered cannot know."""
        session.clean, session.kept = clean, 0 if clean else KEPT_SECONDS
        before, visits = session.is_there, session.visits
        connecting = asyncio.ensure_future(session.connect(address))
        try:
            coming = asyncio.ensure_future(session.up.wait())
            await asyncio.wait([coming, connecting], return_when=asyncio.FIRST_COMPLETED)
            coming.cancel()
            if session.up.is_set():
                session.subscribe("fresh/+", lambda: None)
            await asyncio.sleep(STAY_SECONDS if clean else AWAY_SECONDS)
        finally:
            connecting.cancel()
            if session.visits > visits:
                session.is_there = not clean
            elif clean or not before:
                session.is_there = None
        await asyncio.gather(connecting, return_exceptions=True)

    # -- wills

    async def _leave_wills(self, address: str) -> None:
        """Clients that break off, that stay until the kill, that come back in time."""
        await self._watcher.up.wait()
        if not self._is_watching:
            self._watcher.subscribe("will/#", lambda: None)
            self._is_watching = True
        while not self._watcher.is_idle:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WILLS):
                await asyncio.sleep(PACE * 10)
                tasks.create_task(self._mourn(address))

    async def _mourn(self, address: str) -> None:
        comes_back = self._random.random() < 0.3
        delay = LONG_DELAY if comes_back else self._random.choice(WILL_DELAYS)
        self._wills += 1
        topic = f"will/{self._wills}"
        will = Will(topic=topic, payload=b"gone", qos=2, delay=delay)
        session = Session(f"mourned{self._wills}", V5, broken=self._broke, will=will)
        mourned = self._mourned[topic] = Mourned(session)
        connecting = asyncio.ensure_future(session.connect(address))
        try:
            await session.up.wait()
            mourned.due = not comes_back
            if self._random.random() < 0.5:
                await asyncio.Event().wait()  # until the server is killed
        finally:
            connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)

    async def _come_back(self, session: Session, address: str) -> None:
        session.will = None
        connecting = asyncio.ensure_future(session.connect(address))
        try:
            await session.up.wait()
        finally:
            connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)

    def _will_came(self, message: Publish) -> None:
        mourned = self._mourned.get(message.topic)
        if mourned is None or message.payload != b"gone":
            raise Lost(f"a will that nobody left: {message}")
        if mourned.due is False:
            raise Lost(f"{message.topic} came, although its client came back in time")
        mourned.came += 1
        if mourned.came > 1:
            raise Lost(f"{message.topic} came {mourned.came} times")

    # -- proof

    async def is_ready(self, doors: Doors) -> bool:
        """A session that has to be on disk before it is answered, is answered."""
        prober = Session("prober", V5, broken=self._broke)
        try:
            async with asyncio.timeout(1):
                await self._come_back(prober, doors["mqtt"])
        except TimeoutError:
            return False
        return True

    async def verify(self, doors: Doors) -> None:
        """Everybody comes back, ends what was begun, and gets what was due; then what is retained is looked at."""
        self.figures.unknown += sum(len(session.outgoing) for session in self._publishers)
        address = doors["mqtt"]
        async with asyncio.TaskGroup() as tasks:
            staying = [tasks.create_task(self._stay(session, address)) for session in self._everybody()]
            failing = tasks.create_task(self._until_failed())
            for mourned in self._mourned.values():
                if mourned.due is False and mourned.session.will is not None:
                    await self._come_back(mourned.session, address)
            await self._settled()
            await self._verify_retained(address)
            for task in (*staying, failing):
                task.cancel()
        for listener in (*self._listeners.values(), self._crew):
            listener.settle()
        self._truth.settle()
        self._mourned = {
            topic: mourned for topic, mourned in self._mourned.items() if mourned.due is not True
        }

    async def _settled(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while (why := self._unsettled()) is not None:
            if loop.time() > deadline:
                raise Lost(f"after {self._patience:g} s: {why}")
            await asyncio.sleep(LOOK_EVERY)

    def _unsettled(self) -> str | None:
        for session in self._everybody():
            if not session.up.is_set() or not session.is_idle:
                return f"{session.name} is not done: {list(session.outgoing.values())[:3]}"
        for listener in (*self._listeners.values(), self._crew):
            if missing := listener.missing():
                return f"{listener.name} lacks {len(missing)} messages, among them {missing[:3]}"
        for topic, mourned in self._mourned.items():
            if mourned.due and not mourned.came:
                return f"{topic} was not published"
        return None

    async def _verify_retained(self, address: str) -> None:
        wanted = {kept.topic: kept.known for each in self._kept.values() for kept in each if kept.known}
        found: dict[str, bytes] = {}

        def heard(message: Publish) -> None:
            found[message.topic] = message.payload
            if wanted.get(message.topic) != message.payload:
                known = wanted.get(message.topic)
                raise Lost(f"{message.topic} is retained as {message.payload!r}, and was left as {known!r}")

        looker = Session("looker", V5, heard=heard, broken=self._broke)
        looker.clean, looker.kept = True, 0
        looking = asyncio.ensure_future(looker.connect(address))
        try:
            await looker.up.wait()
            looker.subscribe("kept/#", lambda: None)
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self._patience
            while found.keys() != wanted.keys() or not looker.is_idle:
                if loop.time() > deadline:
                    raise Lost(f"not retained: {sorted(wanted.keys() - found.keys())}")
                await asyncio.sleep(LOOK_EVERY)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
