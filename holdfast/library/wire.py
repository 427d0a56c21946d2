"""A push as it comes over the wire: read strictly, and every refusal names the entity. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from holdfast.errors import HoldfastError, Malformed, TooLarge
from holdfast.ids import MAX_ID
from holdfast.library import rules
from holdfast.library.errors import InvalidChange, InvalidDeleteKey
from holdfast.library.model import KIND, WORD, Change, Data, Deletion, Kind, Push

_DELETE_KEY = re.compile(r"([a-zA-Z]+):([1-9][0-9]{0,18})\Z")
_PLACE = re.compile(r"\$\.(scores|instrumentScores|setlists|setlistScores)\[(\d+)\](?:\.(\w+))?")

Id = Annotated[int, Meta(ge=1, le=MAX_ID)]
Version = Annotated[int, Meta(ge=0, le=MAX_ID)]


class EntityChange(Struct, frozen=True, rename="camel"):
    """One change of one entity."""

    entity_id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=rules.ENTITY_ID_MAX,
            description="the client's own name for it (a UUID)",
            examples=["7d6f3a52-3f0a-4c57-9d0b-0d7b7a0f5f11"],
        ),
    ]
    operation: Literal["create", "update", "delete"]
    entity_type: Literal["score", "instrumentScore", "setlist", "setlistScore"] | None = None
    server_id: Annotated[Id | None, Meta(description="once the client knows it")] = None
    version: Version | None = None
    data: Annotated[
        Data | str | None,
        Meta(
            description="an object (or one as a JSON string); fields that the server does not know are kept"
        ),
    ] = None
    local_updated_at: str | int | None = None


Changes = list[EntityChange] | None


class PushRequest(Struct, frozen=True, rename="camel"):
    """Everything that a device changed since its last push."""

    client_library_version: Annotated[
        Version, Meta(description="what the device has pulled up to", examples=[100])
    ]
    epoch: Annotated[str, Meta(max_length=100, description="as the last pull gave it")] | None = None
    scores: Changes = None
    instrument_scores: Changes = None
    setlists: Changes = None
    setlist_scores: Changes = None
    deletes: Annotated[
        list[str] | None, Meta(description="keys like score:123", examples=[["score:123"]])
    ] = None


_decoder = msgspec.json.Decoder(PushRequest)
_objects = msgspec.json.Decoder(Data)


def checked(request: PushRequest, fields: Mapping[Kind, rules.Fields], most: int) -> Push:
    """What is asked for, or the first thing that is wrong with it."""
    arrays = (request.scores, request.instrument_scores, request.setlists, request.setlist_scores)
    if sum(len(array or ()) for array in (*arrays, request.deletes)) > most:
        raise TooLarge(f"A push may have {most} changes; send the others with the next one.")
    changes: dict[Kind, tuple[Change, ...]] = {}
    deletions: list[Deletion] = []
    for kind, sent in zip(Kind, arrays, strict=True):
        known = fields[kind]
        kept = []
        for change in sent or ():
            if change.entity_type is not None and change.entity_type != WORD[kind]:
                raise InvalidChange(change.entity_id, f"entityType must be {WORD[kind]} in this array")
            if not change.entity_id.isprintable():
                raise InvalidChange(change.entity_id, "entityId must have no control characters")
            if change.operation == "delete":
                deletions.append(Deletion(kind, change.server_id, change.entity_id))
            else:
                data = _checked(change, known, rules.REQUIRED[kind])
                kept.append(Change(kind, change.entity_id, change.server_id, change.operation, data))
        changes[kind] = tuple(kept)
    deletions += map(_deletion, request.deletes or ())
    return Push(request.client_library_version, request.epoch, changes, tuple(deletions))


def _checked(change: EntityChange, fields: rules.Fields, required: tuple[str, ...]) -> Data:
    try:
        data = rules.checked(fields, _object(change))
    except rules.WrongField as error:
        raise InvalidChange(change.entity_id, f"data.{error}") from None
    if change.operation == "create" and change.server_id is None:
        for name in required:
            if name not in data:
                raise InvalidChange(change.entity_id, f"data.{name} is missing")
    return data


def _object(change: EntityChange) -> Data:
    if isinstance(change.data, dict):
        return change.data
    if change.data is None:
        return {}
    try:
        return _objects.decode(change.data)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise InvalidChange(change.entity_id, "data is not a JSON object") from None


def _deletion(key: str) -> Deletion:
    found = _DELETE_KEY.match(key)
    kind = KIND.get(found[1]) if found else None
    if found is None or kind is None or int(found[2]) > MAX_ID:
        raise InvalidDeleteKey(key[:100])
    return Deletion(kind, int(found[2]))


def decoded(raw: bytes) -> PushRequest:
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise _named(raw, str(error)) from None
    except msgspec.DecodeError as error:
        raise Malformed(f"The body is not JSON: {error}") from None
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None


def _named(raw: bytes, why: str) -> HoldfastError:
    """The reader says where it stopped; the client wants to know at which of its entities."""
    sentence, _, where = why.partition(" - at ")
    place = _PLACE.match(where.strip("`"))
    if place is None:
        return InvalidChange(None, f"{where.strip('`').removeprefix('$.') or 'body'}: {sentence}")
    field = place[3] or f"{place[1]}[{place[2]}]"
    return InvalidChange(_name_at(raw, place[1], int(place[2])), f"{field}: {sentence}")


def _name_at(raw: bytes, array: str, index: int) -> str | None:
    try:
        change = _objects.decode(raw)[array][index]  # type: ignore[index]
        name = change["entityId"]
    except (msgspec.DecodeError, RecursionError, UnicodeError, LookupError, TypeError):
        return None  # what comes behind the first mistake may be worse
    return name if isinstance(name, str) else None


# -- a pull's answer, for its description: `pull` writes it as text


class PulledEntity(Struct, frozen=True, rename="camel"):
    entity_type: Literal["score", "instrumentScore", "setlist", "setlistScore"]
    server_id: int
    version: int
    data: Data
    updated_at: str
    is_deleted: bool


class PullAnswer(Struct, frozen=True, rename="camel"):
    library_version: int
    is_full_sync: bool
    epoch: str
    has_more: bool
    next_since: int
    scores: list[PulledEntity]
    instrument_scores: list[PulledEntity]
    setlists: list[PulledEntity]
    setlist_scores: list[PulledEntity]
    deleted: Annotated[list[str], Meta(examples=[["score:123"]])]
