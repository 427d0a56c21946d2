"""Who an access token stands for, in microseconds, and without ever believing an sv that was raised.

    hit    SHA-256 of the token → session: a look-up, its expiry, its sv beside the user's
    miss   signature and claims, then the user's row
    raised in this process: the store's event after the commit
           elsewhere: a poll, once a second, of the sv_revisions above the last one seen
           nobody knows (a COMMIT without an answer): polled at once

The store is the truth: what is remembered counts only while the last poll is younger than `MAX_AGE`; older (the loop
stood still, the store is away) and everyone waits for the next poll, and gets 503 when it fails.

A user's sv lives in one `Watched` as long as any session of it is held by anyone, here or in a live connection:
so a raise finds every one of them, also a session that is being verified at this moment.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from weakref import WeakValueDictionary

from msgspec import Struct

from holdfast.accounts import queries
from holdfast.accounts.model import SessionsEnded
from holdfast.accounts.tokens import AccessTokens
from holdfast.clock import Clock
from holdfast.errors import (
    HoldfastError,
    InvalidToken,
    NotLoggedIn,
    SessionInvalid,
    StoreUnavailable,
    TokenExpired,
)
from holdfast.log import get_logger
from holdfast.store import Database, StoreReset

POLL_SECONDS = 1.0
MAX_AGE = 2.5  # less than the 3 s within which a raised sv must be seen

log = get_logger("accounts")


class Watched:
    """A user's sv, as far as this process knows."""

    __slots__ = ("__weakref__", "sv")

    def __init__(self) -> None:
        self.sv = 0

    def learn(self, sv: int) -> None:
        if sv > self.sv:
            self.sv = sv


class Session(Struct, frozen=True, eq=False):
    """What a verified access token stands for. Whoever holds one can see at any time whether it has ended."""

    user_id: int
    name: str
    is_admin: bool
    sv: int
    expires_ms: int
    watched: Watched

    @property
    def ended(self) -> bool:
        return self.sv != self.watched.sv

    def why_over(self, now_ms: int) -> NotLoggedIn | None:
        """Why this session is good no longer, or None."""
        if self.ended:
            return SessionInvalid()
        return TokenExpired() if self.expires_ms <= now_ms else None


class Sessions:
    def __init__(self, db: Database, tokens: AccessTokens, clock: Clock, *, limit: int = 50_000) -> None:
        self._db = db
        self._tokens = tokens
        self._clock = clock
        self._limit = limit
        self._held: OrderedDict[bytes, Session] = OrderedDict()  # oldest first
        self._watched: WeakValueDictionary[int, Watched] = WeakValueDictionary()
        self._handlers: list[Callable[[SessionsEnded], None]] = []
        self._seen = 0
        self._fresh_until = 0.0
        self._resets = 0
        self._poll_now = asyncio.Event()
        self._catching_up: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._db.subscribe(SessionsEnded, self._ended)
        self._db.subscribe(StoreReset, self._reset)
        started = self._clock.monotonic()
        self._seen = await self._db.read(queries.revision)
        self._fresh_until = started + MAX_AGE
        self._polling = asyncio.create_task(self._poll(), name="accounts: sessions ended elsewhere")

    async def stop(self) -> None:
        for task in (self._polling, self._catching_up):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def on_session_ended(self, handler: Callable[[SessionsEnded], None]) -> None:
        """`handler` hears, on the loop, of every raised sv: at once from this process, in 3 s from others.

        It may hear the same twice. Whoever holds connections closes those of the user whose session has `ended`,
        and looks at `ended` once more after adding a connection to what it keeps.
        """
        self._handlers.append(handler)

    def known(self, token: str) -> Session | None:
        """The session of a token verified before, if it is still good; None when `verify` has to say."""
        key = _key(token)
        session = self._held.get(key)
        if session is None or self._clock.monotonic() >= self._fresh_until:
            return None
        if session.sv != session.watched.sv or session.expires_ms <= self._clock.now_ms():
            del self._held[key]
            return None
        return session

    async def verify(self, token: str) -> Session:
        """The session this token stands for; raises `InvalidToken`, `TokenExpired` or `SessionInvalid`."""
        if (session := self.known(token)) is not None:
            return session
        claims = self._tokens.read(token)
        if self._clock.monotonic() >= self._fresh_until:
            await self._be_fresh()
            if (session := self.known(token)) is not None:
                return session
        watched = self._watched.setdefault(claims.user_id, Watched())
        user = await self._db.glance(queries.user, claims.user_id)
        if user is None:
            raise InvalidToken
        watched.learn(
            user.sv
        )  # what was raised since the row was read has been learned already, and is higher
        session = Session(user.id, user.name, user.is_admin, claims.sv, claims.exp * 1000, watched)
        if session.ended or user.disabled:
            raise SessionInvalid
        self._hold(_key(token), session)
        return session

    @property
    def held(self) -> int:
        return len(self._held)

    def _hold(self, key: bytes, session: Session) -> None:
        self._held[key] = session
        while len(self._held) > self._limit:
            self._held.popitem(last=False)

    # -- what ended

    def _ended(self, event: SessionsEnded) -> None:
        watched = self._watched.get(event.user_id)
        if watched is not None:
            watched.learn(event.sv)
        for handler in self._handlers:
            try:
                handler(event)
            except Exception:
                # one room's mistake must not keep the others from closing what has ended
                log.exception("session_ended_handler_failed", user_id=event.user_id)

    def _reset(self, _event: StoreReset) -> None:
        self._resets += 1
        self._fresh_until = 0.0
        self._poll_now.set()

    async def _poll(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poll_now.wait(), POLL_SECONDS)
            self._poll_now.clear()
            self._drop_expired()
            try:
                await self._caught_up()
            except HoldfastError as error:
                log.warning("sessions_not_polled", error=error.reason)
            except Exception:
                # whatever it was: without the next poll nobody's live connection would ever be closed
                log.exception("sessions_not_polled")

    def _drop_expired(self) -> None:
        now_ms = self._clock.now_ms()
        while self._held:
            key = next(iter(self._held))
            if self._held[key].expires_ms > now_ms:
                return  # the oldest is still good; behind it at most a few are not
            del self._held[key]

    async def _be_fresh(self) -> None:
        """Twice, because the read that was under way may have begun too long ago, or before a reset."""
        for _ in range(2):
            await self._caught_up()
            if self._clock.monotonic() < self._fresh_until:
                return
        raise StoreUnavailable

    async def _caught_up(self) -> None:
        """Reads what was raised since the last time; whoever needs it at the same time shares the read."""
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = asyncio.create_task(self._catch_up())
            self._catching_up.add_done_callback(_looked_at)
        await asyncio.shield(self._catching_up)

    async def _catch_up(self) -> None:
        started, resets = self._clock.monotonic(), self._resets
        while True:
            changes = await self._db.glance(queries.changes, self._seen)
            for change in changes:
                self._ended(SessionsEnded(change.user_id, change.sv))
                self._seen = change.revision
            if len(changes) < queries.CHANGES_PAGE:
                break
        if resets == self._resets:
            self._fresh_until = started + MAX_AGE


def _looked_at(task: asyncio.Task[None]) -> None:
    """Its error goes to whoever waits; that all of them have gone away is not worth a warning."""
    if not task.cancelled():
        task.exception()


def _key(token: str) -> bytes:
    """What a token is remembered by: not the token, so that a dump of this memory logs nobody in."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
