"""The broker: everything between a connection's bytes and the store.

    broker = Broker(db, hooks, clock, settings.broker, metrics)
    await broker.start()                          # sessions, subscriptions, retained messages, wills from the store
    peer = broker.connect(transport)              # a door, once a connection can carry bytes
    peer.receive_data(data)
    await broker.publish("state/lamp", b"on", qos=1, retain=True)
    broker.listen("heji/up/#", listener, takes=True)
    await broker.close()                          # DISCONNECT 0x8B to everyone
    await broker.stop()                           # the last commit

Here the parts are put together, started and stopped; what each does stands in its own file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator

from holdfast.broker import inspection
from holdfast.broker.admission import Admission
from holdfast.broker.beginning import begin
from holdfast.broker.counters import Counters
from holdfast.broker.delivery import Delivery
from holdfast.broker.departures import Departures
from holdfast.broker.figures import offer_figures
from holdfast.broker.handlers import Handlers
from holdfast.broker.hooks import Access, Client, Hooks, Verdict
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.journal import Journal
from holdfast.broker.leftovers import Leftovers
from holdfast.broker.limits import Limits
from holdfast.broker.listeners import Listener, Listeners, Listening, Received
from holdfast.broker.message import Message
from holdfast.broker.packets import MessageProperties, Reason
from holdfast.broker.peer import Peer
from holdfast.broker.publishing import Publishing
from holdfast.broker.queues import Queues
from holdfast.broker.replay import Replays
from holdfast.broker.retained import Retained
from holdfast.broker.router import Router
from holdfast.broker.saying import Saying
from holdfast.broker.session.session import Session
from holdfast.broker.subscribing import Subscribing
from holdfast.broker.ticking import Ticking
from holdfast.broker.topics import SharedSubscriptions, Subscriptions, split_shared
from holdfast.broker.transport import Transport
from holdfast.broker.turns import Turns
from holdfast.broker.wills import Testator, Wills
from holdfast.clock import Clock
from holdfast.errors import CannotStart
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Broker as BrokerSettings
from holdfast.store import Database

__all__ = ["Broker", "Listener", "Listening", "Received"]

STOP_SECONDS = 3.0
SECONDS_BETWEEN_WARNINGS = 10.0

log = get_logger("broker")


class Broker:
    def __init__(
        self, db: Database, hooks: Hooks, clock: Clock, settings: BrokerSettings, metrics: Metrics
    ) -> None:
        self.db = db
        self.hooks = hooks
        self.clock = clock
        self.settings = settings
        self.metrics = metrics
        self.counters = Counters()
        self.is_closing = False
        self.sessions_by_id: dict[str, Session] = {}
        """By client id: connected ones, and those that last."""
        self.sessions_by_number: dict[int, Session] = {}
        self.last_session_number = 0
        self.peers: dict[Peer, None] = {}
        self.tree: Subscriptions[Session] = Subscriptions()
        self.shared: SharedSubscriptions[Session] = SharedSubscriptions()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_for_disk: list[Peer] = []
        self._build()
        offer_figures(self, metrics)

    def _build(self) -> None:
        self.turns = Turns()
        self.queues = Queues(self)
        self.journal = Journal(
            self.db,
            self.clock,
            relaxed=self.settings.durability == "relaxed",
            trim_of=self.queues.trim,
            on_commit=self._committed,
            on_trim=self.queues.trimmed,
        )
        self.router = Router(self)
        self.retained_messages = Retained(self)
        self.replays = Replays(self)
        self.wills = Wills(self)
        self.delivery = Delivery(self)
        self.departures = Departures(self)
        self.leftovers = Leftovers(self)
        self.listeners = Listeners()
        self.limits = Limits(self)
        self.publishing = Publishing(self)
        self.subscribing = Subscribing(self)
        self.admission = Admission(self)
        self.handlers = Handlers(self)
        self.saying = Saying(self)
        self.ticking = Ticking(self)

    # -- its life

    async def start(self) -> None:
        """Reads the store (migrated with the room "broker") and begins to tick. No door is open yet.

        Sessions live in one process: raises `CannotStart` when another one serves them from the same PostgreSQL."""
        if not await self.db.claim("MQTT"):
            raise CannotStart(
                "another holdfast serves MQTT from this PostgreSQL: stop it, or start this one without MQTT"
                " (--mqtt '' --mqtt-ws '')"
            )
        self.turns.start(asyncio.get_running_loop(), self.delivery.pump, self.journal.turn)
        await begin(self)
        await self.sweep()
        self.ticking.start()

    async def close(self) -> None:
        """Tells every client to go (0x8B) and closes its connection; takes no new one."""
        self.is_closing = True
        for peer in list(self.peers):
            peer.disconnect(Reason.SERVER_SHUTTING_DOWN)
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Waits for the last commit. The store is still open."""
        self.is_closing = True
        self.ticking.stop()
        self.admission.stop()
        await self.listeners.stop()
        self.delivery.stop()
        self.leftovers.stop()
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.wait_for(self.journal.drain(), STOP_SECONDS)
        except TimeoutError:
            log.error("batch_lost_at_stop", why=self.journal.trouble)
            self.journal.give_up()

    async def sweep(self) -> int:
        """Ends expired sessions and messages: a chore, every `broker.sweep_interval`. Answers how many."""
        return await self.ticking.sweep()

    # -- for doors

    def connect(self, transport: Transport) -> Peer:
        """A new connection. Above the limits its CONNECT is refused (0x97), or it is aborted at once."""
        refusal = self.limits.enter(transport.address, len(self.peers) + 1)
        peer = Peer(self, transport, refusal)
        self.peers[peer] = None
        if self.is_closing or (
            refusal is not None and len(self.peers) > 2 * self.settings.max_connections > 0
        ):
            peer.abandon()
        return peer

    # -- for the rest of the process

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        properties: MessageProperties | None = None,
    ) -> None:
        """Publishes as the server, at once, and waits for nothing. Retained `$SYS/` topics stay in memory."""
        self.saying.say(topic, payload, qos=qos, retain=retain, properties=properties)

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        properties: MessageProperties | None = None,
    ) -> None:
        """As `send`, and returns when the message is as safe as a PUBACK would say; raises `Unavailable` when it may
        not be."""
        await self.saying.say_and_wait(topic, payload, qos=qos, retain=retain, properties=properties)

    def listen(self, topic_filter: str, listener: Listener, *, takes: bool = False) -> Listening:
        """Hears what clients publish (and their wills), not what this process does.

        The publisher's PUBACK or PUBREC waits for `listener`; when it raises, the publisher's connection is closed
        so that it sends the message again. One publisher's messages come one after the other. A message is routed
        when its listeners have heard it; with `takes`, one that the filter matches goes to listeners alone, is not
        routed and not retained.
        """
        return self.listeners.add(topic_filter, listener, takes=takes)

    # -- for the operator

    def sessions(self) -> Iterator[SessionInfo]:
        return map(inspection.of_session, list(self.sessions_by_id.values()))

    def session(self, client_id: str) -> SessionInfo | None:
        found = self.sessions_by_id.get(client_id)
        return inspection.of_session(found) if found is not None else None

    def subscriptions(self, client_id: str | None = None) -> Iterator[SubscriptionInfo]:
        found = (
            list(self.sessions_by_id.values()) if client_id is None else [self.sessions_by_id.get(client_id)]
        )
        for session in found:
            if session is not None:
                yield from inspection.of_subscriptions(session)

    def retained(self, topic_filter: str = "#") -> Iterator[RetainedInfo]:
        """Lazily. `$`-topics only for a filter that begins with `$`."""
        return map(inspection.of_retained, self.retained_messages.match(topic_filter))

    async def queue(self, client_id: str, limit: int = 100) -> list[QueuedInfo]:
        """The oldest messages of a session's queue, in flight ones first. Empty for an unknown session."""
        session = self.sessions_by_id.get(client_id)
        return await inspection.queue_of(self, session, limit) if session is not None else []

    async def kick(self, client_id: str) -> bool:
        """Disconnects a client (0x98); its session stays. False when it is not connected."""
        session = self.sessions_by_id.get(client_id)
        if session is None or session.connection is None:
            return False
        session.connection.disconnect(Reason.ADMINISTRATIVE_ACTION)
        return True

    async def delete_session(self, client_id: str) -> bool:
        """Disconnects a client and deletes its session. False when there is none."""
        session = self.sessions_by_id.get(client_id)
        if session is None:
            return False
        if session.connection is not None:
            session.connection.disconnect(Reason.ADMINISTRATIVE_ACTION)
        self.departures.end(session)
        await self.journal.settled()
        return True

    async def clear_retained(self, topic: str) -> bool:
        """False when nothing is retained there."""
        cleared = self.retained_messages.clear(topic)
        if cleared:
            await self.journal.settled()
        return cleared

    # -- for $SYS, beside `counters`

    @property
    def connected(self) -> int:
        """Clients connected now."""
        return sum(1 for peer in self.peers if peer.is_open)

    @property
    def session_count(self) -> int:
        """Sessions, of clients connected and away."""
        return len(self.sessions_by_id)

    @property
    def subscription_count(self) -> int:
        return len(self.tree)

    @property
    def shared_subscription_count(self) -> int:
        return len(self.shared)

    @property
    def retained_count(self) -> int:
        return len(self.retained_messages)

    @property
    def queued_count(self) -> int:
        """Messages of QoS 1 and 2 that are kept for sessions, in flight ones included."""
        return sum(session.outgoing.holds() for session in self.sessions_by_id.values())

    @property
    def queued_bytes(self) -> int:
        return sum(session.outgoing.size for session in self.sessions_by_id.values())

    # -- for its parts

    def ask(self, client: Client, access: Access, topic: str) -> Verdict:
        return self.hooks.authorise(client, access, topic)

    def may_receive(self, session: Session, topic: str) -> bool:
        verdict = self.hooks.authorise(session, Access.RECEIVE, topic)
        if isinstance(verdict, Coroutine):
            verdict.close()
        return verdict is True

    def keep_session(self, session: Session) -> None:
        self.sessions_by_id[session.client_id] = session
        if session.persistent:
            self.sessions_by_number[session.id] = session
            self.limits.keeps(session.name)

    def next_session_number(self) -> int:
        self.last_session_number += 1
        return self.last_session_number

    def share_again(self, share: str, message: Message) -> bool:
        """To another member of a shared subscription; False when it has none any more."""
        shared = split_shared(share)
        group = self.shared.group(shared) if shared is not None else None
        return group is not None and self.router.share(group, message)

    def publish_will(self, message: Message, testator: Testator) -> None:
        self.saying.say_for(message, testator)

    def drop(self, session: Session, why: str, topic: str | None, count: int = 1) -> None:
        """Counts a message that a session does not get, and says so in the log now and then."""
        self.counters.drops[why] += count
        session.dropped += count
        now = self.clock.monotonic()
        if not session.warned or now - session.warned > SECONDS_BETWEEN_WARNINGS:
            session.warned = now or 1e-9
            log.warning(
                "message_dropped", client=session.client_id, why=why, topic=topic, dropped=session.dropped
            )

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def gone(self, peer: Peer) -> None:
        """A connection is over for good."""
        if peer in self.peers:
            del self.peers[peer]
            self.limits.leave(peer.transport.address)

    def wait_for_disk(self, peer: Peer) -> None:
        peer.hold_for_disk()
        self._waiting_for_disk.append(peer)

    def _committed(self, sessions: list[Session]) -> None:
        for session in sessions:
            if session.peer is not None:
                self.turns.pump_later(session)
        if self._waiting_for_disk and self.journal.weight < self.journal.HEAVY // 2:
            waiting, self._waiting_for_disk = self._waiting_for_disk, []
            for peer in waiting:
                peer.unhold_for_disk()
