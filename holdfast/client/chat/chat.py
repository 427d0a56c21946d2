"""Messages, as an app uses them: sent and read locally, delivered when there is a way."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from functools import partial

import msgspec

from holdfast.client.account import Account
from holdfast.client.chat import outgoing, reading, stored
from holdfast.client.chat.filling import Filling
from holdfast.client.chat.link import ChatLink
from holdfast.client.chat.model import Conversation, Group, Member, Message, in_group, with_person
from holdfast.client.chat.outgoing import OUTBOX, Outgoing
from holdfast.client.chat.stored import CHAT
from holdfast.client.chat.wire import Answer
from holdfast.client.errors import InvalidValue, NotHere
from holdfast.client.http import Http
from holdfast.client.news import News, Waiting
from holdfast.client.replica import Replica, Transaction
from holdfast.client.timing import Timing
from holdfast.client.watching import watched

BODY = 4_096
MENTIONS = 50

_group = msgspec.json.Decoder(Answer[Group])


class _Members(msgspec.Struct, rename="camel"):
    items: list[Member]
    has_more: bool
    next_last_user_id: str | None = None


_members = msgspec.json.Decoder(Answer[_Members])


class Chat:
    def __init__(self, replica: Replica, http: Http, account: Account, timing: Timing, news: News) -> None:
        self._replica = replica
        self._http = http
        self._account = account
        self._timing = timing
        self.filling = Filling(replica, http, account, news)
        self.link: ChatLink | None = None

    # -- sending

    async def send(
        self,
        body: str,
        *,
        to: str = "",
        group: str = "",
        mentions: tuple[str, ...] = (),
        reply_to: str | None = None,
        important: bool = False,
    ) -> Message:
        """To a person or into a group, by id. It is kept until the server has saved it, also across restarts."""
        if bool(to) == bool(group):
            raise InvalidValue("to", "give a person or a group")
        if not body or len(body) > BODY or "\0" in body:
            raise InvalidValue("body", f"1 to {BODY} characters")
        if to and to == self._account.user_id:
            raise InvalidValue("to", "nobody writes to himself")
        if len(mentions) > MENTIONS:
            raise InvalidValue("mentions", f"{MENTIONS} at the most")
        conversation = with_person(to) if to else in_group(group)
        waiting = Outgoing(
            0,
            secrets.token_hex(12),
            conversation,
            "TEXT",
            body,
            mentions,
            reply_to,
            important,
            self._timing.now_ms(),
        )
        await self._replica.write(partial(outgoing.queue, message=waiting))
        return reading.waiting_message(waiting, self._account.user_id)

    async def retry(self, client_msg_id: str) -> None:
        """Sends a message again that was refused."""
        if not await self._replica.write(partial(outgoing.retry, client_msg_id=client_msg_id)):
            raise NotHere("there is no refused message with this clientMsgId")

    async def discard(self, client_msg_id: str) -> None:
        """Gives up a message that was refused."""
        if not await self._replica.write(partial(outgoing.discard, client_msg_id=client_msg_id)):
            raise NotHere("there is no refused message with this clientMsgId")

    async def revoke(self, server_msg_id: str) -> None:
        """Takes a message of ours back; the server allows it for two minutes."""
        await self._replica.write(partial(_revoke, server_msg_id=server_msg_id, me=self._account.user_id))

    async def mark_read(self, conversation: str) -> None:
        """Everything that is here; the others are told when there is a way."""
        await self._replica.write(partial(outgoing.mark_read, conversation=conversation))

    # -- reading

    async def conversations(self) -> list[Conversation]:
        """The latest first."""
        return await self._replica.read(partial(reading.conversations, me=self._account.user_id))

    async def messages(
        self, conversation: str, *, before: int | None = None, limit: int = 100
    ) -> list[Message]:
        """The last ones (below `before`), in their order; what waits to be sent behind them."""
        me = self._account.user_id
        return await self._replica.read(lambda view: reading.messages(view, conversation, me, before, limit))

    async def watch(self, conversation: str, *, limit: int = 100) -> AsyncIterator[list[Message]]:
        me = self._account.user_id
        topics = (stored.topic(conversation),)
        async for messages in watched(
            self._replica, topics, lambda view: reading.messages(view, conversation, me, None, limit)
        ):
            yield messages

    async def watch_conversations(self) -> AsyncIterator[list[Conversation]]:
        me = self._account.user_id
        async for found in watched(self._replica, (CHAT,), partial(reading.conversations, me=me)):
            yield found

    async def waiting(self) -> Waiting:
        return await self._replica.read(lambda view: Waiting(outgoing.pending(view), outgoing.failed(view)))

    # -- connected

    @property
    def state(self) -> str:
        """off, connecting, open, or why it was stopped (`kicked`)."""
        return "off" if self.link is None else self.link.state

    def connect(self) -> None:
        """Again, after another device of this user has taken over (`kicked`)."""
        if self.link is not None:
            self.link.wanted.set()

    async def refresh(self) -> None:
        """Reads what is missing over HTTP, now."""
        await self.filling.catch_up(at_once=True)

    # -- groups: these ask the server

    async def create_group(self, name: str, members: tuple[str, ...] = ()) -> Group:
        return await self._group("create", {"name": name, "memberUserIds": members})

    async def join_group(self, code: str) -> Group:
        return await self._group("join", {"groupCode": code})

    async def leave_group(self, group_id: str) -> None:
        body = msgspec.json.encode({"groupId": group_id})
        await self._http.ask("POST", "/group/leave", body=body, at_once=True)

    async def group(self, group_id: str) -> Group:
        answer = await self._http.ask(
            "GET", "/group/profile/by-id", query={"groupId": group_id}, at_once=True
        )
        return _group.decode(answer.content).data

    async def members(self, group_id: str) -> list[Member]:
        found: list[Member] = []
        last = "0"
        while True:
            answer = await self._http.ask(
                "GET",
                "/group/member/list",
                query={"groupId": group_id, "limit": 200, "lastUserId": last},
                at_once=True,
            )
            page = _members.decode(answer.content).data
            found += page.items
            if not page.has_more or page.next_last_user_id is None:
                return found
            last = page.next_last_user_id

    async def _group(self, verb: str, asked: dict[str, object]) -> Group:
        body = msgspec.json.encode(asked)
        key = {"Idempotency-Key": secrets.token_hex(16)}
        answer = await self._http.ask("POST", f"/group/{verb}", body=body, headers=key, at_once=True)
        group = _group.decode(answer.content).data
        await self._replica.write(partial(_named, conversation=in_group(group.group_id), name=group.name))
        return group


def _named(tx: Transaction, conversation: str, name: str) -> None:
    stored.know(tx, conversation)
    tx.execute("UPDATE chat_conversation SET name = ? WHERE id = ?", name, conversation)
    tx.changed(CHAT)


def _revoke(tx: Transaction, server_msg_id: str, me: str) -> None:
    sender = tx.value("SELECT sender FROM chat_message WHERE server_msg_id = ?", server_msg_id)
    if sender != me:
        raise NotHere("there is no message of ours with this serverMsgId")
    tx.execute("INSERT OR IGNORE INTO chat_revocation (server_msg_id) VALUES (?)", server_msg_id)
    tx.changed(OUTBOX, CHAT)
