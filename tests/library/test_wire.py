"""A push as it comes over the wire: what is refused, and that the refusal names the entity."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import Invalid, TooLarge
from holdfast.library import wire
from holdfast.library.errors import InvalidChange, InvalidDeleteKey
from holdfast.library.model import Push
from holdfast.library.rules import fields_of
from holdfast.settings import Limits
from tests.library.conftest import Json, create, part, score, setlist

FIELDS = fields_of(Limits())


def read(body: object) -> Push:
    return wire.checked(wire.decoded(msgspec.json.encode(body)), FIELDS, 100)


def ups(**data: object) -> Json:
    return create("score", "bad", **data)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": [ups()]},
        {"scores": [ups(title="")]},
        {"scores": [ups(title="x" * 201)]},
        {"scores": [ups(title="a\nb")]},
        {"scores": [ups(title="a\x00b")]},
        {"scores": [ups(title=None)]},
        {"scores": [ups(title=5)]},
        {"scores": [ups(title="x", bpm="fast")]},
        {"scores": [ups(title="x", bpm=True)]},
        {"scores": [ups(title="x", bpm=1.5)]},
        {"scores": [ups(title="x", bpm=2**63)]},
        {"scores": [ups(title="x", other=2**63)]},
        {"scores": [ups(title="x", other={"deep": [2**64]})]},
        {"scores": [ups(title="x", composer=["c"])]},
        {"scores": [ups(title="x") | {"data": "no json"}]},
        {"scores": [ups(title="x") | {"data": "[1]"}]},
        {"scores": [ups(title="x") | {"data": "[" * 100_000}]},
        {"scores": [ups(title="x") | {"data": 5}]},
        {"scores": [ups(title="x") | {"data": None}]},
        {"scores": [ups(title="x") | {"operation": "upsert"}]},
        {"scores": [ups(title="x") | {"entityType": "setlist"}]},
        {"scores": [ups(title="x") | {"entityType": "book"}]},
        {"scores": [ups(title="x") | {"serverId": "5"}]},
        {"scores": [ups(title="x") | {"serverId": 0}]},
        {"scores": [ups(title="x") | {"serverId": 2**63}]},
        {"scores": [ups(title="x") | {"version": -1}]},
        {"instrumentScores": [create("instrumentScore", "bad", instrumentName="v")]},
        {"instrumentScores": [part("S", "v", "bad", pdfHash="xyz")]},
        {"instrumentScores": [part("S", "v", "bad", pdfHash=5)]},
        {"instrumentScores": [part("S", "v", "bad", annotationsJson={})]},
        {"instrumentScores": [part(0, "v", "bad")]},
        {"instrumentScores": [part("", "v", "bad")]},
        {"setlists": [setlist("", "bad")]},
        {"setlists": [setlist("l", "bad", description="x" * 4_001)]},
        {"setlistScores": [create("setlistScore", "bad", setlistId=1)]},
        {"deletes": ["bad"]},
    ],
    ids=lambda wrong: msgspec.json.encode(wrong).decode()[-60:],
)  # fmt: skip
def test_a_malformed_change_is_refused_by_its_name(wrong: Json) -> None:
    with pytest.raises(Invalid) as refused:
        read({"clientLibraryVersion": 0, "scores": [score("s", "S")], **wrong})
    assert isinstance(refused.value.data, dict)
    assert refused.value.data["entityId"] == "bad"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "score",
        "score:",
        "score:x",
        "score:0",
        "score:-1",
        "score:1 ",
        "book:1",
        "score:99999999999999999999",
        "score:1:2",
    ],
)
def test_a_delete_key_that_is_none_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidDeleteKey) as refused:
        read({"clientLibraryVersion": 0, "deletes": [key]})
    assert refused.value.data == {"entityId": key}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"clientLibraryVersion": -1}', b'{"clientLibraryVersion": "0"}',
        b'{"clientLibraryVersion": 0, "scores": {}}', b'{"clientLibraryVersion": 0, "scores": [1]}',
        b'{"clientLibraryVersion": 0, "scores": [{}]}', b'{"clientLibraryVersion": 0, "deletes": [1]}',
        b'{"clientLibraryVersion": 0, "epoch": 5}', b'{"clientLibraryVersion": NaN}', b"\xff",
        b'{"clientLibraryVersion": 0, "scores": [{"entityId": "", "operation": "create"}]}',
        b'{"clientLibraryVersion": 0, "scores": [{"entityId": "a\\u0000", "operation": "create", "data": {"title": "x"}}]}',
        b'{"clientLibraryVersion":0,"scores":' + b"[" * 100_000,
    ],
    ids=lambda body: body.decode("latin-1")[:70],
)  # fmt: skip
def test_a_body_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        wire.checked(wire.decoded(body), FIELDS, 100)


def test_what_comes_behind_the_first_mistake_may_be_worse() -> None:
    for behind in (b"[" * 100_000, b"\xff", b"", b"NaN"):
        with pytest.raises(InvalidChange):
            wire.decoded(b'{"clientLibraryVersion":0,"scores":[{"entityId":5},' + behind)


def test_a_push_of_more_changes_than_allowed_is_413() -> None:
    read({"clientLibraryVersion": 0, "deletes": ["score:1"] * 99, "scores": [score("s")]})
    with pytest.raises(TooLarge):
        read({"clientLibraryVersion": 0, "deletes": ["score:1"] * 99, "scores": [score("s"), score("t")]})


def test_fields_of_a_later_client_are_ignored_and_those_in_data_kept() -> None:
    body = {
        "clientLibraryVersion": 0,
        "colour": 1,
        "scores": [score("s", "S", more={"deep": [1]}) | {"mood": "x"}],
    }
    (change,) = read(body).changes[wire.Kind.SCORE]
    assert change.data == {"title": "s", "more": {"deep": [1]}}
