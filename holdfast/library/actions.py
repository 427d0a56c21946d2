"""One push, in one transaction.

Locks, in this order: the library's row · the Idempotency-Key's · the rows of its files (`blobs.adjust`). The
library's own rows need none: nobody else writes them meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from holdfast.blobs import adjust
from holdfast.errors import FileMissing, TooLarge, VersionConflict
from holdfast.http.idempotency import Key, once
from holdfast.library import queries as sql
from holdfast.library.model import Kind, Push, Pushed, Row
from holdfast.library.plan import Outcome, Plan
from holdfast.settings.fields import MIB
from holdfast.store import Transaction

InstantUpload = Literal["proof", "open", "off"]

MOST_DATA = 128 * MIB  # bytes of rows that one push may touch

_encode = msgspec.json.encode


class Ground(msgspec.Struct, frozen=True):
    """What a push stands on beside its content."""

    user_id: int
    epoch: str
    now_ms: int
    new_ids: Sequence[int]
    instant_upload: InstantUpload


def holder(user_id: int) -> str:
    """Whose claim on a file it is."""
    return f"library:{user_id}"


def push(tx: Transaction, ground: Ground, key: Key | None, push: Push) -> tuple[Pushed, Outcome | None]:
    """The answer; and what was done, unless this was done before."""
    version = _locked(tx, ground)
    done: list[Outcome] = []

    def take() -> Pushed:
        _compare(push, version, ground.epoch)
        outcome = planned(tx, ground, push, version)
        _write(tx, ground, outcome, version)
        done.append(outcome)
        return Pushed(outcome.version, list(outcome.accepted), outcome.accepted)

    answer = once(tx, key, ground.now_ms, Pushed, take)
    return answer, done[0] if done else None


def _locked(tx: Transaction, ground: Ground) -> int:
    version = tx.row(sql.LOCK, user=ground.user_id)
    if version is None:
        tx.execute(sql.BEGIN, user=ground.user_id, now=ground.now_ms)
        version = tx.one(sql.LOCK, user=ground.user_id)
    return version


def _compare(push: Push, version: int, epoch: str) -> None:
    reset = push.client_version > version or push.epoch not in (None, epoch)
    if reset:
        raise VersionConflict(
            "This library has another history than yours, perhaps from a backup: pull everything (since=0),"
            " then push again.",
            data={"serverLibraryVersion": version, "reset": True},
        )
    if push.client_version < version:
        raise VersionConflict(
            "Another device was first: pull, then push again.", data={"serverLibraryVersion": version}
        )


def planned(tx: Transaction, ground: Ground, push: Push, version: int) -> Outcome:
    """Reads what the push touches, a few statements for all of it, and decides."""
    plan = Plan(push, version, ground.now_ms, ground.new_ids)
    known, loads = plan.known, _Loads(tx, ground.user_id)
    names = plan.entity_ids()
    known.know_aliases(tx.rows(sql.ALIASES, user=ground.user_id, names=names) if names else ())
    known.know(loads.by_id(plan.ids()))
    known.know(loads.by_id(known.parent_ids()))
    for kind in push.changes:
        known.know(loads.by_key(plan.keys(kind)))
        plan.change(kind)
    known.know(loads.children(known.doomed))
    plan.delete()
    known.know(loads.by_key(plan.unlooked()))
    return plan.settle()


class _Loads:
    """Rows into memory, as long as they are not too much for it: a small body may name large rows."""

    def __init__(self, tx: Transaction, user_id: int) -> None:
        self._tx = tx
        self._user = user_id
        self._left = MOST_DATA

    def by_id(self, ids: list[int]) -> list[Row]:
        return self._load(sql.BY_ID, ids=ids) if ids else []

    def by_key(self, keys: list[str]) -> list[Row]:
        return self._load(sql.BY_KEY, keys=keys) if keys else []

    def children(self, parents: Iterable[tuple[int, int]]) -> list[Row]:
        """The living ones, of scores and setlists."""
        found = []
        for kind, rows in ((Kind.SCORE, sql.INSTRUMENT_SCORES_AND_ENTRIES), (Kind.SETLIST, sql.ENTRIES)):
            ids = [row_id for parent_kind, row_id in parents if parent_kind == kind]
            found += self._load(rows, ids=ids) if ids else []
        return found

    def _load(self, rows: sql.Rows, **named: list[int] | list[str]) -> list[Row]:
        self._left -= self._tx.one(rows.weight, user=self._user, **named)
        if self._left < 0:
            raise TooLarge(
                "What this push would change (or delete along with it) holds too much data: change less at a time,"
                " and delete large instrument scores before their score."
            )
        return self._tx.rows(rows.rows, user=self._user, **named)


def _write(tx: Transaction, ground: Ground, outcome: Outcome, version: int) -> None:
    user, now = ground.user_id, ground.now_ms
    if outcome.lifted:
        tx.execute(sql.LIFT, ids=outcome.lifted, now=now)
    if outcome.rows:
        tx.execute(sql.WRITE, user=user, rows=_encode(outcome.rows).decode())
    if outcome.aliases:
        tx.execute(sql.NAME, user=user, aliases=_encode(outcome.aliases).decode())
    if outcome.version != version:
        tx.execute(sql.MOVE, user=user, version=outcome.version, now=now)
    if outcome.pdfs:
        _count(tx, ground, outcome)


def _count(tx: Transaction, ground: Ground, outcome: Outcome) -> None:
    """References to files; last, because a file's row is shared by all users."""
    sha256s = dict(tx.rows(sql.FILES, md5s=list(outcome.pdfs)))
    for md5, entity_id in outcome.pdfs_begun.items():
        if md5 not in sha256s:
            raise _missing(entity_id)
    begun = [sha256s[md5] for md5 in outcome.pdfs_begun]
    if ground.instant_upload == "open":
        for sha256 in begun:
            tx.execute(sql.POSSESS, user=ground.user_id, sha256=sha256)
    elif begun:
        had = set(tx.rows(sql.POSSESSED, user=ground.user_id, sha256s=begun))
        for md5, entity_id in outcome.pdfs_begun.items():
            if sha256s[md5] not in had:
                raise _missing(entity_id)
    changes = {sha256s[md5]: change for md5, change in outcome.pdfs.items()}
    try:
        adjust(tx, changes, ground.now_ms, holder=holder(ground.user_id))
    except FileMissing as error:
        gone = error.data["sha256"] if isinstance(error.data, dict) else None
        raise _missing(next(e for m, e in outcome.pdfs_begun.items() if sha256s[m] == gone)) from None


def _missing(entity_id: str) -> FileMissing:
    return FileMissing(
        f"{entity_id}: you have not uploaded its PDF, or it is gone; upload it (or claim it), then push again.",
        data={"entityId": entity_id},
    )


# -- serverIds


def take_ids(tx: Transaction, count: int) -> int:
    """The first of `count` serverIds that nobody has or will have."""
    return tx.one(sql.TAKE_IDS, count=count) - count


# -- when who pulled


def note_syncs(tx: Transaction, moments: Iterable[tuple[int, int]]) -> None:
    """`moments`: user and wall time. In the users' order, so that two processes do not cross."""
    tx.execute(sql.SYNCED, moments=_encode(sorted(moments)).decode())
