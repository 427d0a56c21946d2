"""What a connection does with a frame, by its state. Pure: a table, and one class that follows it.

| state | AUTH | REAUTH | PING, PONG | a frame of the room | another type | none |
|---|---|---|---|---|---|---|
| BEFORE_AUTH | authenticate | unauthorized | answer | unauthorized | not_implemented | missing_type |
| OPEN | authenticate again | prolong | answer | handle | not_implemented | missing_type |
| CLOSING | ignore | ignore | ignore | ignore | ignore | ignore |

BEFORE_AUTH → OPEN when the token is good; any state → CLOSING when a reason closes, the reader is too slow, the
client leaves or the server stops. Nothing leads out of CLOSING.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from holdfast.chat.reasons import Reason


class State(Enum):
    BEFORE_AUTH = auto()
    OPEN = auto()
    CLOSING = auto()


class Step(Enum):
    AUTHENTICATE = auto()
    REAUTHENTICATE = auto()
    PROLONG = auto()
    PONG = auto()
    NOTHING = auto()
    """Being heard was all there is to it."""
    SEND = auto()
    ACKNOWLEDGE = auto()
    REVOKE = auto()
    CALL = auto()


ROOM: Mapping[str, Step] = {
    "SINGLE_CHAT": Step.SEND,
    "GROUP_CHAT": Step.SEND,
    "ACK": Step.ACKNOWLEDGE,
    "MESSAGE_REVOKE": Step.REVOKE,
    "CALL_INVITE": Step.CALL,
    "CALL_ACCEPT": Step.CALL,
    "CALL_REJECT": Step.CALL,
    "CALL_CANCEL": Step.CALL,
    "CALL_END": Step.CALL,
    "CALL_ICE": Step.CALL,
}
_ALWAYS: Mapping[str, Step] = {"PING": Step.PONG, "PONG": Step.NOTHING}

TABLE: Mapping[State, Mapping[str, Step | Reason]] = {
    State.BEFORE_AUTH: {
        **_ALWAYS,
        "AUTH": Step.AUTHENTICATE,
        "REAUTH": Reason.UNAUTHORIZED,
        **dict.fromkeys(ROOM, Reason.UNAUTHORIZED),
    },
    State.OPEN: {**_ALWAYS, "AUTH": Step.REAUTHENTICATE, "REAUTH": Step.PROLONG, **ROOM},
    State.CLOSING: {},
}


class Illegal(Exception):
    """A state that cannot follow the present one."""


class Life:
    """The state of one connection, from its first frame to its last."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State.BEFORE_AUTH

    def meet(self, frame_type: str) -> Step | Reason:
        """What a frame of this type leads to."""
        if self.state is State.CLOSING:
            return Step.NOTHING
        if not frame_type:
            return Reason.MISSING_TYPE
        return TABLE[self.state].get(frame_type, Reason.NOT_IMPLEMENTED)

    def authenticated(self) -> None:
        if self.state is not State.BEFORE_AUTH:
            raise Illegal(f"authenticated in {self.state.name}")
        self.state = State.OPEN

    def closing(self) -> None:
        """From any state; again is harmless."""
        self.state = State.CLOSING
