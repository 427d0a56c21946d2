"""Holds the files still while a command walks through them beside a running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from holdfast.blobs import backup as of_blobs
from holdfast.blobs.files import HOLD_SECONDS
from holdfast.clock import Clock
from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.log import get_logger
from holdfast.store.whole import StandingStore

AGAIN_SECONDS = 5.0

log = get_logger("keeping")


class Hold:
    def __init__(self, store: StandingStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._ended = Event()
        self._held_until = 0.0
        self._lost = False
        self._thread = Thread(target=self._renew, name="holdfast-hold", daemon=True)

    def begin(self) -> None:
        self._take()
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        """Raises if files may have gone meanwhile."""
        if self._lost or self._clock.monotonic() > self._held_until:
            raise StoreUnavailable("the files could not be held still: the store took no write for minutes")

    def _take(self) -> None:
        now = self._clock.monotonic()
        if self._held_until and now > self._held_until:
            self._lost = True
        self._store.write(lambda tx: of_blobs.hold(tx, self._clock.now_ms()))
        self._held_until = now + HOLD_SECONDS

    def _renew(self) -> None:
        pause = of_blobs.RENEW_SECONDS
        while not self._ended.wait(pause):
            try:
                self._take()
                pause = of_blobs.RENEW_SECONDS
            except HoldfastError as error:
                log.warning("hold_not_renewed", error=error.reason)
                pause = AGAIN_SECONDS


@contextmanager
def held(store: StandingStore, clock: Clock) -> Iterator[Hold]:
    """Whatever a snapshot taken inside refers to keeps its file, for as long as `check` does not raise."""
    hold = Hold(store, clock)
    hold.begin()
    try:
        yield hold
    finally:
        hold.end()
