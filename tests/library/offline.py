"""A device that works without a network, and the truth that it is held against.

A `Phone` keeps its own copy and what it has changed since; it pushes before it pulls, pulls when it is told 412, and
drops a change that collides with somebody else's. `Truth` is told every accepted push and applies it row by row, as the
seed describes it: what it holds is what the server must hold.
"""

from __future__ import annotations

from itertools import count

import msgspec

from holdfast.library.model import KIND, Kind
from tests.library.conftest import Device, Json

ARRAYS = {
    "score": "scores",
    "instrumentScore": "instrumentScores",
    "setlist": "setlists",
    "setlistScore": "setlistScores",
}
PARENTS = {"instrumentScore": ("scoreId",), "setlistScore": ("setlistId", "scoreId")}
KEYS = {
    "score": ("title", "composer"),
    "instrumentScore": ("scoreId", "instrumentName"),
    "setlist": ("name",),
    "setlistScore": ("setlistId", "scoreId"),
}
_names = count(1)


class Entity(msgspec.Struct):
    """As the phone has it. Parents are the phone's own names."""

    kind: str
    name: str
    data: Json
    server_id: int | None = None
    is_live: bool = True
    pending: str | None = None
    """What the server has still to hear: create, update or delete."""

    @property
    def key(self) -> tuple[object, ...]:
        return (self.kind, *(self.data.get(field) or "" for field in KEYS[self.kind]))


class Phone:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.version = 0
        self.entities: dict[str, Entity] = {}

    # -- offline

    def living(self, kind: str) -> list[Entity]:
        return [each for each in self.entities.values() if each.kind == kind and each.is_live]

    def is_free(self, key: tuple[object, ...]) -> bool:
        return all(each.key != key for each in self.entities.values() if each.is_live)

    def create(self, kind: str, data: Json) -> None:
        made = Entity(kind, f"e{next(_names)}", data, pending="create")
        if self.is_free(made.key):
            self.entities[made.name] = made

    def update(self, entity: Entity, data: Json) -> None:
        changed = msgspec.structs.replace(entity, data={**entity.data, **data})
        if changed.key == entity.key or self.is_free(changed.key):
            entity.data = changed.data
            entity.pending = entity.pending or "update"

    def delete(self, entity: Entity) -> None:
        for child in list(self.entities.values()):
            if child.is_live and entity.name in (
                child.data.get(field) for field in PARENTS.get(child.kind, ())
            ):
                # one that was changed may have come from elsewhere, where the server still has it
                self._let_go(child, "delete" if child.pending else None)
        self._let_go(entity, "delete")

    def _let_go(self, entity: Entity, pending: str | None) -> None:
        if entity.server_id is None:
            del self.entities[entity.name]
        else:
            entity.is_live, entity.pending = False, pending

    # -- online

    async def sync(self, truth: Truth) -> None:
        while pending := [each for each in self.entities.values() if each.pending]:
            body = self._body(pending)
            said = await self.device.push_raw(body)
            if said.status_code == 200:
                truth.accept(body, said.json())
                self._pushed(pending, said.json())
                break
            if said.status_code == 412:
                assert said.json()["serverLibraryVersion"] > self.version
            else:
                assert said.status_code == 409, said.text
                self._drop(said.json()["entityId"], pending)
            await self.pull()
        await self.pull()

    def _body(self, pending: list[Entity]) -> Json:
        body: Json = {"clientLibraryVersion": self.version, "deletes": []}
        for each in pending:
            if each.pending == "delete":
                body["deletes"].append(f"{each.kind}:{each.server_id}")
                continue
            change: Json = {"entityId": each.name, "operation": each.pending, "data": self._wire_data(each)}
            if each.server_id is not None:
                change["serverId"] = each.server_id
            body.setdefault(ARRAYS[each.kind], []).append(change)
        return body

    def _wire_data(self, entity: Entity) -> Json:
        data = dict(entity.data)
        for field in PARENTS.get(entity.kind, ()):
            parent = self.entities[data[field]]
            data[field] = parent.server_id or parent.name
        return data

    def _pushed(self, pending: list[Entity], answer: Json) -> None:
        for each in pending:
            if each.pending != "delete":
                assert each.name in answer["accepted"], (each, answer)
                each.server_id = answer["serverIdMapping"][each.name]
                self._merge_into(each)
            each.pending = None

    def _merge_into(self, kept: Entity) -> None:
        """The server knows another entity of ours as the same one: that one goes, and its children come over."""
        for other in list(self.entities.values()):
            if other is not kept and other.server_id == kept.server_id:
                del self.entities[other.name]
                for child in self.entities.values():
                    for field in PARENTS.get(child.kind, ()):
                        if child.data[field] == other.name:
                            child.data[field] = kept.name

    def _drop(self, name: str, pending: list[Entity]) -> None:
        """The server refused this one: its user would be asked; here it loses its change."""
        refused = next(each for each in pending if each.name == name)
        if refused.server_id is None:
            self.delete(refused)
        else:
            refused.pending = None
        self.version = 0  # what the server has of it comes again

    async def pull(self) -> None:
        found = await self.device.pull(self.version)
        by_id = {each.server_id: each for each in self.entities.values() if each.server_id is not None}
        for array in ARRAYS.values():
            for item in found[array]:
                mine = by_id.get(item["serverId"])
                if mine is None:
                    mine = Entity(item["entityType"], f"e{next(_names)}", {}, item["serverId"])
                    self.entities[mine.name] = by_id[item["serverId"]] = mine
                if item["isDeleted"] and mine.pending == "delete":
                    mine.pending = None  # somebody else did it
                if mine.pending is None:
                    mine.data, mine.is_live = self._local_data(item, by_id), not item["isDeleted"]
        self.version = found["libraryVersion"]
        self._revive_parents()

    def _local_data(self, item: Json, by_id: dict[int | None, Entity]) -> Json:
        data = dict(item["data"])
        for field in PARENTS.get(item["entityType"], ()):
            data[field] = by_id[data[field]].name
        return data

    def _revive_parents(self) -> None:
        """Local first: a parent that somebody deleted stays as long as a changed child needs it."""
        for each in list(self.entities.values()):
            if each.is_live and each.pending:
                for field in PARENTS.get(each.kind, ()):
                    parent = self.entities[each.data[field]]
                    if not parent.is_live and parent.pending == "delete":
                        parent.is_live, parent.pending = True, "update"

    def copy(self) -> dict[int | None, tuple[str, bool, Json]]:
        """By serverId: what it is, whether it lives, its data."""
        return {
            each.server_id: (each.kind, each.is_live, self._wire_data(each))
            for each in self.entities.values()
        }


class Row(msgspec.Struct):
    kind: str
    data: Json
    is_live: bool


class Truth:
    """What every accepted push adds up to."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.version = 0
        self._heard: list[tuple[Json, Json]] = []

    def accept(self, body: Json, answer: Json) -> None:
        """Answers may be heard in another order than their pushes were taken in: the versions say which one that was."""
        self._heard.append((body, answer))
        while next_ := self._next():
            self._heard.remove(next_)
            self._apply(*next_)

    @property
    def is_complete(self) -> bool:
        return not self._heard

    def _next(self) -> tuple[Json, Json] | None:
        here = [each for each in self._heard if each[0]["clientLibraryVersion"] == self.version]
        return min(
            here, key=lambda each: each[1]["newLibraryVersion"], default=None
        )  # what moved nothing first

    def _apply(self, body: Json, answer: Json) -> None:
        named: dict[tuple[str, str], int] = {}
        for kind, array in ARRAYS.items():
            for change in body.get(array, ()):
                server_id = answer["serverIdMapping"][change["entityId"]]
                named[kind, change["entityId"]] = server_id
                self._change(kind, change, server_id, named)
        for key in body["deletes"]:
            kind, _, number = key.partition(":")
            self._delete(kind, int(number))
        assert answer["newLibraryVersion"] == self.version

    def _change(self, kind: str, change: Json, server_id: int, named: dict[tuple[str, str], int]) -> None:
        data = dict(change["data"])
        for field in PARENTS.get(kind, ()):
            parent_kind = "setlist" if field == "setlistId" else "score"
            if isinstance(data[field], str):
                data[field] = named[parent_kind, data[field]]
            parent = self.rows[data[field]]
            assert parent.kind == parent_kind
            if not parent.is_live:
                parent.is_live = True
                self.version += 1
        self.version += 1
        was = self.rows.get(server_id)
        if was is None:
            assert "serverId" not in change
            self.rows[server_id] = Row(kind, data, is_live=True)
            return
        assert was.kind == kind
        if "serverId" in change:
            assert change["serverId"] == server_id
        else:
            assert _key(kind, was.data) == _key(kind, data), "a create may only meet its own key"
        replaced = not was.is_live and change["operation"] == "create"
        was.data, was.is_live = (data if replaced else {**was.data, **data}), True

    def _delete(self, kind: str, server_id: int) -> None:
        row = self.rows[server_id]
        assert row.kind == kind
        if row.is_live:
            for each in (row, *self._children(server_id)):
                each.is_live = False
                self.version += 1

    def _children(self, server_id: int) -> list[Row]:
        return [
            row
            for row in self.rows.values()
            if row.is_live and server_id in (row.data.get(field) for field in PARENTS.get(row.kind, ()))
        ]

    def copy(self) -> dict[int, tuple[str, bool, Json]]:
        return {server_id: (row.kind, row.is_live, row.data) for server_id, row in self.rows.items()}


def _key(kind: str, data: Json) -> tuple[object, ...]:
    return tuple(data.get(field) or "" for field in KEYS[kind])


assert set(ARRAYS) == set(KIND) == {"score", "instrumentScore", "setlist", "setlistScore"}
assert len(Kind) == len(ARRAYS)
