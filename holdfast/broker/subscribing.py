"""SUBSCRIBE and UNSUBSCRIBE (3.8 to 3.11): what is granted, where it is kept, what is replayed for it.

A persistent session's subscription is in the tree at once and on disk before SUBACK; until SUBACK its queue rests, so
that no message of it comes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from holdfast.broker.hooks import Access
from holdfast.broker.message import Message
from holdfast.broker.packets import (
    Reason,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    encode_within,
)
from holdfast.broker.peer import Peer
from holdfast.broker.replay import Replay
from holdfast.broker.session.session import Session
from holdfast.broker.topics import Grant, count_levels, is_shared, shared_filter_fault, split_shared
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

SOME_MORE: Final = 1_000
"""Filters of one packet that are looked at above what a session may have: some may be wrong, or be there already."""
AT_ONCE: Final = 1_000
"""Retained messages that go into a queue in one step."""

log = get_logger("broker")

Verdicts = list[bool]


class Subscribing:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._settings = broker.settings

    # -- SUBSCRIBE

    def subscribe(self, peer: Peer, packet: Subscribe) -> None:
        session = peer.session
        assert session is not None
        verdicts: Verdicts = []
        # (far more than a session may have need no decision: they are refused)
        asked = iter(packet.subscriptions[: self._settings.max_subscriptions + SOME_MORE])
        for each in asked:
            verdict = self._may_subscribe(session, each.filter)
            if not isinstance(verdict, bool):
                peer.think()
                self._broker.spawn(self._grant_when_known(peer, session, packet, verdicts, verdict, asked))
                return
            verdicts.append(verdict)
        self._grant(peer, session, packet, verdicts)

    async def _grant_when_known(
        self,
        peer: Peer,
        session: Session,
        packet: Subscribe,
        verdicts: Verdicts,
        first: Awaitable[bool],
        asked: Iterator[Subscription],
    ) -> None:
        """The decisions one after the other, from the first that has to be looked up."""
        try:
            verdicts.append(await first)
            for each in asked:
                verdict = self._may_subscribe(session, each.filter)
                verdicts.append(verdict if isinstance(verdict, bool) else await verdict)
        except Exception:
            log.exception("subscribe_not_decided", client=session.client_id)
            peer.disconnect(Reason.UNSPECIFIED)
            return
        if peer.is_open:
            peer.guarded(lambda: self._grant(peer, session, packet, verdicts))
            peer.go_on()

    def _may_subscribe(self, session: Session, name: str) -> bool | Awaitable[bool]:
        shared = split_shared(name) if shared_filter_fault(name) is None else None
        return self._broker.ask(session, Access.SUBSCRIBE, shared.filter if shared is not None else name)

    def _grant(self, peer: Peer, session: Session, packet: Subscribe, verdicts: Verdicts) -> None:
        reasons: list[int] = []
        replays: list[Replay] = []
        for each, allowed in zip_longest(packet.subscriptions, verdicts):
            fault = self._fault(session, each, allowed)
            if fault is not None:
                if peer.is_worth_a_line():
                    log.info(
                        "subscribe_denied",
                        client=session.client_id,
                        filter=each.filter,
                        reason=fault.name.lower(),
                    )
                reasons.append(fault)
                continue
            grant = Grant(
                min(each.qos, self._settings.max_qos),
                each.no_local,
                each.retain_as_published,
                packet.subscription_id,
            )
            is_new = self._enter(session, each.filter, grant)
            reasons.append(grant.qos)
            if not is_shared(each.filter) and (
                each.retain_handling == 0 or (each.retain_handling == 1 and is_new)
            ):
                replays.append(self._replay(session, each.filter, grant))
        self._answer(peer, session, Suback(packet.packet_id, tuple(reasons)), replays)

    def _fault(self, session: Session, each: Subscription, allowed: bool | None) -> Reason | None:
        """`allowed` is None where nobody was asked."""
        if allowed is None:
            return Reason.QUOTA_EXCEEDED
        if is_shared(each.filter) and shared_filter_fault(each.filter) is not None:
            return Reason.TOPIC_FILTER_INVALID  # 3.1.1 does not know it, so the decoder let it pass
        if count_levels(each.filter) > self._settings.max_levels:
            return Reason.TOPIC_FILTER_INVALID
        if not allowed:
            return Reason.NOT_AUTHORIZED
        if (
            each.filter not in session.subscriptions
            and len(session.subscriptions) >= self._settings.max_subscriptions
        ):
            return Reason.QUOTA_EXCEEDED
        if session.outgoing.replayed > self._settings.queue_count:
            return Reason.QUOTA_EXCEEDED
        return None

    def _enter(self, session: Session, name: str, grant: Grant) -> bool:
        is_new = name not in session.subscriptions
        self.enter_tree(session, name, grant)
        if session.persistent:
            self._broker.journal.subscribed(session, name, grant)
        return is_new

    def enter_tree(self, session: Session, name: str, grant: Grant) -> None:
        session.subscriptions[name] = grant
        shared = split_shared(name)
        if shared is not None:
            self._broker.shared.subscribe(session, shared, grant)
        else:
            self._broker.tree.subscribe(session, name, grant)

    # -- SUBACK and what is retained

    def _replay(self, session: Session, name: str, grant: Grant) -> Replay:
        session.replays = [replay for replay in session.replays if replay.filter != name]
        walk = self._broker.retained_messages.match(name)
        return Replay(name, grant, walk, straight_only=session.persistent)

    def _answer(self, peer: Peer, session: Session, suback: Suback, replays: list[Replay]) -> None:
        if not session.persistent:
            self._send(peer, suback)
            self._begin(session, replays)
            return
        session.resting += 1
        kept = [
            (walk, replay.grant)
            for replay in replays
            if replay.grant.qos
            for walk in (self._broker.retained_messages.match(replay.filter),)
            if not self._broker.replays.keep(session, walk, replay.grant, AT_ONCE)
        ]
        if kept:
            self._broker.spawn(self._keep_the_rest(peer, session, suback, replays, kept))
        else:
            self._broker.journal.call(lambda committed: self._kept(peer, session, suback, replays, committed))
            self._broker.turns.commit_later()

    async def _keep_the_rest(
        self,
        peer: Peer,
        session: Session,
        suback: Suback,
        replays: list[Replay],
        kept: list[tuple[Iterator[Message], Grant]],
    ) -> None:
        """Very many retained messages: a part with each commit, and SUBACK with the last."""
        committed = await self._broker.journal.settled()
        await asyncio.sleep(0)  # others have their turn even when nothing had to be written
        for walk, grant in kept:
            while committed and not session.ended:
                if self._broker.replays.keep(session, walk, grant, AT_ONCE):
                    break
                committed = await self._broker.journal.settled()
                await asyncio.sleep(0)
        self._kept(peer, session, suback, replays, committed and await self._broker.journal.settled())

    def _kept(
        self,
        peer: Peer,
        session: Session,
        suback: Suback,
        replays: list[Replay],
        committed: bool,
    ) -> None:
        session.resting -= 1
        if not committed:
            peer.store_failed()
            return
        if peer.is_open:
            self._send(peer, suback)
            self._begin(session, replays)

    def _begin(self, session: Session, replays: list[Replay]) -> None:
        session.replays += replays
        self._broker.turns.pump_later(session)

    def _send(self, peer: Peer, answer: Suback | Unsuback) -> None:
        most = peer.connect.maximum_packet_size if peer.connect is not None else None
        data = encode_within(answer, peer.version, most)
        if data is None:
            peer.disconnect(Reason.PACKET_TOO_LARGE)
        else:
            peer.send(data)

    # -- UNSUBSCRIBE

    def unsubscribe(self, peer: Peer, packet: Unsubscribe) -> None:
        session = peer.session
        assert session is not None
        reasons = [
            Reason.SUCCESS if self.leave(session, name) else Reason.NO_SUBSCRIPTION_EXISTED
            for name in packet.filters
        ]
        answer = Unsuback(packet.packet_id, tuple(reasons))
        if not session.persistent:
            self._send(peer, answer)
            return
        self._broker.journal.call(
            lambda committed: self._send(peer, answer) if committed else peer.store_failed()
        )
        self._broker.turns.commit_later()

    def leave(self, session: Session, name: str) -> bool:
        """Takes a subscription out of the tree, and out of the store; False when there is none."""
        if session.subscriptions.pop(name, None) is None:
            return False
        session.replays = [replay for replay in session.replays if replay.filter != name]
        shared = split_shared(name)
        if shared is not None:
            self._broker.shared.unsubscribe(session, shared)
        else:
            self._broker.tree.unsubscribe(session, name)
        if session.persistent and not session.ended:
            self._broker.journal.subscribed(session, name, None)
        return True

    # -- again, when a session is resumed

    async def recheck(self, session: Session) -> None:
        """Subscriptions that its user may no longer have are gone before a message of them is sent."""
        asked = [(name, self._may_subscribe(session, name)) for name in session.subscriptions]
        for name, verdict in asked:
            allowed = verdict if isinstance(verdict, bool) else await verdict
            if not allowed and not session.ended:
                log.info("subscription_revoked", client=session.client_id, filter=name)
                self.leave(session, name)
