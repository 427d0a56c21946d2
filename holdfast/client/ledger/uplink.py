"""The ledger over MQTT both ways: changes go up as messages, come down acknowledged, and others' come down too.

| `synced` | becomes | when |
|---|---|---|
| 0 not synced, 2 changed since | 3 on its way | the message is about to be published |
| 3 | 1 synced (a deletion: gone) | its acknowledgement says yes, and the row has not changed since |
| 3 | 0 | 30 s without an acknowledgement, a new start, a refusal (then it is parked) |
| 1 | 2 | a local change |
| 3 | 2 (never held: 0) | a local change; the acknowledgement of the former one is still heard |

A message that is sent again keeps its id as long as it says the same, so the server applies it once; after an
acknowledgement, whatever it said, the next one has another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import msgspec
from msgspec import Struct

from holdfast.broker.packets import Publish
from holdfast.client.ledger import rows
from holdfast.client.ledger.changes import LEDGER, OUTBOX
from holdfast.client.ledger.live import Live
from holdfast.client.ledger.model import NOT_SYNCED, SYNCED, SYNCING
from holdfast.client.ledger.outbox import Op, next_batch
from holdfast.client.ledger.wire import ACK, MESSAGE, Message, Outcome
from holdfast.client.mqtt import MqttLink
from holdfast.client.replica import Transaction, View
from holdfast.client.timing import first_of

ACK_SECONDS = 30.0
LOOK_SECONDS = 5.0
WINDOW = 64
SESSION_SECONDS = 7 * 24 * 3600

VERBS = {"create": "ADD", "update": "UPDATE", "delete": "DELETE"}


class Sent(Struct, frozen=True):
    """A change that is on its way, under the id of its message."""

    op: Op
    msg_id: str
    book_id: str


class Uplink(Live):
    """Its session is kept by the broker: what others change while we are away waits for us there."""

    session_expiry = SESSION_SECONDS
    new_id: Callable[[], str]

    def filters(self) -> tuple[str, ...]:
        return (f"heji/down/{self._account.user_id}/#",)

    async def while_connected(self, link: MqttLink) -> None:
        await self._replica.apply(_none_on_its_way)
        self._sent: dict[str, Sent] = {}
        sending = asyncio.create_task(self._send_on(link), name="holdfast uplink")
        try:
            await super().while_connected(link)
        finally:
            sending.cancel()
            failures = await asyncio.gather(sending, return_exceptions=True)
            for failure in failures:
                if isinstance(failure, Exception):
                    link.why = link.why or failure

    async def _send_on(self, link: MqttLink) -> None:
        changed = self._replica.watch((OUTBOX,))
        try:
            while True:
                changed.clear()
                await self._replica.apply(partial(_overdue, now_ms=self._timing.now_ms()))
                while batch := await self._replica.write(self._take_window):
                    await asyncio.gather(*(self._publish(link, sent) for sent in batch))
                await first_of(changed, self._timing.sleep(LOOK_SECONDS))
        finally:
            self._replica.unwatch(changed)

    def _take_window(self, tx: Transaction) -> list[Sent]:
        return _next_messages(tx, self.sync.putting_off(), self.new_id, self._timing.now_ms())

    async def _publish(self, link: MqttLink, sent: Sent) -> None:
        self._sent[sent.msg_id] = sent
        op = sent.op
        kind = "IMAGE_DELETED" if op.entity == "image" else f"{VERBS[op.op]}_{op.entity.upper()}"
        content = op.id if op.op == "delete" else bytes(op.data).decode()
        message = Message(kind, content, self._timing.now_ms(), sent.msg_id, sent.book_id)
        topic = f"heji/up/{self._account.user_id}/{op.entity}"
        await link.publish(topic, msgspec.json.encode(message))

    async def handle(self, message: Publish) -> None:
        try:
            said = MESSAGE.decode(message.payload)
        except msgspec.DecodeError:
            self.sync.pull_wanted.call()
            return
        if said.type.endswith("_ACK"):
            await self._acknowledged(said)
        else:
            await super().handle(message)

    async def _acknowledged(self, said: Message) -> None:
        sent = self._sent.pop(said.id, None) or await self._replica.read(partial(_by_message, msg_id=said.id))
        if sent is None:
            return
        ack = ACK.decode(said.content)
        outcome = Outcome(200) if ack.ok else Outcome(ack.code // 100, ack.code, ack.reason, ack.message)
        await self.sync.settle([sent.op], [outcome])
        await self._replica.apply(partial(_answered, sent=sent, version=ack.version if ack.ok else 0))


def _next_messages(
    tx: Transaction, putting_off: Collection[str], new_id: Callable[[], str], now_ms: int
) -> list[Sent]:
    """Takes what is to go next, and notes under which name it goes."""
    taken = []
    for op in next_batch(tx, WINDOW, putting_off):
        book = "id" if op.entity == "book" else "book_id"
        row = tx.row(f"SELECT msg_id, sent_rev, {book} FROM {op.entity} WHERE id = ?", op.id)
        assert row is not None
        saying = f".{op.rev}{op.op[0]}"
        msg_id = str(row[0]) if row[0] and str(row[0]).endswith(saying) else new_id() + saying
        tx.execute(
            f"UPDATE {op.entity} SET synced = {SYNCING}, msg_id = ?, sent_ms = ? WHERE id = ?",
            msg_id,
            now_ms,
            op.id,
        )
        taken.append(Sent(op, msg_id, str(row[2])))
    tx.changed(LEDGER)
    return taken


def _by_message(view: View, msg_id: str) -> Sent | None:
    """A change that an earlier connection, or an earlier run, has sent."""
    for kind in rows.KINDS:
        row = view.row(
            f"SELECT id, deleted, sent_rev FROM {kind} WHERE synced <> {SYNCED} AND msg_id = ?", msg_id
        )
        if row is not None:
            identity, deleted, sent_rev = str(row[0]), row[1], int(row[2] or 0)
            op = Op("delete" if deleted else "create", kind, identity, sent_rev, msgspec.Raw(b"{}"))
            return Sent(op, msg_id, "")
    return None


def _overdue(tx: Transaction, now_ms: int) -> None:
    limit = now_ms - int(ACK_SECONDS * 1000)
    for kind in rows.KINDS:
        if tx.execute(
            f"UPDATE {kind} SET synced = {NOT_SYNCED} WHERE synced = {SYNCING} AND sent_ms <= ?", limit
        ):
            tx.changed(LEDGER)


def _none_on_its_way(tx: Transaction) -> None:
    """A new connection: whether the former one's messages arrived will be told by sending them again."""
    for kind in rows.KINDS:
        tx.execute(f"UPDATE {kind} SET synced = {NOT_SYNCED} WHERE synced = {SYNCING}")
    tx.changed(LEDGER)


def _answered(tx: Transaction, sent: Sent, version: int) -> None:
    """Whatever is sent from now on is another message."""
    tx.execute(
        f"UPDATE {sent.op.entity} SET version = max(version, ?),"
        " msg_id = CASE WHEN msg_id = ? THEN NULL ELSE msg_id END WHERE id = ?",
        version,
        sent.msg_id,
        sent.op.id,
    )
