"""Gaps, filled over HTTP; and the comparison with the server: heads, and that nothing is missing below them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.client.account import Account
from holdfast.client.chat import stored
from holdfast.client.chat.wire import CONVERSATIONS, GROUPS, MESSAGES, USERS, Frame
from holdfast.client.errors import Refused
from holdfast.client.http import Http
from holdfast.client.news import Differs, MessageArrived, News, Verified
from holdfast.client.replica import Replica, Transaction, View

PAGE = 200
NAMES = 100


class Filling:
    def __init__(self, replica: Replica, http: Http, account: Account, news: News) -> None:
        self._replica = replica
        self._http = http
        self._account = account
        self._news = news

    async def catch_up(self, *, at_once: bool = False) -> None:
        """Every conversation, as far as the server has it."""
        for kind in ("single-chat", "group"):
            await self._list(kind, at_once=at_once)
        await self.fill(at_once=at_once)
        await self.name_unnamed(at_once=at_once)
        await self.verify()

    async def _list(self, kind: str, *, at_once: bool) -> None:
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            answer = await self._http.ask("GET", f"/{kind}/conversation/cursor", query=query, at_once=at_once)
            page = CONVERSATIONS.decode(answer.content).data
            await self._replica.write(partial(stored.listed, items=page.items))
            if not page.has_more or page.next_last_updated_at is None or page.next_last_id is None:
                return
            query = {
                "limit": PAGE,
                "lastUpdatedAt": page.next_last_updated_at,
                "lastId": page.next_last_id,
            }

    async def fill(self, *, at_once: bool = False) -> None:
        """Whatever lies between what is here without a gap and what we have heard of."""
        for conversation, reached, head in await self._replica.read(stored.behind):
            await self._fill(conversation, reached, head, at_once=at_once)

    async def _fill(self, conversation: str, since: int, head: int, *, at_once: bool) -> None:
        more = True
        while more:
            try:
                frames, more = await self._page(conversation, since, at_once=at_once)
            except Refused as refused:
                if refused.status not in (403, 404):
                    raise
                frames, more = [], False  # not ours to see any more: nothing of it is missing
            kept = partial(
                stored.filled,
                conversation=conversation,
                since=since,
                frames=frames,
                head=head,
                last=not more,
                me=self._account.user_id,
            )
            if not await self._replica.write(kept):
                return
            for frame in frames:
                self._news.tell(MessageArrived(conversation, frame.server_msg_id, frame.from_, frame.body))
            since = max((frame.seq for frame in frames), default=since)

    async def _page(self, conversation: str, since: int, *, at_once: bool) -> tuple[Sequence[Frame], bool]:
        kind, _, other = conversation.partition(":")
        path = "/group/message/since" if kind == "g" else "/single-chat/message/since"
        whom = "groupId" if kind == "g" else "peerUserId"
        answer = await self._http.ask(
            "GET", path, query={whom: other, "sinceSeq": since, "limit": PAGE}, at_once=at_once
        )
        page = MESSAGES.decode(answer.content).data
        return page.items, page.has_more and bool(page.items)

    async def verify(self) -> bool:
        """Below each head nothing may be missing; what is, is read again."""
        thin = await self._replica.read(stored.thin)
        for conversation in thin:
            self._news.tell(Differs("chat", conversation, "there are gaps"))
            await self._replica.write(partial(stored.refill, conversation=conversation))
        if thin:
            await self.fill()
        self._news.tell(Verified("chat", len(thin)))
        return not thin

    async def name_unnamed(self, *, at_once: bool = False) -> None:
        """People and groups that we have heard from and know by their ids alone."""
        unnamed = await self._replica.read(_unnamed)
        named: list[tuple[str, str]] = []
        if people := [identity[2:] for identity in unnamed if identity.startswith("u:")]:
            answer = await self._http.ask(
                "GET", "/user/basic", query={"ids": ",".join(people)}, at_once=at_once
            )
            named += [(user.username, f"u:{user.user_id}") for user in USERS.decode(answer.content).data]
        if groups := [identity[2:] for identity in unnamed if identity.startswith("g:")]:
            answer = await self._http.ask(
                "GET", "/group/basic", query={"ids": ",".join(groups)}, at_once=at_once
            )
            named += [(group.name, f"g:{group.group_id}") for group in GROUPS.decode(answer.content).data]
        if named:
            await self._replica.apply(partial(_name, named=named))


def _unnamed(view: View) -> list[str]:
    found = view.rows("SELECT id FROM chat_conversation WHERE name = '' LIMIT ?", NAMES)
    return [str(row[0]) for row in found]


def _name(tx: Transaction, named: list[tuple[str, str]]) -> None:
    tx.many("UPDATE chat_conversation SET name = ? WHERE id = ?", named)
    tx.changed(stored.CHAT)
