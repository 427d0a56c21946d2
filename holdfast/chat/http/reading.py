"""Messages and conversations, as lists: `/single-chat/*` and the lists of `/group/*`."""

from __future__ import annotations

from typing import Annotated

from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter

from holdfast.chat import history
from holdfast.chat.history import Window
from holdfast.chat.http.request import (
    TOKEN,
    GroupId,
    LastSeq,
    Limit,
    PeerUserId,
    SinceSeq,
    an_id,
    me,
    number,
)
from holdfast.chat.http.shapes import (
    ConversationPage,
    MemberState,
    MessagePage,
    conversation_item,
    member_state,
    message_page,
)
from holdfast.chat.model import Kind
from holdfast.errors import InvalidField
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get
from holdfast.settings.chat import Chat
from holdfast.store import Database

LastUpdatedAt = Annotated[
    str | None, QueryParameter(name="lastUpdatedAt", description="`nextLastUpdatedAt` of the page before")
]
LastId = Annotated[str | None, QueryParameter(name="lastId", description="`nextLastId` of the page before")]


def handlers(db: Database, settings: Chat) -> list[HTTPRouteHandler]:
    everything = settings.history_on_join

    async def singles(peer: str, window: Window) -> Answer[MessagePage]:
        user = me()
        other = an_id("peerUserId", peer)
        found = await db.read(history.single_messages, user, other, window, everything=True)
        return answer(message_page(found, user))

    async def in_group(group: str, window: Window) -> Answer[MessagePage]:
        user = me()
        found = await db.read(
            history.group_messages, user, an_id("groupId", group), window, everything=everything
        )
        return answer(message_page(found, user))

    async def listed(
        kind: Kind, limit: int, updated_at: str | None, last_id: str | None
    ) -> Answer[ConversationPage]:
        user = me()
        if (updated_at is None) != (last_id is None):
            raise InvalidField("lastId", "lastUpdatedAt and lastId come together, or neither")
        before = None
        if updated_at is not None and last_id is not None:
            before = (number("lastUpdatedAt", updated_at), number("lastId", last_id))
        found = await db.read(history.conversations, user, kind, limit, before, everything=everything)
        items = [conversation_item(one, user) for one in found.found]
        if not found.has_more:
            return answer(ConversationPage(items, False))
        last = found.found[-1].row
        return answer(ConversationPage(items, True, str(last.updated_ms), str(last.id)))

    @get("/single-chat/message/cursor", summary="Messages with somebody, newest first", security=TOKEN)
    async def single_newest(
        peer_user_id: PeerUserId, limit: Limit = 20, last_seq: LastSeq = None
    ) -> Answer[MessagePage]:
        return await singles(peer_user_id, _below(limit, last_seq))

    @get("/single-chat/message/since", summary="Messages with somebody above a msgSeq", security=TOKEN)
    async def single_since(
        peer_user_id: PeerUserId, limit: Limit = 50, since_seq: SinceSeq = "0"
    ) -> Answer[MessagePage]:
        """Fills a gap."""
        return await singles(peer_user_id, Window(limit, since=number("sinceSeq", since_seq)))

    @get("/single-chat/conversation/cursor", summary="Whom I talk with, the latest first", security=TOKEN)
    async def single_conversations(
        limit: Limit = 20, last_updated_at: LastUpdatedAt = None, last_id: LastId = None
    ) -> Answer[ConversationPage]:
        return await listed(Kind.SINGLE, limit, last_updated_at, last_id)

    @get("/single-chat/member/state", summary="How far the two of us have received and read", security=TOKEN)
    async def single_state(peer_user_id: PeerUserId) -> Answer[MemberState]:
        peer = an_id("peerUserId", peer_user_id)
        return answer(member_state(peer, await db.read(history.single_states, me(), peer)))

    @get("/group/message/cursor", summary="Messages of a group, newest first", security=TOKEN)
    async def group_newest(
        group_id: GroupId, limit: Limit = 20, last_seq: LastSeq = None
    ) -> Answer[MessagePage]:
        return await in_group(group_id, _below(limit, last_seq))

    @get("/group/message/since", summary="Messages of a group above a msgSeq", security=TOKEN)
    async def group_since(
        group_id: GroupId, limit: Limit = 50, since_seq: SinceSeq = "0"
    ) -> Answer[MessagePage]:
        """What to ask after a `GROUP_NOTIFY`."""
        return await in_group(group_id, Window(limit, since=number("sinceSeq", since_seq)))

    @get("/group/conversation/cursor", summary="My groups, the latest first", security=TOKEN)
    async def group_conversations(
        limit: Limit = 20, last_updated_at: LastUpdatedAt = None, last_id: LastId = None
    ) -> Answer[ConversationPage]:
        return await listed(Kind.GROUP, limit, last_updated_at, last_id)

    return [
        single_newest,
        single_since,
        single_conversations,
        single_state,
        group_newest,
        group_since,
        group_conversations,
    ]


def _below(limit: int, last_seq: str | None) -> Window:
    return Window(limit, last=None if last_seq is None else number("lastSeq", last_seq))
