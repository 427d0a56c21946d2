"""A client as the specification has it: follows `next_since`, echoes the epoch, marks and sweeps after a reset.

It complains of a page that breaks a rule, and goes on as a real client would: what it holds in the end is judged
apart (`difference`), since only that tells whether something was skipped.
"""

from __future__ import annotations

from holdfast.feed import Ask, Checksum, Entry
from tests.feed.world import ITEM, LEAF, ROOT, Delivery, hash_of


class Follower:
    def __init__(self, owner: int, *, sends_epoch: bool = True) -> None:
        self.owner = owner
        self.since = 0
        self.epoch: str | None = None
        self.rows: dict[str, tuple[int, int]] = {}
        self.resets = 0
        self.complaints: list[str] = []
        self._sends_epoch = sends_epoch
        self._marked: set[str] | None = None

    def ask(self, limit: int) -> Ask:
        return Ask(self.owner, self.since, limit, self.epoch if self._sends_epoch else None)

    def take(self, delivery: Delivery, limit: int) -> bool:
        """Applies a page; answers whether there are more."""
        page = delivery.page
        if page.reset:
            self.resets += 1
            self.since = 0
            if self._sends_epoch:
                self._marked = set()
        self._must_be_in_order([entry.version for entry in page.entries], page.head, limit)
        living = {e.entity: e for e in (*delivery.carried, *page.entries) if e.live}
        for entry in page.entries:
            if not entry.live:
                self.rows.pop(entry.entity, None)
        for entry in sorted(living.values(), key=lambda entry: entry.kind):
            self._apply(entry, delivery)
        if self._marked is not None:
            self._marked |= living.keys()
            if not page.has_more:
                self.rows = {name: row for name, row in self.rows.items() if name in self._marked}
                self._marked = None
        if page.next_since < self.since:
            self.complaints.append(f"next_since went back from {self.since} to {page.next_since}")
        self.since, self.epoch = page.next_since, page.epoch
        return page.has_more

    def _must_be_in_order(self, versions: list[int], head: int, limit: int) -> None:
        if len(versions) > limit:
            self.complaints.append(f"{len(versions)} entries on a page of {limit}")
        if versions != sorted(set(versions)):
            self.complaints.append(f"versions out of order: {versions}")
        if versions and not (self.since < versions[0] and versions[-1] <= head):
            self.complaints.append(f"versions {versions} outside {self.since}..{head}")

    def _apply(self, entry: Entry, delivery: Delivery) -> None:
        if entry.entity not in delivery.content:
            self.complaints.append(f"{entry.entity} is said to live and is not there")
            return
        rev, parent = delivery.content[entry.entity]
        needed = {ROOT: (), ITEM: (parent,), LEAF: (parent, f"root{entry.space}")}[entry.kind]
        for name in needed:
            if name not in self.rows:
                self.complaints.append(f"{entry.entity} came before its parent {name}")
        self.rows[entry.entity] = (entry.kind, rev)

    def difference(self, truth: dict[str, tuple[int, int]]) -> str | None:
        """What is wrong with what it holds; None when that is exactly the truth."""
        if self.rows == truth:
            return None
        missing = sorted(truth.keys() - self.rows.keys())
        extra = sorted(self.rows.keys() - truth.keys())
        stale = sorted(n for n in truth.keys() & self.rows.keys() if truth[n] != self.rows[n])
        return f"owner {self.owner} misses {missing}, has {extra} too many, and {stale} are stale"

    def checksum(self) -> Checksum:
        """Computed from its own rows, as the specification tells a client to."""
        digest = sum(hash_of(name, kind, rev) for name, (kind, rev) in self.rows.items()) % 2**64
        return Checksum(len(self.rows), f"{digest:016x}", self.since)
