"""The OpenAPI document of this room: every route, with examples that the server itself understands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.http.routes import application
from holdfast.library import examples, wire
from holdfast.library.model import Pushed
from holdfast.library.rules import fields_of
from holdfast.library.wire import PullAnswer
from holdfast.settings import Limits
from tests.library.conftest import Device, House, Json

DOORS = {
    "/library/pull": ["get"], "/library/push": ["post"], "/library/checksum": ["get"], "/file/checkHash": ["get"],
    "/file/upload": ["post"], "/file/claim": ["post"], "/file/download": ["get"], "/file/tus": ["options", "post"],
    "/file/tus/{upload_id}": ["delete", "head", "patch", "post"],
}  # fmt: skip


@pytest.fixture
def document(house: House) -> Json:
    found: Json = application(house.room.routers(), Limits()).openapi_schema.to_schema()
    return found


async def test_every_door_is_described(document: Json) -> None:
    assert {path: sorted(document["paths"][path]) for path in DOORS} == DOORS
    for path in DOORS:
        for operation in document["paths"][path].values():
            assert operation["summary"]


async def test_pull_and_push_have_examples(document: Json) -> None:
    def given(content: Any) -> object:
        (example,) = content["application/json"]["examples"].values()
        return example["value"]

    push, pull = document["paths"]["/library/push"]["post"], document["paths"]["/library/pull"]["get"]
    assert given(push["requestBody"]["content"]) == examples.PUSH
    assert given(push["responses"]["200"]["content"]) == examples.PUSHED
    assert given(push["responses"]["412"]["content"]) == examples.BEHIND
    assert given(pull["responses"]["200"]["content"]) == examples.PULLED


def test_the_examples_are_what_the_wire_has() -> None:
    assert wire.checked(wire.decoded(msgspec.json.encode(examples.PUSH)), fields_of(Limits()), 100).size == 3
    msgspec.convert(examples.PULLED, PullAnswer)
    msgspec.convert(examples.PUSHED, Pushed)


async def test_a_real_answer_has_the_shape_of_the_document(ann: Device) -> None:
    pushed = await ann.push(0, scores=examples.PUSH["scores"])
    assert pushed.keys() == examples.PUSHED.keys()
    assert (await ann.pull()).keys() == examples.PULLED.keys()
    msgspec.convert(await ann.pull(), PullAnswer)
    behind = await ann.refused(412, "version_conflict", 0)
    assert behind.keys() == examples.BEHIND.keys()
