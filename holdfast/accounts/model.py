"""What an account is: users, the chains of refresh tokens their logins begin, what a login answers. Pure data."""

from __future__ import annotations

from msgspec import Struct


class User(Struct, frozen=True):
    """Whoever may log in. `sv` (session_version) ends every session that was opened under a lower one."""

    id: int
    name: str
    is_admin: bool
    disabled: bool
    sv: int


class NewUser(Struct, frozen=True):
    """A user about to be added: name and password have been found good, the password is a hash already."""

    id: int
    name: str
    password_hash: str
    made_ms: int
    is_admin: bool = False

    def __repr__(self) -> str:
        return f"NewUser(id={self.id})"


class Credentials(Struct, frozen=True):
    """What a login is checked against; `password_sv` is the sv at which this password was set."""

    user_id: int
    name: str
    disabled: bool
    sv: int
    password_sv: int
    password_hash: str

    def __repr__(self) -> str:
        return f"Credentials(user_id={self.user_id})"


class RefreshState(Struct, frozen=True):
    """A refresh token, its chain and its user, as they stand at one moment."""

    chain_id: int
    expires_ms: int
    exchanged_ms: int | None
    chain_sv: int
    chain_ended_ms: int | None
    user_id: int
    user_name: str
    user_sv: int
    user_disabled: bool


class FreshToken(Struct, frozen=True):
    """A refresh token about to be stored: never the token itself."""

    hash: bytes
    made_ms: int
    expires_ms: int


class Grant(Struct, frozen=True):
    """For whom an access token may now be made."""

    user_id: int
    name: str
    sv: int


class LoggedIn(Struct, frozen=True, rename="camel"):
    """What login, refresh and a password change answer; the id is a string on this wire."""

    user_id: str
    access_token: str
    refresh_token: str
    access_token_expires_in_seconds: int
    refresh_token_expires_in_seconds: int

    def __repr__(self) -> str:
        return f"LoggedIn(user_id={self.user_id})"


class SessionsEnded(Struct, frozen=True):
    """Event: every session of this user opened under an sv below this one has ended."""

    user_id: int
    sv: int
