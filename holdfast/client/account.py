"""Who this replica belongs to, and his session: kept in the replica, renewed before it ends.

A refresh token is exchanged for another one; the exchange is on the disk before the new one is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct

from holdfast.client.errors import AnotherUser, Busy, LoginNeeded, Refused, Unanswered
from holdfast.client.feeds import set_meta
from holdfast.client.http import Http, Tokens
from holdfast.client.ledger.changes import claim_anonymous
from holdfast.client.replica import Replica, Transaction, View
from holdfast.client.timing import Timing

EARLY_MS = 120_000  # a token is renewed this long before it ends


class LoggedIn(Struct, rename="camel"):
    user_id: str
    access_token: str
    refresh_token: str
    access_token_expires_in_seconds: int
    refresh_token_expires_in_seconds: int


class LoginAnswer(Struct):
    data: LoggedIn


class Session(Struct, frozen=True):
    user_id: str = ""
    name: str = ""
    access_token: str = ""
    expires_ms: int = 0
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"Session(user_id={self.user_id})"


class Account(Tokens):
    def __init__(self, replica: Replica, http: Http, timing: Timing) -> None:
        self._replica = replica
        self._http = http
        self._timing = timing
        self._renewing = asyncio.Lock()
        self._session = Session()
        self.on_change: Callable[[], None] = lambda: None
        http.tokens = self

    async def load(self) -> None:
        self._session = await self._replica.read(_stored)

    # -- who

    @property
    def user_id(self) -> str:
        """Empty before the first login."""
        return self._session.user_id

    @property
    def name(self) -> str:
        return self._session.name

    @property
    def logged_in(self) -> bool:
        return bool(self._session.refresh_token)

    @property
    def expires_ms(self) -> int:
        return self._session.expires_ms

    # -- in and out

    async def register(self, username: str, password: str) -> None:
        """Makes an account on the server and logs in."""
        body = msgspec.json.encode({"username": username, "password": password})
        await self._http.ask("POST", "/auth/register", body=body, open_to_all=True, at_once=True)
        await self.log_in(username, password)

    async def log_in(self, username: str, password: str) -> None:
        body = msgspec.json.encode({"username": username, "password": password})
        answer = await self._http.ask("POST", "/auth/login", body=body, open_to_all=True, at_once=True)
        login = msgspec.json.decode(answer.content, type=LoginAnswer).data
        if self.user_id not in ("", login.user_id):
            raise AnotherUser(f"this replica belongs to {self.name or self.user_id}")
        await self._keep(login, username)

    async def log_out(self) -> None:
        """Ends this login, on the server too if it can be reached. What is in the replica stays."""
        token = self._session.refresh_token
        if not token:
            return
        self._session = await self._replica.write(_forget)
        self.on_change()
        body = msgspec.json.encode({"refreshToken": token})
        try:
            await self._http.ask("POST", "/auth/logout", body=body, open_to_all=True, at_once=True)
        except (Unanswered, Busy, Refused):
            return  # it ends by itself

    # -- tokens

    async def token(self, *, at_once: bool = False) -> str:
        """An access token that will do for a while."""
        session = self._session
        if not session.refresh_token:
            raise LoginNeeded(LoginNeeded.__doc__)
        if self._timing.now_ms() < session.expires_ms - EARLY_MS:
            return session.access_token
        return await self.renewed(session.access_token, at_once=at_once)

    async def renewed(self, refused: str, *, at_once: bool = False) -> str:
        async with self._renewing:
            # another process on this replica, or another task of ours, may have done it
            self._session = await self._replica.read(_stored)
            session = self._session
            if not session.refresh_token:
                raise LoginNeeded(LoginNeeded.__doc__)
            if session.access_token != refused and self._timing.now_ms() < session.expires_ms - EARLY_MS:
                return session.access_token
            body = msgspec.json.encode({"refreshToken": session.refresh_token})
            try:
                answer = await self._http.ask(
                    "POST", "/auth/refresh", body=body, open_to_all=True, at_once=at_once
                )
            except Refused as refusal:
                if refusal.status != 401:
                    raise
                self._session = await self._replica.write(_forget)
                self.on_change()
                raise LoginNeeded(f"the server has ended this session ({refusal.reason})") from None
            await self._keep(msgspec.json.decode(answer.content, type=LoginAnswer).data, session.name)
            return self._session.access_token

    async def _keep(self, login: LoggedIn, name: str) -> None:
        expires_ms = self._timing.now_ms() + login.access_token_expires_in_seconds * 1000
        session = Session(login.user_id, name, login.access_token, expires_ms, login.refresh_token)
        self._session = await self._replica.write(lambda tx: _store(tx, session))
        self.on_change()


def _stored(view: View) -> Session:
    found = {str(name): str(value) for name, value in view.rows("SELECT name, value FROM meta")}
    return Session(
        found.get("user_id", ""),
        found.get("user_name", ""),
        found.get("access_token", ""),
        int(found.get("expires_ms", "0")),
        found.get("refresh_token", ""),
    )


def _store(tx: Transaction, session: Session) -> Session:
    if not tx.value("SELECT 1 FROM meta WHERE name = 'user_id'"):
        claim_anonymous(tx, session.user_id)
    set_meta(tx, "user_id", session.user_id)
    set_meta(tx, "user_name", session.name)
    set_meta(tx, "access_token", session.access_token)
    set_meta(tx, "expires_ms", str(session.expires_ms))
    set_meta(tx, "refresh_token", session.refresh_token)
    tx.changed(ACCOUNT)
    return session


def _forget(tx: Transaction) -> Session:
    """The session ends; the replica stays its user's."""
    tx.execute("DELETE FROM meta WHERE name IN ('access_token', 'expires_ms', 'refresh_token')")
    tx.changed(ACCOUNT)
    return _stored(tx)


ACCOUNT = "account"
