"""What a push does to a library. Pure: it is told which rows there are, and answers which rows there shall be.

    plan = Plan(push, version, now_ms, new_ids)
    plan.known.know_aliases(…), then the rows of plan.ids(), then those of plan.known.parent_ids()
    for each kind:  the rows that hold plan.keys(kind), then plan.change(kind)
    the living children of plan.known.doomed, then plan.delete()
    the rows that hold plan.unlooked(), then plan.settle() → Outcome, or `KeyTaken`

Changes are taken in their order, and each takes the next version. Only the final state has to be free of collisions:
rows may swap keys on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from holdfast.library.errors import KeyTaken
from holdfast.library.known import Known, number_in
from holdfast.library.model import WORD, Alias, Change, Data, Kind, Push, Row
from holdfast.library.rules import GONE_WITH_DELETION, KEY_FIELDS, PARENTS, REQUIRED, key_of

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Data).decode
_replaced = msgspec.structs.replace


class Ignored(msgspec.Struct, frozen=True):
    """Not ours, or not there: takes no version, is not in `accepted`."""

    what: str
    why: str


class Deleted(msgspec.Struct, frozen=True):
    what: str
    cascaded: int


class Outcome(msgspec.Struct, frozen=True):
    version: int
    rows: list[Row]
    """As they shall be: new ones and changed ones."""
    lifted: list[int]
    """Rows that must let go of their keys before the others are written."""
    aliases: list[Alias]
    accepted: dict[str, int]
    """Each entityId that was taken, and its serverId."""
    ignored: list[Ignored]
    deleted: list[Deleted]
    pdfs: dict[str, int]
    """By MD5: how many more (or fewer) living rows name it."""
    pdfs_begun: dict[str, str]
    """By MD5: an entity that names it now and did not before. Its user must have the file."""


class Plan:
    def __init__(self, push: Push, version: int, now_ms: int, new_ids: Iterable[int]) -> None:
        self.known = Known(push.deletions)
        self._push = push
        self._version = version
        self._now_ms = now_ms
        self._new_ids = iter(new_ids)
        self._looked_for: set[str] = set()
        self._touched: dict[int, str] = {}
        """Rows that this push changes, and which entity did it last."""
        self._new_aliases: dict[tuple[int, str], int] = {}
        self._accepted: dict[str, int] = {}
        self._ignored: list[Ignored] = []
        self._deleted: list[Deleted] = []

    # -- what this push names

    def entity_ids(self) -> list[str]:
        """Names that the library may have heard before."""
        names = {parent: None for parent in self._parents_named() if isinstance(parent, str)}
        for changes in self._push.changes.values():
            names.update((change.entity_id, None) for change in changes)
        for deletion in self._push.deletions:
            if deletion.entity_id is not None and deletion.server_id is None:
                names[deletion.entity_id] = None
        return list(names)

    def ids(self) -> list[int]:
        """Rows that it names, one way or another; the aliases are known by now."""
        named = {row_id for _, row_id in self.known.doomed}.union(self.known.aliases.values())
        for changes in self._push.changes.values():
            named.update(change.server_id for change in changes if change.server_id is not None)
        for parent in self._parents_named():
            number = number_in(parent) if isinstance(parent, str) else parent
            if isinstance(number, int):
                named.add(number)
        return list(named)

    def _parents_named(self) -> Iterator[object]:
        for kind, changes in self._push.changes.items():
            for field, _ in PARENTS[kind]:
                for change in changes:
                    yield change.data.get(field)

    # -- changes

    def keys(self, kind: Kind) -> list[str]:
        """The keys that this kind's changes will meet: whoever holds them has to be known before `change`."""
        keys: dict[str, None] = {}
        moving: dict[int, Data] = {}
        for change in self._push.changes[kind]:
            fields = self.known.with_parents(kind, change.data)
            if fields is None:
                continue
            row = self._meant(change)
            if row is None:
                if _is_enough(change, fields):
                    keys[key_of(kind, fields)] = None
            elif row.id in moving:
                moving[row.id] = {**moving[row.id], **fields}
            elif not row.is_live or any(name in fields for name in KEY_FIELDS[kind]):
                moving[row.id] = _merged(change, row, fields)
        for row_id, data in moving.items():
            row, key = self.known.rows[row_id], key_of(kind, data)
            if key != row.key or not row.is_live:
                keys[key] = None
                self.known.bind(row, key)
        self._looked_for.update(keys)
        return list(keys)

    def change(self, kind: Kind) -> None:
        for change in self._push.changes[kind]:
            why = self._change(change)
            if why is not None:
                self._ignored.append(Ignored(f"{WORD[kind]}:{change.entity_id}", why))

    def _change(self, change: Change) -> str | None:
        """None, or why it is ignored."""
        row = self._meant(change)
        fields = self.known.with_parents(change.kind, change.data)
        if fields is None:
            return "its parent is not there"
        if row is None:
            if not _is_enough(change, fields):
                return f"there is no {WORD[change.kind]} {change.server_id or change.entity_id}"
            row = self.known.by_key(key_of(change.kind, fields))
        data = fields if row is None else _merged(change, row, fields)
        self._revive_parents(change, data)
        self._put(change, row, data)
        return None

    def _meant(self, change: Change) -> Row | None:
        """The row that this change names, whatever its key: by serverId, else by the client's own name for it."""
        if change.server_id is not None:
            row = self.known.of_kind(change.kind, change.server_id)
            if row is not None or change.operation == "update":
                return row
        return self.known.named(change.kind, change.entity_id)

    def _revive_parents(self, change: Change, data: Data) -> None:
        for field, _ in PARENTS[change.kind]:
            parent = self.known.rows[data[field]]  # type: ignore[index]  # a serverId by now
            if not parent.is_live:
                self._version += 1
                self.known.put(
                    _replaced(parent, version=self._version, updated_ms=self._now_ms, deleted_ms=None)
                )
                self._touched[parent.id] = change.entity_id

    def _put(self, change: Change, row: Row | None, data: Data) -> None:
        self._version += 1
        row_id = row.id if row is not None else next(self._new_ids)
        made_ms = row.created_ms if row is not None else self._now_ms
        self.known.put(_row(change.kind, row_id, self._version, data, made_ms, self._now_ms))
        self._touched[row_id] = change.entity_id
        self._accepted[change.entity_id] = row_id
        name = (change.kind, change.entity_id)
        if self.known.aliases.get(name) != row_id:
            self.known.aliases[name] = self._new_aliases[name] = row_id

    # -- deletions

    def delete(self) -> None:
        if not self._push.deletions:
            return
        children = self.known.children()
        for deletion in self._push.deletions:
            row_id = self.known.deleted_id(deletion)
            row = self.known.of_kind(deletion.kind, row_id) if row_id is not None else None
            if row is None:
                self._ignored.append(Ignored(str(deletion), "there is no such entity"))
                continue
            if deletion.entity_id is not None:
                self._accepted[deletion.entity_id] = row.id
            if not row.is_live:
                continue
            name = deletion.entity_id or str(deletion)
            below = [self.known.rows[child] for child in children.get(row.id, ())]
            dying = [row, *(child for child in below if child.is_live)]
            for each in dying:
                self._bury(each, name)
            self._deleted.append(Deleted(str(deletion), len(dying) - 1))

    def _bury(self, row: Row, name: str) -> None:
        self._version += 1
        data = row.data
        if row.kind == Kind.INSTRUMENT_SCORE and GONE_WITH_DELETION in data:
            fields = _decode(data)
            fields.pop(GONE_WITH_DELETION, None)
            data = _encode(fields).decode()
        now = self._now_ms
        self.known.put(
            _replaced(row, version=self._version, pdf_md5=None, data=data, updated_ms=now, deleted_ms=now)
        )
        self._touched[row.id] = name

    # -- the end

    def unlooked(self) -> list[str]:
        """Keys that rows have come to hold without anybody having looked who else does."""
        return [
            row.key
            for row in self._rows_touched()
            if row.is_live and row.key not in self._looked_for and self._has_come(row)
        ]

    def settle(self) -> Outcome:
        self._refuse_collisions()
        rows = self._rows_touched()
        taken = {row.key for row in rows if row.is_live and self._has_come(row)}
        lifted = [
            row.id
            for row in rows
            if (old := self.known.before.get(row.id)) is not None
            and old.is_live
            and old.key in taken
            and (not row.is_live or row.key != old.key)
        ]
        aliases = [Alias(name, kind, row_id) for (kind, name), row_id in self._new_aliases.items()]
        return Outcome(
            self._version,
            rows,
            lifted,
            aliases,
            self._accepted,
            self._ignored,
            self._deleted,
            *self._pdfs(rows),
        )

    def _rows_touched(self) -> list[Row]:
        return [self.known.rows[row_id] for row_id in self._touched]

    def _has_come(self, row: Row) -> bool:
        """To the key that it has."""
        old = self.known.before.get(row.id)
        return old is None or not old.is_live or old.key != row.key

    def _refuse_collisions(self) -> None:
        holders: dict[str, Row] = {}
        for row in self.known.rows.values():
            if not row.is_live:
                continue
            other = holders.setdefault(row.key, row)
            if other is not row:
                later = max(row, other, key=lambda each: each.version)
                raise KeyTaken(self._touched[later.id], WORD[Kind(row.kind)])

    def _pdfs(self, rows: list[Row]) -> tuple[dict[str, int], dict[str, str]]:
        counted: dict[str, int] = {}
        begun: dict[str, str] = {}
        for row in rows:
            before = self.known.before.get(row.id)
            old = before.pdf_md5 if before is not None else None
            if row.pdf_md5 == old:
                continue
            if old is not None:
                counted[old] = counted.get(old, 0) - 1
            if row.pdf_md5 is not None:
                counted[row.pdf_md5] = counted.get(row.pdf_md5, 0) + 1
                begun[row.pdf_md5] = self._touched[row.id]
        return counted, begun


def _is_enough(change: Change, fields: Data) -> bool:
    """To make a new row of it."""
    return change.operation == "create" and all(name in fields for name in REQUIRED[change.kind])


def _merged(change: Change, row: Row, fields: Data) -> Data:
    """What the row will hold. Over a dead one a create is something new: nothing of the old data stays."""
    if not row.is_live and _is_enough(change, fields):
        return fields
    return {**_decode(row.data), **fields}


def _row(kind: Kind, row_id: int, version: int, data: Data, made_ms: int, now_ms: int) -> Row:
    score = setlist = pdf = None
    if kind == Kind.INSTRUMENT_SCORE:
        score, pdf = data["scoreId"], data.get("pdfHash")
    elif kind == Kind.SETLIST_SCORE:
        score, setlist = data["scoreId"], data["setlistId"]
    return Row(
        row_id,
        kind,
        version,
        key_of(kind, data),
        score,  # type: ignore[arg-type]  # checked by `rules`, a serverId by now
        setlist,  # type: ignore[arg-type]
        pdf,  # type: ignore[arg-type]
        _encode(data).decode(),
        made_ms,
        now_ms,
        None,
    )
