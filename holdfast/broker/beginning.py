"""What the broker reads at its start: sessions with their subscriptions, what is retained, whose will is due.

Queues stay in the store; how long they are is all that is read of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.broker.session import Incoming, Outgoing
from holdfast.broker.session.session import Session
from holdfast.broker.store import reads
from holdfast.broker.store.rows import StoredSession
from holdfast.broker.topics import Grant

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

BEAT_SECONDS: Final = 5.0
"""How often a broker with clients says in the store that it runs."""


async def begin(broker: Broker) -> None:
    """Reads beside the writer's work and without the readers' time limit: nobody is served yet."""
    db = broker.db
    found = await db.write_alone(reads.beginnings)
    broker.journal.start(found.batch, found.message_id)
    broker.last_session_number = found.session_id
    now_ms = broker.clock.now_ms()
    # whoever was connected was so at the last beat, and may have been until the next one
    cut_off_ms = min(now_ms, found.beat_ms + round(BEAT_SECONDS * 1000)) if found.beat_ms else now_ms
    above = 0
    while (page := await db.write_alone(reads.session_page, above)).sessions:
        _keep(broker, page, cut_off_ms)
        above = page.sessions[-1].id
    number = 0
    while kept := await db.write_alone(reads.retained_page, number):
        for stored in kept:
            broker.retained_messages.load(stored)
        number = kept[-1].message_id
    expiries = {session.client_id: session.expiry for session in broker.sessions_by_id.values()}
    broker.wills.load(await db.write_alone(reads.wills), now_ms, expiries)
    for session_id, sent in await db.write_alone(reads.gone):
        broker.leftovers.add(session_id, sent)


def _keep(broker: Broker, page: reads.SessionPage, cut_off_ms: int) -> None:
    by_number: dict[int, Session] = {}
    for stored in page.sessions:
        session = by_number[stored.id] = _session(stored, cut_off_ms)
        broker.keep_session(session)
        if stored.disconnected_ms is None:
            broker.journal.changed(session)
    for subscription in page.subscriptions:
        grant = Grant(
            subscription.qos,
            subscription.no_local,
            subscription.retain_as_published,
            subscription.identifier,
        )
        broker.subscribing.enter_tree(by_number[subscription.session_id], subscription.filter, grant)
    ids: dict[int, set[int]] = {}
    for session_id, packet_id in page.inbound:
        ids.setdefault(session_id, set()).add(packet_id)
    for session_id, known in ids.items():
        by_number[session_id].incoming = Incoming(known)
    for length in page.lengths:
        outgoing = by_number[length.session_id].outgoing
        outgoing.count, outgoing.size, outgoing.replayed = length.count, length.size, length.replayed
        outgoing.last = max(outgoing.last, length.last)


def _session(stored: StoredSession, cut_off_ms: int) -> Session:
    outgoing = Outgoing(persistent=True, last=stored.sent, sent=stored.sent)
    outgoing.spilled = True
    outgoing.loaded = 0
    session = Session(
        session_id=stored.id,
        client_id=stored.client_id,
        name=stored.owner,
        is_server=stored.is_server,
        version=stored.version,
        expiry=stored.expiry_s,
        persistent=True,
        created_ms=stored.created_ms,
        outgoing=outgoing,
    )
    session.disconnected_ms = stored.disconnected_ms if stored.disconnected_ms is not None else cut_off_ms
    session.since_ms = session.disconnected_ms
    return session
