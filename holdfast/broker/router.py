"""One publish → everyone who gets it: subscriptions, shared groups, the retained store.

A `Plan` is what a topic leads to at this moment; the messages of one run (one publisher, one topic, one read) share
it, so that a fan-out looks everything up once and then only hands the same bytes around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.message import Message
from holdfast.broker.packets import V5
from holdfast.broker.session.session import Session
from holdfast.broker.topics import Route, SharedGroup
from holdfast.broker.topics.syntax import SHARE

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.peer import Peer


class Plan:
    """`plain` and `plain5` take the bytes that every client of their version takes; `single` are served one by one,
    `kept` through their queues."""

    __slots__ = ("groups", "kept", "plain", "plain5", "single")

    def __init__(self) -> None:
        self.plain: list[Peer] = []
        self.plain5: list[Peer] = []
        self.single: list[Route[Session]] = []
        self.kept: list[Route[Session]] = []
        self.groups: list[SharedGroup[Session]] = []

    def is_empty(self) -> bool:
        return not (self.plain or self.plain5 or self.single or self.kept or self.groups)


class Router:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._high = broker.settings.high_water

    def plan(self, topic: str, publisher: Session | None, *, kept: bool) -> Plan:
        """`kept`: the messages have QoS 1 or 2, so those who subscribed with one get them through their queues."""
        broker = self._broker
        plan = Plan()
        for route in broker.tree.routes(topic):
            session = route.subscriber
            if route.has_no_local and session is publisher:
                mine = route.for_publisher()
                if mine is None:
                    continue
                route = mine
            peer = session.peer
            if kept and route.qos:
                if broker.may_receive(session, topic):
                    plan.kept.append(route)
            elif peer is not None:
                if not broker.may_receive(session, topic):
                    continue
                if not peer.is_plain or route.identifiers or route.retain_as_published:
                    plan.single.append(route)
                elif peer.version == V5:
                    plan.plain5.append(peer)
                else:
                    plan.plain.append(peer)
        plan.groups = broker.shared.groups(topic)
        return plan

    # -- QoS 0

    def fan_out(self, plan: Plan, messages: list[Message]) -> None:
        """A run of QoS 0 messages, none of them retained."""
        if plan.plain:
            self._hand_around(plan.plain, [message.frame(4) for message in messages], messages)
        if plan.plain5:
            self._hand_around(plan.plain5, [message.frame(V5) for message in messages], messages)
        for message in messages if plan.single else ():
            self._one_by_one(plan, message)
        for group in plan.groups:
            for message in messages:
                self.share(group, message)

    def _hand_around(self, peers: list[Peer], frames: list[bytes], messages: list[Message]) -> None:
        """The frames of a run are joined once; every connection holds the same bytes until it writes."""
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        count, high = len(frames), self._high
        sent = 0
        for peer in peers:
            if peer.backlog <= high:
                peer.send(data)
                sent += 1
            elif peer.session is not None:
                self._broker.drop(peer.session, "slow", messages[0].topic, count)
        counters = self._broker.counters
        counters.publish_sent += sent * count
        counters.publish_bytes_sent += sent * sum(len(message.payload) for message in messages)

    def _one_by_one(self, plan: Plan, message: Message) -> None:
        straight = self._broker.delivery.straight
        for route in plan.single:
            session = route.subscriber
            peer = session.peer
            if peer is not None:
                straight(
                    peer, session, message, message.retain and route.retain_as_published, route.identifiers
                )

    # -- QoS 1 and 2

    def route(self, plan: Plan, message: Message) -> bool:
        """Any message; False when nobody gets it. What it waits for, it counts itself."""
        received = False
        if plan.plain or plan.plain5 or plan.single:
            received = True
            for peers, version in ((plan.plain, 4), (plan.plain5, V5)):
                if peers:
                    self._hand_around(peers, [message.frame(version)], [message])
            self._one_by_one(plan, message)
        qos = message.qos
        for route in plan.kept:
            received = True
            self.offer(
                route.subscriber,
                message,
                route.qos if route.qos < qos else qos,
                message.retain and route.retain_as_published,
                route.identifiers,
            )
        for group in plan.groups:
            received = self.share(group, message) or received
        return received

    def offer(
        self,
        session: Session,
        message: Message,
        qos: int,
        retain: bool = False,
        identifiers: tuple[int, ...] = (),
        share: str | None = None,
    ) -> bool:
        """Puts a message into a session's queue; False when the queue is full and stays as it is."""
        broker = self._broker
        outgoing = session.outgoing
        if not broker.queues.make_room(session, message):
            return False
        entry = outgoing.add(session, message, qos, retain, identifiers, share)
        entry.checked = broker.turns.number + 1  # the turn that is about to end
        if session.persistent:
            broker.journal.enqueued(entry)
        if session.peer is not None:
            broker.turns.pump_later(session)
        else:
            broker.turns.commit_later()
        return True

    # -- shared subscriptions

    def share(self, group: SharedGroup[Session], message: Message) -> bool:
        """To one member: the next that is connected, else one that keeps it until it is back [MQTT-4.8.2-3 ...]."""
        topic, may_receive = message.topic, self._broker.may_receive
        found = group.next(lambda session: session.peer is not None and may_receive(session, topic))
        if found is None and message.qos:
            found = group.next(
                lambda session: session.persistent and not session.ended and may_receive(session, topic)
            )
        if found is None:
            return False
        session, grant = found
        qos = min(grant.qos, message.qos)
        retain = message.retain and grant.retain_as_published
        identifiers = (grant.identifier,) if grant.identifier else ()
        if qos:
            return self.offer(
                session, message, qos, retain, identifiers, SHARE + group.name + "/" + group.filter
            )
        peer = session.peer
        return peer is not None and self._broker.delivery.straight(
            peer, session, message, retain, identifiers
        )
