"""What can be wrong with a frame or a connection, in the words of the wire, and what it does to the connection. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum, StrEnum, auto


class Effect(Enum):
    CLOSES = auto()
    STAYS = auto()
    STRIKES = auto()
    """Stays open, but closes at the 4th within 10 s: whoever sends these does not speak our language."""


class Refusal(StrEnum):
    """`AUTH_FAIL`: always closes."""

    MISSING_TOKEN = auto()
    INVALID_TOKEN = auto()
    SESSION_INVALID = auto()


class Reason(StrEnum):
    """`ERROR`."""

    KICKED = auto()
    SESSION_INVALID = auto()
    TOKEN_EXPIRED = auto()
    UNAUTHORIZED = auto()
    AUTH_TIMEOUT = auto()
    REAUTH_UID_MISMATCH = auto()
    TOO_MANY_REQUESTS = auto()

    BAD_JSON = auto()
    MISSING_TYPE = auto()
    NOT_IMPLEMENTED = auto()

    SERVER_BUSY = auto()
    INTERNAL_ERROR = auto()
    MISSING_MSG_ID = auto()
    MISSING_TO = auto()
    MISSING_GROUP_ID = auto()
    MISSING_BODY = auto()
    BODY_TOO_LONG = auto()
    CANNOT_SEND_TO_SELF = auto()
    USER_NOT_FOUND = auto()
    MISSING_ACK_TYPE = auto()
    UNKNOWN_ACK_TYPE = auto()
    MISSING_SERVER_MSG_ID = auto()
    BAD_SERVER_MSG_ID = auto()
    MESSAGE_NOT_FOUND = auto()
    ACK_NOT_ALLOWED = auto()
    NOT_MESSAGE_SENDER = auto()
    REVOKE_TIMEOUT = auto()
    NOT_GROUP_MEMBER = auto()
    GROUP_SPEAK_MUTED = auto()
    MSG_ID_CONFLICT = auto()


_CLOSING = (
    Reason.KICKED,
    Reason.SESSION_INVALID,
    Reason.TOKEN_EXPIRED,
    Reason.UNAUTHORIZED,
    Reason.AUTH_TIMEOUT,
    Reason.REAUTH_UID_MISMATCH,
    Reason.TOO_MANY_REQUESTS,
)
_STRIKING = (Reason.BAD_JSON, Reason.MISSING_TYPE, Reason.NOT_IMPLEMENTED)

EFFECTS: Mapping[Reason, Effect] = {
    reason: Effect.CLOSES if reason in _CLOSING else Effect.STRIKES if reason in _STRIKING else Effect.STAYS
    for reason in Reason
}

STRIKES = 4
WITHIN_SECONDS = 10.0


class Strikes:
    """Counts a connection's frames that cannot be understood."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=STRIKES)

    def strike(self, now: float) -> bool:
        """One more, at `now`; is it the last that is borne?"""
        self._times.append(now)
        return len(self._times) == STRIKES and now - self._times[0] <= WITHIN_SECONDS


class Refused(Exception):
    """A frame that is answered with an `ERROR`; nothing was changed."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
