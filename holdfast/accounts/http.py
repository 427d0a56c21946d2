"""`/auth/*` and `/.well-known/jwks.json`: parses, asks `Accounts`, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from litestar import Response, Router
from litestar.params import JSONBody
from msgspec import Meta, Struct

from holdfast.accounts import actions, rules
from holdfast.accounts.accounts import Accounts
from holdfast.accounts.keys import PublicJwk
from holdfast.accounts.model import LoggedIn, NewUser
from holdfast.accounts.sessions import Session
from holdfast.accounts.tokens import LONGEST
from holdfast.clock import Clock
from holdfast.errors import KeyReused, WrongCredentials
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get, post
from holdfast.http.idempotency import Key, key_of, once
from holdfast.http.visit import caller, visit
from holdfast.store import Database, Transaction

JWKS_CACHE = "public, max-age=300"
ANYBODY = 0  # who registers is nobody yet: the keys of all of them share one space

# the bounds of a body; what a name or a password may be is `rules`'
Username = Annotated[str, Meta(max_length=4 * rules.NAME_MAX, examples=["ann"])]
Password = Annotated[str, Meta(max_length=rules.PASSWORD_MAX, examples=["correct horse"])]


class NameAndPassword(Struct, frozen=True):
    username: Username
    password: Password


class RefreshToken(Struct, frozen=True, rename="camel"):
    refresh_token: Annotated[str, Meta(max_length=256)]


class AccessToken(Struct, frozen=True, rename="camel"):
    access_token: Annotated[str, Meta(max_length=LONGEST)]


class PasswordChange(Struct, frozen=True, rename="camel"):
    current_password: Password
    new_password: Password


class Registered(Struct, frozen=True, rename="camel"):
    user_id: str
    username: str


class Verified(Struct, frozen=True, rename="camel"):
    user_id: str
    username: str
    is_admin: bool
    access_token_expires_in_seconds: int


class KeySet(Struct, frozen=True):
    """RFC 7517; empty while tokens are signed with a secret."""

    keys: list[PublicJwk]


def _verified(session: Session, now_ms: int) -> Verified:
    left = max(0, (session.expires_ms - now_ms) // 1000)
    return Verified(str(session.user_id), session.name, session.is_admin, left)


def this_session() -> Session:
    """The session of the request under way, or a 401."""
    who = caller()
    assert isinstance(who, Session), "the door asks `Sessions`"
    return who


def register_once(tx: Transaction, key: Key | None, new: NewUser) -> Registered:
    """Adds the user, or answers what this Idempotency-Key was answered before."""

    def add() -> Registered:
        user = actions.add_user(tx, new)
        return Registered(str(user.id), user.name)

    return once(tx, key, new.made_ms, Registered, add)


def router(accounts: Accounts, db: Database, clock: Clock) -> Router:
    @post("/auth/register", summary="Make an account", status_code=200)
    async def register(data: JSONBody[NameAndPassword]) -> Answer[Registered]:
        """Takes an `Idempotency-Key`. A name has 3 to 64 characters, not all digits; case makes no difference."""
        accounts.require_open_registration()
        # the key's fingerprint is stored, so it must not be made from the password
        key = key_of(ANYBODY, rules.checked_name(data.username).encode())
        new = await accounts.new_user(data.username, data.password)
        registered = await db.write(register_once, key, new)
        if registered.user_id != str(new.id):
            # the first answer again, if this is the same body: the password too
            try:
                await accounts.check_password(int(registered.user_id), data.password, visit().address)
            except WrongCredentials:
                raise KeyReused from None
        return answer(registered)

    @post("/auth/login", summary="Log in", status_code=200)
    async def log_in(data: JSONBody[NameAndPassword]) -> Answer[LoggedIn]:
        """After 5 failures in a minute, 429 with `Retry-After`."""
        return answer(await accounts.log_in(data.username, data.password, visit().address))

    @post("/auth/refresh", summary="Exchange a refresh token for new tokens", status_code=200)
    async def refresh(data: JSONBody[RefreshToken]) -> Answer[LoggedIn]:
        """The old one works for 60 s more, should this answer get lost; used after that, the login ends."""
        return answer(await accounts.refresh(data.refresh_token))

    @get("/auth/me", summary="Who am I?")
    async def who_am_i() -> Answer[Verified]:
        """Answered from the token alone."""
        return answer(_verified(this_session(), clock.now_ms()))

    @post("/auth/verify", summary="Whose access token is this?", status_code=200)
    async def verify(data: JSONBody[AccessToken]) -> Answer[Verified]:
        session = await accounts.sessions.verify(data.access_token)
        return answer(_verified(session, clock.now_ms()))

    @post("/auth/logout", summary="End this login", status_code=200)
    async def log_out(data: JSONBody[RefreshToken]) -> Answer[None]:
        """Ends the login that this refresh token came from; again is harmless."""
        await accounts.log_out(data.refresh_token)
        return answer(None)

    @post("/auth/logout-all", summary="End every session", status_code=200, security=[{"token": []}])
    async def log_out_everywhere() -> Answer[None]:
        """On every device of this user, at once, live connections too."""
        who = this_session()
        await accounts.log_out_everywhere(who.user_id, who.sv)
        return answer(None)

    @post("/auth/password", summary="Change the password", status_code=200, security=[{"token": []}])
    async def change_password(data: JSONBody[PasswordChange]) -> Answer[LoggedIn]:
        """Ends every session and answers a new one, as a login does."""
        who = this_session()
        return answer(
            await accounts.change_password(
                who.user_id, who.sv, data.current_password, data.new_password, visit().address
            )
        )

    @get("/.well-known/jwks.json", summary="The public keys of access tokens")
    async def jwks() -> Response[KeySet]:
        headers: Mapping[str, str] = {"Cache-Control": JWKS_CACHE}
        return Response(KeySet(accounts.public_keys()), headers=dict(headers))

    return Router(
        "/",
        route_handlers=[
            register,
            log_in,
            refresh,
            who_am_i,
            verify,
            log_out,
            log_out_everywhere,
            change_password,
            jwks,
        ],
        tags=["accounts"],
    )
