"""A room as small as can be over the kernel, with its own truth beside it: roots, items and leaves in spaces.

`run` is its one action: any number of steps over any number of spaces in one transaction, locked as the kernel
asks, recorded once. The tables `thing` and `insider` say what every owner must end up with; the kernel never
reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from holdfast.feed import (
    Ask,
    Change,
    Entry,
    Page,
    Parent,
    Recorded,
    Space,
    Turn,
    ensure_epoch,
    lock_space,
    lock_spaces,
    open_space,
    page,
    parents_ahead,
    record,
    revision_hash,
)
from holdfast.store import Query, Snapshot, Statement, Transaction
from holdfast.store.migrations import Migration, of_rooms

ROOT, ITEM, LEAF = 1, 2, 3
KEEP_MS = 90 * 24 * 3600 * 1000

TABLES = Migration(
    "world",
    1,
    "things",
    """
    CREATE TABLE thing (id TEXT PRIMARY KEY, space BIGINT NOT NULL, kind SMALLINT NOT NULL,
        parent TEXT, rev BIGINT NOT NULL, dead BOOLEAN NOT NULL);
    CREATE INDEX thing_space ON thing (space);
    CREATE TABLE insider (owner BIGINT NOT NULL, space BIGINT NOT NULL, PRIMARY KEY (owner, space));
    """,
)
ROOMS = [*of_rooms("store", "feed"), TABLES]

ADD = Statement(
    "INSERT INTO thing (id, space, kind, parent, rev, dead) VALUES (:id, :space, :kind, :parent, 1, FALSE)"
)
LIVE = Query(
    tuple[str, int, str | None, int],
    "SELECT id, kind, parent, rev FROM thing WHERE space = :space AND NOT dead ORDER BY id",
)
EDIT = Statement("UPDATE thing SET rev = rev + 1 WHERE id = :id")
KILL = Statement("UPDATE thing SET rev = rev + 1, dead = TRUE WHERE id = :id")
ENTER = Statement("INSERT INTO insider (owner, space) VALUES (:owner, :space)")
LEAVE = Statement("DELETE FROM insider WHERE owner = :owner AND space = :space")
EMPTY = Statement("DELETE FROM insider WHERE space = :space")
CONTENT = Query(
    tuple[str, int, str | None], "SELECT id, rev, parent FROM thing WHERE id = ANY(:ids) AND NOT dead"
)
TRUTH = Query(
    tuple[str, int, int],
    """
    SELECT t.id, t.kind, t.rev FROM thing t JOIN insider i ON i.space = t.space
    WHERE i.owner = :owner AND NOT t.dead
    """,
)

What = Literal["item", "leaf", "edit", "rename", "kill", "join", "leave", "close", "found"]


class Step(msgspec.Struct, frozen=True):
    space: int
    what: What
    owner: int = 0
    pick: int = 0
    """Which of the things that are there, modulo their number."""
    name: str = ""
    """The new thing's id."""
    quiet: bool = False
    """A join or leave that does not touch the root as well."""


class Draft:
    """What one transaction has in mind for one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.changes: list[Change] = []
        self.join: list[int] = []
        self.leave: list[int] = []
        self.close = False

    @property
    def members(self) -> set[int]:
        return set(self.space.members).union(self.join).difference(self.leave)

    def turn(self) -> Turn:
        return Turn(self.space, tuple(self.changes), tuple(self.join), tuple(self.leave), self.close)

    @property
    def empty(self) -> bool:
        return not (self.changes or self.join or self.leave or self.close)


def started(tx: Transaction) -> None:
    ensure_epoch(tx)


def run(tx: Transaction, now_ms: int, steps: Sequence[Step], pause: float = 0) -> list[Recorded]:
    """`pause` lets other transactions into the middle of this one."""
    locked = _locked(tx, steps)
    drafts = {key: Draft(space) for key, space in locked.items() if space.is_open}
    time.sleep(pause)
    for step in steps:
        if step.what == "found" and step.space not in drafts and step.space not in locked:
            drafts[step.space] = Draft(open_space(tx, step.space))
        if step.space in drafts and not drafts[step.space].close:
            _STEPS[step.what](tx, drafts[step.space], step)
    time.sleep(pause)
    done = record(tx, now_ms, [draft.turn() for draft in drafts.values() if not draft.empty])
    time.sleep(pause)
    return done


def _locked(tx: Transaction, steps: Sequence[Step]) -> Mapping[int, Space]:
    keys = {step.space for step in steps}
    if len(keys) > 1:
        return lock_spaces(tx, keys)
    space = lock_space(tx, *keys)
    return {} if space is None else {space.key: space}


def hash_of(name: str, kind: int, rev: int) -> int:
    return revision_hash(str(kind), name, str(rev))


def _add(tx: Transaction, draft: Draft, name: str, kind: int, parent: str | None) -> None:
    tx.execute(ADD, id=name, space=draft.space.key, kind=kind, parent=parent)
    draft.changes.append(Change(kind, name, now=hash_of(name, kind, 1)))


def _edit(tx: Transaction, draft: Draft, name: str, kind: int, rev: int) -> None:
    tx.execute(EDIT, id=name)
    draft.changes.append(Change(kind, name, now=hash_of(name, kind, rev + 1), was=hash_of(name, kind, rev)))


def _live(tx: Transaction, draft: Draft, *kinds: int) -> list[tuple[str, int, str | None, int]]:
    return [row for row in tx.rows(LIVE, space=draft.space.key) if row[1] in kinds]


def _found(tx: Transaction, draft: Draft, step: Step) -> None:
    if draft.space.seq == 0 and not draft.changes:
        _add(tx, draft, f"root{step.space}", ROOT, None)
        _enter(tx, draft, step.owner)


def _item(tx: Transaction, draft: Draft, step: Step) -> None:
    _add(tx, draft, step.name, ITEM, f"root{step.space}")


def _leaf(tx: Transaction, draft: Draft, step: Step) -> None:
    if items := _live(tx, draft, ITEM):
        _add(tx, draft, step.name, LEAF, items[step.pick % len(items)][0])


def _edit_one(tx: Transaction, draft: Draft, step: Step) -> None:
    if there := _live(tx, draft, ITEM, LEAF):
        name, kind, _parent, rev = there[step.pick % len(there)]
        _edit(tx, draft, name, kind, rev)


def _rename(tx: Transaction, draft: Draft, _step: Step) -> None:
    for name, kind, _parent, rev in _live(tx, draft, ROOT):
        _edit(tx, draft, name, kind, rev)


def _kill(tx: Transaction, draft: Draft, step: Step) -> None:
    there = _live(tx, draft, ITEM, LEAF)
    if there:
        doomed = there[step.pick % len(there)]
        for name, kind, parent, rev in there:
            if doomed[0] in (name, parent):
                tx.execute(KILL, id=name)
                draft.changes.append(Change(kind, name, now=None, was=hash_of(name, kind, rev)))


def _enter(tx: Transaction, draft: Draft, owner: int) -> None:
    tx.execute(ENTER, owner=owner, space=draft.space.key)
    draft.join.append(owner)


def _join(tx: Transaction, draft: Draft, step: Step) -> None:
    if step.owner in draft.members or step.owner in draft.leave or step.owner in draft.space.members:
        return
    _enter(tx, draft, step.owner)
    if not step.quiet:
        _rename(tx, draft, step)


def _leave(tx: Transaction, draft: Draft, step: Step) -> None:
    if step.owner not in draft.members or len(draft.members) == 1 or step.owner in draft.join:
        return
    tx.execute(LEAVE, owner=step.owner, space=draft.space.key)
    draft.leave.append(step.owner)
    if not step.quiet:
        _rename(tx, draft, step)


def _close(tx: Transaction, draft: Draft, _step: Step) -> None:
    tx.execute(EMPTY, space=draft.space.key)
    draft.join.clear()
    draft.close = True


_STEPS: dict[What, Callable[[Transaction, Draft, Step], None]] = {
    "found": _found,
    "item": _item,
    "leaf": _leaf,
    "edit": _edit_one,
    "rename": _rename,
    "kill": _kill,
    "join": _join,
    "leave": _leave,
    "close": _close,
}


class Delivery(msgspec.Struct, frozen=True):
    """A page as the room's door would send it: the entries, the parents carried along, their contents."""

    page: Page
    carried: list[Entry]
    content: dict[str, tuple[int, str | None]]


def deliver(view: Snapshot, ask: Ask, now_ms: int, keep_ms: int = KEEP_MS) -> Delivery:
    found = page(view, ask, now_ms, keep_ms)
    living = [entry for entry in found.entries if entry.live]
    content = _content(view, living)
    carried: list[Entry] = []
    if found.has_more:
        wanted = set()
        for entry in living:
            _rev, parent = content.get(entry.entity, (0, None))
            if entry.kind != ROOT:
                wanted.add(Parent(entry.space, ROOT, f"root{entry.space}"))
            if entry.kind == LEAF and parent is not None:
                wanted.add(Parent(entry.space, ITEM, parent))
        carried = parents_ahead(view, ask.owner, found.next_since, wanted)
        content |= _content(view, carried)
    return Delivery(found, carried, content)


def _content(view: Snapshot, entries: Sequence[Entry]) -> dict[str, tuple[int, str | None]]:
    if not entries:
        return {}
    rows = view.rows(CONTENT, ids=[entry.entity for entry in entries])
    return {name: (rev, parent) for name, rev, parent in rows}


def truth(view: Snapshot, owner: int) -> dict[str, tuple[int, int]]:
    return {name: (kind, rev) for name, kind, rev in view.rows(TRUTH, owner=owner)}


def hashes(view: Snapshot, space: int) -> dict[tuple[int, str], int]:
    """For `problems`: what lives in a space, and the hash of each."""
    return {
        (kind, name): hash_of(name, kind, rev) for name, kind, _parent, rev in view.rows(LIVE, space=space)
    }
