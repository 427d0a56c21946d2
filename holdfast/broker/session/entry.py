"""One message on its way to one session."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from holdfast.broker.message import Message

if TYPE_CHECKING:
    from holdfast.broker.session.session import Session


class State(IntEnum):
    QUEUED = 0
    SENT = 1
    RELEASED = 2
    """The client has it for good (PUBREC); it is told so (PUBREL)."""
    GONE = 3


class Entry:
    """`batch` is the batch that writes it (0: it came from the store), `hold` the one that has to be committed
    before it may be sent. `settled`: its message no longer waits for it. `checked`: the turn in which the client
    was last allowed to receive it. `dup`: it may have been sent before."""

    __slots__ = (
        "batch",
        "checked",
        "dup",
        "hold",
        "identifiers",
        "message",
        "number",
        "qos",
        "replay",
        "retain",
        "session",
        "settled",
        "share",
        "state",
    )

    def __init__(
        self,
        session: Session,
        message: Message,
        number: int,
        qos: int,
        retain: bool = False,
        identifiers: tuple[int, ...] = (),
        share: str | None = None,
        replay: bool = False,
    ) -> None:
        self.session = session
        self.message = message
        self.number = number
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers
        self.share = share
        self.replay = replay
        self.state = State.QUEUED
        self.dup = False
        self.batch = 0
        self.hold = 0
        self.checked = -1
        self.settled = True
