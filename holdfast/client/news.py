"""What the client tells an app: events to subscribe to, and a status to show. Must not know who listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from msgspec import Struct

HELD = 1_000  # events kept for a listener that does not look; then the oldest go


class Event(Struct, frozen=True):
    """Something that an app may want to show."""


class Online(Event, frozen=True):
    online: bool


class LoggedOut(Event, frozen=True):
    """The session has ended; what is in the replica stays, and goes out after the next login."""

    why: str


class Synced(Event, frozen=True):
    """A room ("ledger", "library", "chat") has everything that the server had."""

    room: str
    applied: int


class Parked(Event, frozen=True):
    """The server will not take this as it is; see the room's `parked()`."""

    room: str
    id: str
    reason: str
    message: str


class ChangeLost(Event, frozen=True):
    """A local change can never be delivered, since what it belonged to is gone; see the ledger's `lost()`."""

    room: str
    count: int


class Differs(Event, frozen=True):
    """The replica was found to differ from the server; the feed starts over, which repairs it."""

    room: str
    here: str
    there: str


class Verified(Event, frozen=True):
    """The replica was compared with the server and is the same."""

    room: str
    count: int


class Transfer(Event, frozen=True):
    """A file on its way."""

    name: str
    done: int
    size: int
    direction: str


class MessageArrived(Event, frozen=True):
    conversation: str
    server_msg_id: str
    sender: str
    body: str | None


class Signal(Event, frozen=True):
    """A call's frame, as the server sent it."""

    type: str
    frame: bytes


class ChatEnded(Event, frozen=True):
    """The chat connection was ended for a reason that reconnecting does not heal."""

    reason: str


class Fault(Event, frozen=True):
    """A defect of ours, met and survived; the task begins again after a while."""

    task: str
    error: str


class Waiting(Struct, frozen=True):
    """What is still to be sent, and what was refused."""

    pending: int
    parked: int


class Status(Struct, frozen=True):
    """How things stand, for a corner of a screen."""

    online: bool
    logged_in: bool
    user_id: str
    pending: int
    parked: int
    rooms: Mapping[str, Waiting]
    last_sync_ms: int
    """When everything that the server had was here for the last time; 0: never."""
    last_error: str
    next_try_in: float
    live: bool
    """Changes of others arrive at once (MQTT)."""
    chat: str
    """off, connecting, open, or the reason why it ended."""


class News:
    """Hands each event to whoever listens."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []
        self.last_error = ""

    def tell(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def trouble(self, error: BaseException) -> None:
        self.last_error = str(error) or type(error).__name__

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Calls `listener` at each event; what it answers ends that."""
        self._listeners.append(listener)

        def end() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return end

    async def stream(self) -> AsyncIterator[Event]:
        """Events from now on."""
        held: deque[Event] = deque(maxlen=HELD)
        arrived = asyncio.Event()

        def hold(event: Event) -> None:
            held.append(event)
            arrived.set()

        end = self.listen(hold)
        try:
            while True:
                await arrived.wait()
                arrived.clear()
                while held:
                    yield held.popleft()
        finally:
            end()
