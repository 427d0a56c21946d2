"""The broker inside `holdfast serve`: its identities are our users, its store is the app's; rooms' `Messenger`.

Without any MQTT door it does not run here: another process may serve MQTT from the same PostgreSQL, and nobody is told
of what is written through this one (a push is a wake-up; who pulls gets it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from litestar import Router

from holdfast.accounts.accounts import Accounts
from holdfast.broker import http
from holdfast.broker.broker import Broker, Received
from holdfast.broker.broker import Listener as BrokerListener
from holdfast.broker.doors import Doors
from holdfast.broker.entry import AccountHooks
from holdfast.broker.local_door import LocalDoor
from holdfast.broker.operator import Operator
from holdfast.broker.sys_topics import SysTopics
from holdfast.chores import Chore
from holdfast.clock import Clock
from holdfast.data_folder import DataFolder
from holdfast.errors import CannotStart
from holdfast.log import get_logger
from holdfast.messenger import Heard, Listener, TopicRules
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database

log = get_logger("broker")


class BrokerRoom(Service):
    """`Messenger` for the other rooms; `ask` and `hear` before the start."""

    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        folder: DataFolder,
    ) -> None:
        self._accounts = accounts
        self._sweep_interval = settings.broker.sweep_interval
        self._hooks = AccountHooks(settings.broker.readers)
        self.broker = Broker(db, self._hooks, clock, settings.broker, metrics)
        self._doors = Doors(settings, metrics, self.broker.connect)
        self._sys_topics = SysTopics(self.broker, clock, settings.broker.sys_interval)
        self._operator = Operator(self.broker)
        self._local_door = LocalDoor(folder, self._operator)
        self._heard: list[tuple[str, Listener]] = []
        self._started = False

    # -- for the other rooms

    def ask(self, rules: TopicRules) -> None:
        """A room that rules over topics of its own. The first that has an answer gives it."""
        self._hooks.ask(rules)

    def tell(self, topics: Iterable[str], payload: bytes) -> None:
        if not self._started:
            return
        for topic in topics:
            try:
                self.broker.send(topic, payload)
            except Exception:
                # the room that tells has committed already: what went wrong here is not its business
                log.exception("message_not_told", topic=topic)

    def hear(self, topic_filter: str, listener: Listener) -> None:
        self._heard.append((topic_filter, listener))

    def _for_room(self, listener: Listener) -> BrokerListener:
        async def hear(message: Received) -> None:
            user_id = int(message.user) if message.user.isdecimal() else None
            await listener(Heard(message.topic, message.payload, user_id))

        return hear

    # -- its life

    @property
    def addresses(self) -> Mapping[str, str]:
        return self._doors.addresses

    def routers(self) -> Sequence[Router]:
        return (http.router(self._operator),) if self._doors.are_wanted else ()

    def chores(self) -> Sequence[Chore]:
        return (Chore("mqtt", self._sweep_interval, self.broker.sweep),) if self._doors.are_wanted else ()

    def bind(self) -> None:
        self._doors.bind()

    async def start(self) -> None:
        if not self._doors.are_wanted:
            return
        self._hooks.sessions = self._accounts.sessions
        for topic_filter, listener in self._heard:
            self.broker.listen(topic_filter, self._for_room(listener), takes=True)
        await self.broker.start()
        self._started = True
        self._sys_topics.start()
        await self._local_door.open()

    async def open(self) -> None:
        await self._doors.open()

    async def close(self) -> None:
        self._doors.shut()
        await self._local_door.close()
        await self._sys_topics.stop()
        if self._started:
            await self.broker.close()
        await self._doors.close()

    async def stop(self) -> None:
        if self._started:
            self._started = False
            await self.broker.stop()

    def read_again(self) -> None:
        try:
            self._doors.read_again()
        except CannotStart as error:
            log.error("files_not_read_again", why=str(error))
        else:
            log.info("files_read_again")
