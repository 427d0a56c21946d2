"""What each kind's `data` must look like, and which key follows from it. Pure.

Fields that are not named here are kept and given back as they came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from holdfast.ids import MAX_ID
from holdfast.library.model import Data, Kind
from holdfast.settings import Limits

SEPARATOR = "\x1f"  # in no name: control characters are refused
ENTITY_ID_MAX = 200

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MD5 = re.compile(r"[0-9a-f]{32}\Z")

# the annotations of an instrument score go when it is deleted: they are large, and nobody asks for them again
GONE_WITH_DELETION = "annotationsJson"

Check = Callable[[object], object]


class WrongField(ValueError):
    """The sentence says which, and why."""


def checked_name(most: int, *, empty: bool = False) -> Check:
    least = 0 if empty else 1

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise WrongField("must be a string")
        if not least <= len(value) <= most:
            raise WrongField(f"must have {least} to {most} characters")
        if _CONTROL.search(value):
            raise WrongField("must have no control characters")
        return value

    return check


def checked_text(most: int) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str):
            raise WrongField("must be a string")
        if len(value) > most:
            raise WrongField(f"must have at most {most} characters")
        return value

    return check


def checked_integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -MAX_ID <= value <= MAX_ID:
        raise WrongField("must be an integer of at most 63 bits")
    return value


def checked_parent(value: object) -> int | str:
    """A serverId, or the entityId of a parent."""
    if isinstance(value, str):
        if not 1 <= len(value) <= ENTITY_ID_MAX or _CONTROL.search(value):
            raise WrongField("must be a serverId or an entityId")
        return value
    found = checked_integer(value)
    if found < 1:
        raise WrongField("must be a serverId or an entityId")
    return found


def checked_md5(value: object) -> str | None:
    if value == "":
        return None
    if not isinstance(value, str) or not _MD5.match(value.lower()):
        raise WrongField("must be an MD5 in 32 hexadecimal digits")
    return value.lower()


def checked_annotations(value: object) -> str:
    if not isinstance(value, str):
        raise WrongField("must be a string")
    return value


class Field(msgspec.Struct, frozen=True):
    check: Check
    required: bool = False
    """May be neither null nor missing (on a row that is there, missing means: as it was)."""


Fields = Mapping[str, Field]


def fields_of(limits: Limits) -> Mapping[Kind, Fields]:
    name, remark = checked_name(limits.name), checked_text(limits.remark)
    integer, parent = Field(checked_integer), Field(checked_parent, required=True)
    return {
        Kind.SCORE: {
            "title": Field(name, required=True),
            "composer": Field(checked_name(limits.name, empty=True)),
            "bpm": integer,
        },
        Kind.INSTRUMENT_SCORE: {
            "scoreId": parent,
            "instrumentName": Field(name, required=True),
            "pdfHash": Field(checked_md5),
            "orderIndex": integer,
            "annotationsJson": Field(checked_annotations),
        },
        Kind.SETLIST: {"name": Field(name, required=True), "description": Field(remark)},
        Kind.SETLIST_SCORE: {"setlistId": parent, "scoreId": parent, "orderIndex": integer},
    }


PARENTS: Mapping[Kind, tuple[tuple[str, Kind], ...]] = {
    Kind.SCORE: (),
    Kind.INSTRUMENT_SCORE: (("scoreId", Kind.SCORE),),
    Kind.SETLIST: (),
    Kind.SETLIST_SCORE: (("setlistId", Kind.SETLIST), ("scoreId", Kind.SCORE)),
}

REQUIRED: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(name for name, field in fields.items() if field.required)
    for kind, fields in fields_of(Limits()).items()
}

KEY_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.SCORE: ("title", "composer"),
    Kind.INSTRUMENT_SCORE: ("scoreId", "instrumentName"),
    Kind.SETLIST: ("name",),
    Kind.SETLIST_SCORE: ("setlistId", "scoreId"),
}


def checked(fields: Fields, data: Data) -> Data:
    """`data` with its known fields checked (and spelled as we keep them), the others as they are."""
    for name, value in data.items():
        field = fields.get(name)
        if field is None:
            if not isinstance(value, str):
                refuse_long_integers(name, value)
        elif value is not None:
            try:
                data[name] = field.check(value)
            except WrongField as error:
                raise WrongField(f"{name} {error}") from None
        elif field.required:
            raise WrongField(f"{name} must not be null")
    return data


def refuse_long_integers(name: str, value: object) -> None:
    if isinstance(value, int) and not -MAX_ID <= value <= MAX_ID:
        raise WrongField(f"{name} holds an integer of more than 63 bits")
    inside: Iterable[object] = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list):
        inside = value
    for part in inside:
        refuse_long_integers(name, part)


def key_of(kind: Kind, data: Data) -> str:
    """What no other living row of this user may have. Parents are serverIds by now; a missing composer is an empty one."""
    match kind:
        case Kind.SCORE:
            return f"score{SEPARATOR}{data['title']}{SEPARATOR}{data.get('composer') or ''}"
        case Kind.INSTRUMENT_SCORE:
            return f"instrumentScore{SEPARATOR}{data['scoreId']}{SEPARATOR}{data['instrumentName']}"
        case Kind.SETLIST:
            return f"setlist{SEPARATOR}{data['name']}"
        case Kind.SETLIST_SCORE:
            return f"setlistScore{SEPARATOR}{data['setlistId']}{SEPARATOR}{data['scoreId']}"
