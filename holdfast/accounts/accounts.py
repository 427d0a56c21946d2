"""The room's face: what takes more than one transaction, or a hash, a token and a transaction together.

Doors and the command line call this; nothing here knows HTTP. Wrong password, unknown user and disabled user take
the same steps, one look-up and one argon2 verification, and give the same error.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

from holdfast.accounts import actions, keys, queries, rules
from holdfast.accounts.keys import PublicJwk
from holdfast.accounts.model import Credentials, FreshToken, Grant, LoggedIn, NewUser, User
from holdfast.accounts.passwords import Passwords, Verdict
from holdfast.accounts.rules import Exchange
from holdfast.accounts.sessions import Sessions
from holdfast.accounts.throttle import Throttle, Try
from holdfast.accounts.tokens import AccessTokens, new_refresh_token, refresh_hash
from holdfast.clock import Clock
from holdfast.errors import (
    HoldfastError,
    InvalidToken,
    NotFound,
    RegistrationClosed,
    SessionInvalid,
    TokenExpired,
    Unavailable,
    WrongCredentials,
)
from holdfast.ids import MAX_ID, IdMaker
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Auth
from holdfast.store import Database

SWEEP_SECONDS = 3600.0
DAY_SECONDS = 86_400
USERS_PAGE = 1_000

log = get_logger("accounts")


class Accounts:
    """`start` before anything else: the keys and the revision of the sessions come from the store."""

    tokens: AccessTokens
    sessions: Sessions

    def __init__(
        self,
        db: Database,
        settings: Auth,
        clock: Clock,
        metrics: Metrics | None = None,
        *,
        registration_open: bool = False,
    ) -> None:
        metrics = metrics or Metrics()
        self._db = db
        self._settings = settings
        self._clock = clock
        self._registration_open = registration_open
        self._new_id = IdMaker(clock)
        self.passwords = Passwords(settings, metrics)
        self.throttle = Throttle(clock, settings.login_tries)
        self._logins = metrics.counter("holdfast_logins", "Attempts to log in", "outcome")
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._keys = await keys.load(self._settings, self._db)
        self.tokens = AccessTokens(self._keys, self._settings, self._clock)
        self.sessions = Sessions(self._db, self.tokens, self._clock)
        await self.sessions.start()
        self._sweeping = asyncio.create_task(self._sweep_now_and_then(), name="accounts: sweep")

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
            await self.sessions.stop()
        await asyncio.to_thread(self.passwords.close)

    def public_keys(self) -> list[PublicJwk]:
        return self._keys.public()

    # -- users

    async def new_user(self, name: str, password: str, *, is_admin: bool = False) -> NewUser:
        """What `actions.add_user` needs: the name may still be taken."""
        name = rules.checked_name(name)
        password = rules.checked_password(password, self._settings.password_min)
        password_hash = await self.passwords.hash(password)
        return NewUser(self._new_id(), name, password_hash, self._clock.now_ms(), is_admin)

    async def add_user(self, name: str, password: str, *, is_admin: bool = False) -> User:
        """The operator adds a user, whether registration is open or closed."""
        user = await self._db.write(actions.add_user, await self.new_user(name, password, is_admin=is_admin))
        log.info("user_added", user_id=user.id, is_admin=is_admin)
        return user

    def require_open_registration(self) -> None:
        if not self._registration_open:
            raise RegistrationClosed

    async def list_users(self) -> AsyncIterator[User]:
        """All users, by id, in pages."""
        above = 0
        while page := await self._db.read(queries.users_page, above, USERS_PAGE):
            for user in page:
                yield user
            above = page[-1].id

    async def user_named(self, name: str) -> User:
        """The user whom the operator means, by name or by id."""
        key = rules.key_of_existing(name)
        user = None
        if key is not None:
            user = await self._db.glance(queries.user_by_key, key)
        elif name.isascii() and name.isdigit() and len(name) <= 19 and int(name) <= MAX_ID:
            user = await self._db.glance(queries.user, int(name))
        if user is None:
            raise NotFound(f"there is no user {name!r}")
        return user

    async def set_password(self, user: User, password: str) -> None:
        """The operator gives a new password; every session of the user ends."""
        password = rules.checked_password(password, self._settings.password_min)
        await self._db.write(actions.set_password, user.id, await self.passwords.hash(password))
        log.info("password_set", user_id=user.id)

    async def set_disabled(self, user: User, *, disabled: bool) -> None:
        await self._db.write(actions.set_disabled, user.id, disabled=disabled)
        log.info("user_disabled" if disabled else "user_enabled", user_id=user.id)

    # -- logging in and out

    async def log_in(self, name: str, password: str, address: str) -> LoggedIn:
        key = rules.key_of_existing(name)
        attempt = self.throttle.begin(key or "", address)
        credentials = await self._db.glance(queries.credentials, key) if key is not None else None
        verdict = await self._verify(attempt, credentials, password)
        if credentials is None or credentials.disabled or not verdict.right:
            self._logins.add("refused")
            log.info("login_refused", user_id=credentials.user_id if credentials else None)
            raise WrongCredentials
        refresh_token, fresh = self._fresh_token()
        attempt.succeeded()
        grant = await self._db.write(
            actions.log_in,
            credentials,
            self._new_id(),
            fresh,
            renewed_hash=verdict.renewed_hash,
            single_device=self._settings.single_device,
        )
        self._logins.add("ok")
        log.info("logged_in", user_id=grant.user_id)
        return self._logged_in(grant, refresh_token)

    async def _verify(self, attempt: Try, credentials: Credentials | None, password: str) -> Verdict:
        """One argon2 verification, whether there is anything to compare with or not."""
        typed = rules.typed_password(password)
        stored = None if credentials is None or typed is None else credentials.password_hash
        try:
            return await self.passwords.verify(stored, typed or "")
        except Unavailable:
            attempt.never_mind()
            raise

    async def refresh(self, presented: str) -> LoggedIn:
        presented_hash = refresh_hash(presented)
        if not await self._db.glance(queries.knows_token, presented_hash):
            raise InvalidToken  # garbage costs no commit
        refresh_token, fresh = self._fresh_token()
        decision, grant = await self._db.write(
            actions.refresh, presented_hash, fresh, self._settings.refresh_grace * 1000
        )
        if grant is not None:
            return self._logged_in(grant, refresh_token)
        if decision is Exchange.REUSED:
            log.warning("refresh_token_reused")
        raise _refusal(decision)

    async def log_out(self, presented: str) -> None:
        """Ends the login of this refresh token; one that is unknown has ended already."""
        presented_hash = refresh_hash(presented)
        if await self._db.glance(queries.knows_token, presented_hash):
            await self._db.write(actions.log_out, presented_hash, self._clock.now_ms())

    async def log_out_everywhere(self, user_id: int, sv: int) -> None:
        """Ends every session of whoever asks from a session of this sv."""
        await self._db.write(actions.log_out_everywhere, user_id, sv)
        log.info("logged_out_everywhere", user_id=user_id)

    async def end_sessions(self, user: User) -> None:
        """The operator logs a user out."""
        await self._db.write(actions.log_out_everywhere, user.id)
        log.info("sessions_ended", user_id=user.id)

    async def change_password(self, user_id: int, sv: int, current: str, new: str, address: str) -> LoggedIn:
        """Ends every session of whoever asks from a session of this sv, that one too, and answers a new one."""
        new = rules.checked_password(new, self._settings.password_min, "newPassword")
        credentials = await self.check_password(user_id, current, address)
        if credentials.sv != sv:
            raise SessionInvalid
        new_hash = await self.passwords.hash(new)
        refresh_token, fresh = self._fresh_token()
        grant = await self._db.write(actions.change_password, credentials, new_hash, self._new_id(), fresh)
        log.info("password_changed", user_id=grant.user_id)
        return self._logged_in(grant, refresh_token)

    async def check_password(self, user_id: int, password: str, address: str) -> Credentials:
        """That this is the user's password; throttled like a login."""
        credentials = await self._db.glance(queries.credentials_by_id, user_id)
        if credentials is None:
            raise SessionInvalid
        attempt = self.throttle.begin(rules.name_key(credentials.name), address)
        if not (await self._verify(attempt, credentials, password)).right:
            raise WrongCredentials
        attempt.succeeded()
        return credentials

    async def access_token_for(self, user: User) -> str:
        """For `holdfast token`: an access token alone, which nothing can refresh."""
        if user.disabled:
            raise SessionInvalid("this user is disabled")
        return self.tokens.issue(Grant(user.id, user.name, user.sv))

    # -- sweeping

    async def sweep(self) -> int:
        """Deletes refresh tokens and chains whose time is over."""
        now_ms = self._clock.now_ms()
        tokens = await self._db.write_in_turns(actions.sweep_tokens, now_ms)
        return tokens + await self._db.write_in_turns(actions.sweep_chains, now_ms)

    async def _sweep_now_and_then(self) -> None:
        while True:
            # at another moment in each process, so that they do not meet at the same rows
            await asyncio.sleep(SWEEP_SECONDS * (0.75 + secrets.randbelow(500) / 1000))
            try:
                swept = await self.sweep()
            except HoldfastError as error:
                log.warning("sweep_failed", error=error.reason)
            else:
                log.debug("swept", rows=swept)

    # -- tokens

    def _fresh_token(self) -> tuple[str, FreshToken]:
        token, now_ms = new_refresh_token(), self._clock.now_ms()
        lasts_ms = self._settings.refresh_days * DAY_SECONDS * 1000
        return token, FreshToken(refresh_hash(token), now_ms, now_ms + lasts_ms)

    def _logged_in(self, grant: Grant, refresh_token: str) -> LoggedIn:
        return LoggedIn(
            user_id=str(grant.user_id),
            access_token=self.tokens.issue(grant),
            refresh_token=refresh_token,
            access_token_expires_in_seconds=self.tokens.lifetime,
            refresh_token_expires_in_seconds=self._settings.refresh_days * DAY_SECONDS,
        )


def _refusal(decision: Exchange) -> HoldfastError:
    if decision is Exchange.EXPIRED:
        return TokenExpired("The refresh token has expired; log in again.")
    return SessionInvalid()
