"""SINGLE_CHAT and GROUP_CHAT: checked, saved in runs, acknowledged after the commit and in order.

A run is what one connection has sent to one conversation without anything in between: one transaction locks the
conversation once for all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from holdfast.chat import actions, queries
from holdfast.chat.actions import Kept, Outcome, Rival
from holdfast.chat.frames import Frame, SavedAck, encode, id_of
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.shortcut import ShortCut
from holdfast.chat.model import Draft, Kind, Target
from holdfast.chat.reasons import Reason, Refused
from holdfast.clock import Clock
from holdfast.cluster import Cluster
from holdfast.ids import IdMaker
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

LONGEST_RUN = 32
MOST_PAIRS = 100_000
DEFAULT_TYPE = "TEXT"


class _Post(Struct, frozen=True):
    """A frame that may be saved."""

    frame: Frame
    draft: Draft


def address_of(frame: Frame) -> tuple[str, str | None]:
    """What makes two frames go to the same conversation."""
    return frame.type, frame.to if frame.type == "SINGLE_CHAT" else frame.group_id


class Posting:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        clock: Clock,
        metrics: Metrics,
        new_id: IdMaker,
        cluster: Cluster,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._shortcut = ShortCut(cluster)
        self._pairs: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._saved = metrics.counter("holdfast_chat_messages", "Messages from clients", "result")

    async def post(self, connection: Connection, frames: Sequence[Frame]) -> None:
        """A run: all go to the same conversation."""
        checked = [self._checked(connection, frame) for frame in frames]
        posts = [post for post in checked if isinstance(post, _Post)]
        outcomes = iter(await self._save(connection, posts) if posts else ())
        acks: list[bytes] = []
        for frame, post in zip(frames, checked, strict=True):
            outcome = next(outcomes) if isinstance(post, _Post) else post
            if isinstance(outcome, Kept):
                acks.append(self._ack(frame, outcome))
            else:
                connection.send_all(acks)  # in order
                acks = []
                connection.error(outcome, client_msg_id=frame.client_msg_id)
                self._saved.add("refused")
        connection.send_all(acks)

    def _checked(self, connection: Connection, frame: Frame) -> _Post | Reason:
        if not frame.client_msg_id:
            return Reason.MISSING_MSG_ID
        if frame.type == "SINGLE_CHAT":
            if not frame.to:
                return Reason.MISSING_TO
            to = id_of(frame.to)
            if to is None:
                return Reason.USER_NOT_FOUND
            if to == connection.user_id:
                return Reason.CANNOT_SEND_TO_SELF
        elif not frame.group_id:
            return Reason.MISSING_GROUP_ID
        elif id_of(frame.group_id) is None:
            return Reason.NOT_GROUP_MEMBER
        if not frame.body:
            return Reason.MISSING_BODY
        if len(frame.body) > self._settings.body_characters:
            return Reason.BODY_TOO_LONG
        reply_to = id_of(frame.reply_to)
        if frame.reply_to is not None and reply_to is None:
            return Reason.BAD_SERVER_MSG_ID
        mentions = tuple({user for text in frame.mentions or () if (user := id_of(text)) is not None})
        draft = Draft(
            self._new_id(),
            frame.client_msg_id,
            frame.msg_type or DEFAULT_TYPE,
            frame.body,
            self._clock.now_ms(),
            mentions,
            reply_to,
        )
        return _Post(frame, draft)

    async def _save(self, connection: Connection, posts: list[_Post]) -> Sequence[Outcome]:
        drafts = [post.draft for post in posts]
        try:
            target = await self._target(connection.user_id, posts[0].frame)
        except Refused as refused:
            return [refused.reason] * len(drafts)
        known = await self._shortcut.look(connection, target, drafts)
        if known is not None:
            return known
        device = connection.device_id if self._settings.ack_detail else None
        try:
            outcomes = await self._send(target, connection.user_id, drafts, device)
        except Rival:
            outcomes = [
                outcome
                for draft in drafts
                for outcome in await self._send(target, connection.user_id, [draft], device)
            ]
        self._shortcut.keep(connection.user_id, target, drafts, outcomes)
        return outcomes

    async def _send(
        self, target: Target, sender: int, drafts: list[Draft], device: str | None
    ) -> list[Outcome]:
        return await self._db.write(
            actions.send,
            target,
            sender,
            drafts,
            history_on_join=self._settings.history_on_join,
            audited_device=device,
        )

    async def _target(self, user: int, frame: Frame) -> Target:
        if frame.type == "GROUP_CHAT":
            group = id_of(frame.group_id)
            assert group is not None, "checked before"
            return Target(group, Kind.GROUP, 0)
        peer = id_of(frame.to)
        assert peer is not None, "checked before"
        pair = (min(user, peer), max(user, peer))
        conversation = self._pairs.get(pair)
        if conversation is None:
            conversation = await self._db.glance(queries.pair, *pair)
            if conversation is None:
                conversation = await self._db.write(
                    actions.open_single_chat, user, peer, self._new_id(), self._clock.now_ms()
                )
            self._pairs[pair] = conversation
            if len(self._pairs) > MOST_PAIRS:
                self._pairs.popitem(last=False)
        return Target(conversation, Kind.SINGLE, peer)

    def _ack(self, frame: Frame, kept: Kept) -> bytes:
        assert frame.client_msg_id is not None, "checked before"
        self._saved.add("again" if kept.replayed else "saved")
        return encode(SavedAck(frame.client_msg_id, str(kept.id), str(kept.seq), kept.sent_ms))
