"""Access tokens (JWT, made and read) and refresh tokens (random, kept as their hash). Knows no user, no store.

A token is read in this order: its length, its header, its signature under the one algorithm this server uses, and
only then its claims, each of its exact type. The reader is stricter than the standard asks: there is one issuer.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Annotated, Literal

import jwt
import msgspec
from msgspec import Meta, Struct

from holdfast.accounts.keys import Keys
from holdfast.accounts.model import Grant
from holdfast.clock import Clock
from holdfast.errors import InvalidToken, TokenExpired
from holdfast.ids import MAX_ID
from holdfast.settings import Auth

LONGEST = 4096  # ours are shorter than 700 characters

_Seconds = Annotated[int, Meta(ge=0, le=2**53)]


class Claims(Struct, frozen=True):
    """What an access token says; `uid` is the id as a string, as everywhere on this wire."""

    iss: str
    sub: str
    uid: Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,18}\Z")]
    typ: Literal["access"]
    sv: Annotated[int, Meta(ge=1, le=MAX_ID)]
    jti: str
    iat: _Seconds
    exp: _Seconds

    @property
    def user_id(self) -> int:
        return int(self.uid)


_read_claims = msgspec.json.Decoder(Claims).decode
_write_claims = msgspec.json.Encoder().encode


class AccessTokens:
    def __init__(self, keys: Keys, settings: Auth, clock: Clock) -> None:
        self._keys = keys
        self._issuer = settings.issuer
        self._lifetime = settings.access_seconds
        self._clock = clock
        self._jws = jwt.PyJWS(algorithms=[keys.algorithm])
        self._header = {} if keys.signing_id is None else {"kid": keys.signing_id}

    @property
    def lifetime(self) -> int:
        return self._lifetime

    def issue(self, grant: Grant) -> str:
        now = self._clock.now_ms() // 1000
        claims = Claims(
            iss=self._issuer,
            sub=grant.name,
            uid=str(grant.user_id),
            typ="access",
            sv=grant.sv,
            jti=secrets.token_urlsafe(12),
            iat=now,
            exp=now + self._lifetime,
        )
        return self._jws.encode(
            _write_claims(claims), self._keys.signing, algorithm=self._keys.algorithm, headers=self._header
        )

    def read(self, token: str) -> Claims:
        """What this token says, if it is ours and its time has not come; `sv` is for the caller to compare."""
        if len(token) > LONGEST:
            raise InvalidToken
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._keys.accepted.get(kid if self._keys.signing_id else None)
            if key is None:
                raise InvalidToken
            claims = _read_claims(self._jws.decode(token, key, algorithms=[self._keys.algorithm]))
        except (jwt.PyJWTError, ValueError, RecursionError):
            # ValueError: not the claims we write, or no text at all; RecursionError: a header nested to the ceiling
            raise InvalidToken from None
        if claims.iss != self._issuer or claims.user_id > MAX_ID:
            raise InvalidToken
        if claims.exp * 1000 <= self._clock.now_ms():
            raise TokenExpired
        return claims


def new_refresh_token() -> str:
    return secrets.token_urlsafe(32)


def refresh_hash(token: str) -> bytes:
    """What the store knows a refresh token by. Its 256 random bits need no salt and no slow hash."""
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
