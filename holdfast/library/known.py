"""What a plan knows of a library: its rows as they were and as they are by now, their names, who holds which key. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.library.model import Alias, Data, Deletion, Kind, Row
from holdfast.library.rules import PARENTS


class Known:
    def __init__(self, deletions: Iterable[Deletion]) -> None:
        self._deletions = tuple(deletions)
        self.rows: dict[int, Row] = {}
        """As they are by now."""
        self.before: dict[int, Row] = {}
        """As they were, those that were there."""
        self.aliases: dict[tuple[int, str], int] = {}
        self.doomed: set[tuple[int, int]] = set()
        """Kinds and ids that this push deletes: no match for something new under their key, the two are not the same."""
        self._live: dict[str, int] = {}
        self._graves: dict[str, list[int]] = {}
        self._bound: set[int] = set()
        """Rows whose key at the end is known already: they are where they will be, wherever they are on the way."""

    def know_aliases(self, aliases: Iterable[Alias]) -> None:
        for alias in aliases:
            self.aliases[alias.kind, alias.entity_id] = alias.id
        for deletion in self._deletions:
            found = self.deleted_id(deletion)
            if found is not None:
                self.doomed.add((deletion.kind, found))

    def know(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.id in self.before:
                continue
            self.before[row.id] = self.rows[row.id] = row
            if not row.is_live:
                self._graves.setdefault(row.key, []).append(row.id)
            elif (row.kind, row.id) not in self.doomed:
                self._live.setdefault(row.key, row.id)

    def parent_ids(self) -> list[int]:
        """Parents that known rows name and that are not known themselves."""
        return list({parent for row in self.rows.values() for parent in parents_of(row)} - self.rows.keys())

    # -- who is who

    def named(self, kind: Kind, entity_id: str) -> Row | None:
        found = self.aliases.get((kind, entity_id))
        return None if found is None else self.of_kind(kind, found)

    def of_kind(self, kind: Kind, row_id: int) -> Row | None:
        row = self.rows.get(row_id)
        return row if row is not None and row.kind == kind else None

    def parent(self, kind: Kind, name: object) -> Row | None:
        """By its entityId or its serverId."""
        if not isinstance(name, str):
            assert isinstance(name, int)
            return self.of_kind(kind, name)
        number = number_in(name)
        return self.named(kind, name) or (self.of_kind(kind, number) if number is not None else None)

    def with_parents(self, kind: Kind, data: Data) -> Data | None:
        """`data` with its parents as serverIds; None when one of them is not there, or is somebody else's."""
        named = PARENTS[kind]
        if not named:
            return data
        fields = dict(data)
        for field, parent_kind in named:
            if field in fields:
                parent = self.parent(parent_kind, fields[field])
                if parent is None:
                    return None
                fields[field] = parent.id
        return fields

    def by_key(self, key: str) -> Row | None:
        """The living row with this key, else the dead one with the highest version."""
        found = self._live.get(key)
        if found is not None:
            return self.rows[found]
        graves = [
            self.rows[row_id]
            for row_id in self._graves.get(key, ())
            if row_id not in self._bound and not self.rows[row_id].is_live
        ]
        return max(graves, key=lambda row: row.version, default=None)

    def deleted_id(self, deletion: Deletion) -> int | None:
        if deletion.server_id is not None or deletion.entity_id is None:
            return deletion.server_id
        return self.aliases.get((deletion.kind, deletion.entity_id))

    def children(self) -> dict[int, list[int]]:
        """Of each parent: its instrument scores, then its setlists' entries, each in the order of their ids."""
        found: dict[int, list[int]] = {}
        for row in sorted(self.rows.values(), key=lambda row: (row.kind, row.id)):
            for parent in parents_of(row):
                found.setdefault(parent, []).append(row.id)
        return found

    # -- what becomes of them

    def bind(self, row: Row, key: str) -> None:
        """At the end of the push this row will live under `key`."""
        self._bound.add(row.id)
        if self._live.get(row.key) == row.id:
            del self._live[row.key]
        if (row.kind, row.id) not in self.doomed:
            self._live[key] = row.id

    def put(self, row: Row) -> None:
        """The row is like this by now."""
        old = self.rows.get(row.id)
        self.rows[row.id] = row
        if row.id in self._bound or not row.is_live:
            return
        if old is not None and old.key != row.key and self._live.get(old.key) == row.id:
            del self._live[old.key]
        if (row.kind, row.id) not in self.doomed:
            self._live[row.key] = row.id


def parents_of(row: Row) -> Iterator[int]:
    if row.score_id is not None:
        yield row.score_id
    if row.setlist_id is not None:
        yield row.setlist_id


def number_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
