"""`check`: reads the store in one snapshot, and the files, and says what is wrong. Changes nothing.

Beside a running server the files are held still (one small write), so that what the snapshot refers to is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import msgspec

from holdfast.blobs import backup as of_blobs
from holdfast.clock import Clock
from holdfast.keeping.hold import held
from holdfast.keeping.invariants import INVARIANTS, Look, Problem
from holdfast.keeping.places import Kept
from holdfast.keeping.progress import Progress
from holdfast.keeping.schema import require_current
from holdfast.store.migrations import Migration
from holdfast.store.whole import Whole, count


class Seen(msgspec.Struct):
    """What was looked at."""

    tables: int = 0
    rows: int = 0
    files: int = 0
    file_bytes: int = 0


def check(
    kept: Kept, migrations: Sequence[Migration], clock: Clock, progress: Progress, seen: Seen, *, deep: bool
) -> Iterator[Problem]:
    """Yields problems as they are found; fills in `seen`."""
    with ExitStack() as stack:
        is_served = kept.store.is_served()
        with kept.store.snapshot() as whole:
            require_current(whole, migrations)
        hold = stack.enter_context(held(kept.store, clock)) if is_served else None
        whole = stack.enter_context(kept.store.snapshot())
        progress.begin("the database" + (", every page" if deep else ""))
        for says in whole.damage(deep=deep):
            yield Problem("store", says)
        _count(whole, seen)
        look = Look(whole.view, kept.place(), clock.now_ms(), kept.grace_ms, deep, is_served)
        for invariant in INVARIANTS:
            progress.begin(f"{invariant.room}: {invariant.proves}")
            for says in invariant.problems(look):
                progress.advance(1)
                yield Problem(invariant.room, says)
        if hold is not None:
            hold.check()


def _count(whole: Whole, seen: Seen) -> None:
    for table in whole.tables():
        seen.tables += 1
        seen.rows += count(whole.view, table)
    seen.files, seen.file_bytes = of_blobs.total(whole.view)
