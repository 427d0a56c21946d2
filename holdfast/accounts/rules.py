"""The decisions of accounts: what a name and a password may be, what a refresh token is still good for. Pure.

Names are kept as they were written, in NFC; they are compared casefolded (Unicode's canonical caseless match), so
that `Zoë`, `ZOË` and `Zoe` + U+0308 are one name. Characters that cannot be seen are refused, or two names that
look alike would be two users; unassigned ones too, because a later Unicode may give them another case.
"""

from __future__ import annotations

from enum import Enum, auto
from unicodedata import category, normalize

from holdfast.accounts.model import RefreshState
from holdfast.errors import InvalidField

NAME_MIN, NAME_MAX = 3, 64
PASSWORD_MAX = 1024

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def name_key(name: str) -> str:
    """What makes two spellings the same name."""
    return normalize("NFC", normalize("NFD", name).casefold())


def why_not_a_name(name: str) -> str | None:
    """Why nobody can have this name (in NFC), or None."""
    if not NAME_MIN <= len(name) <= NAME_MAX:
        return f"must have {NAME_MIN} to {NAME_MAX} characters"
    if any(category(character) in _UNSEEN for character in name):
        return "must not have control characters or characters that cannot be seen"
    if name != name.strip():
        return "must not begin or end with a space"
    if all(character.isdigit() for character in name):
        return "must not be all digits"
    return None


def checked_name(name: str) -> str:
    """The name as it is kept."""
    # a name of many combining characters may shrink in NFC, but not beyond this: do not normalise megabytes
    if len(name) <= 4 * NAME_MAX:
        name = normalize("NFC", name)
    why = why_not_a_name(name)
    if why is not None:
        raise InvalidField("username", why)
    return name


def key_of_existing(name: str) -> str | None:
    """The key under which a user of this name would be found; None when nobody can have it."""
    if len(name) > 4 * NAME_MAX:
        return None
    name = normalize("NFC", name)
    return None if why_not_a_name(name) else name_key(name)


def checked_password(password: str, minimum: int, field: str = "password") -> str:
    """The password as it is hashed: keyboards spell the same letters in different ways, NFC makes them one."""
    if len(password) > PASSWORD_MAX:
        raise InvalidField(field, f"must have at most {PASSWORD_MAX} characters")
    password = normalize("NFC", password)
    if len(password) < minimum:
        raise InvalidField(field, f"must have at least {minimum} characters")
    return password


def typed_password(password: str) -> str | None:
    """A password that somebody claims to have; None when nobody can have it."""
    return normalize("NFC", password) if len(password) <= PASSWORD_MAX else None


class Exchange(Enum):
    """What presenting a refresh token leads to."""

    NEXT = auto()
    """It was the newest: a new one takes its place."""
    AGAIN = auto()
    """It was exchanged a moment ago, perhaps by an answer that got lost: another new one beside the first."""
    REUSED = auto()
    """It was exchanged long ago: somebody has a copy, and the chain must end."""
    EXPIRED = auto()
    ENDED = auto()


def exchange(token: RefreshState, now_ms: int, grace_ms: int) -> Exchange:
    if token.chain_ended_ms is not None or token.user_disabled or token.chain_sv != token.user_sv:
        return Exchange.ENDED
    if token.expires_ms <= now_ms:
        return Exchange.EXPIRED
    if token.exchanged_ms is None:
        return Exchange.NEXT
    return Exchange.AGAIN if now_ms < token.exchanged_ms + grace_ms else Exchange.REUSED
