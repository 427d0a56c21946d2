"""The states of a call between two, and who may lead where. Pure.

| state | accept | reject | cancel | end | time is up | a side is lost |
|---|---|---|---|---|---|---|
| RINGING | callee → ACCEPTED | callee → REJECTED | caller → CANCELLED | as reject or cancel | → MISSED | as cancel |
| ACCEPTED | again: nothing | nothing | caller → ENDED | → ENDED | nothing | → ENDED |
| over | refused | nothing | nothing | nothing | nothing | nothing |

A call that cannot begin is over at once: BUSY, OFFLINE.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum, auto

from holdfast.chat.model import Call


class CallState(IntEnum):
    RINGING = 1
    ACCEPTED = 2
    ENDED = 3
    REJECTED = 4
    CANCELLED = 5
    MISSED = 6
    BUSY = 7
    OFFLINE = 8


LIVE = (CallState.RINGING, CallState.ACCEPTED)


class Act(StrEnum):
    """The value is the frame's type."""

    ACCEPT = "CALL_ACCEPT"
    REJECT = "CALL_REJECT"
    CANCEL = "CALL_CANCEL"
    END = "CALL_END"
    TIMEOUT = "CALL_TIMEOUT"
    LOST = "CALL_LOST"


class Why(StrEnum):
    """`callReason` of a `CALL_ERROR`, and of what ends a call."""

    BUSY = auto()
    OFFLINE = auto()
    NOT_FOUND = auto()
    NOT_ALLOWED = auto()
    OVER = auto()
    LOST = auto()
    ANSWERED_ELSEWHERE = auto()


def after(call: Call, act: Act, user: int) -> CallState | Why | None:
    """The next state; None: nothing changes; or why this is refused. `user` 0 is the server."""
    state, is_caller = CallState(call.state), user == call.caller
    if user not in (0, call.caller, call.callee):
        return Why.NOT_FOUND
    if act is Act.ACCEPT:
        if is_caller:
            return Why.NOT_ALLOWED
        if state is CallState.RINGING:
            return CallState.ACCEPTED
        return None if state is CallState.ACCEPTED else Why.OVER
    if state not in LIVE:
        return None
    if state is CallState.ACCEPTED:
        if act in (Act.END, Act.LOST):
            return CallState.ENDED
        # a caller who hangs up in the moment of the answer does not know yet that it was answered
        return CallState.ENDED if act is Act.CANCEL and is_caller else None
    match act:
        case Act.REJECT if is_caller:
            return Why.NOT_ALLOWED
        case Act.CANCEL if user == call.callee:
            return Why.NOT_ALLOWED
        case Act.TIMEOUT:
            return CallState.MISSED
        case Act.REJECT:
            return CallState.REJECTED
        case Act.END if user == call.callee:
            return CallState.REJECTED
        case _:
            return CallState.CANCELLED


def other(call: Call, user: int) -> int:
    return call.callee if user == call.caller else call.caller
