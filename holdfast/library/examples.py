"""The examples of this room in the OpenAPI document. docs/library.md walks through the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example, Operation, RequestBody

from holdfast.http.envelope import LibraryFailure
from holdfast.library.model import Pushed
from holdfast.library.wire import PullAnswer

EPOCH = "4f1c2a9d7be03511"
PDF = "9e107d9d372bb6826bd81d3542a419d6"
SCORE_UUID = "7d6f3a52-3f0a-4c57-9d0b-0d7b7a0f5f11"
PART_UUID = "0b6c8c5e-58c4-4a0e-8a55-3c1d3f6f2b90"

PUSH: Mapping[str, object] = {
    "clientLibraryVersion": 100,
    "epoch": EPOCH,
    "scores": [
        {
            "entityType": "score",
            "entityId": SCORE_UUID,
            "operation": "create",
            "data": {"title": "Nocturne", "composer": "Chopin", "bpm": 66},
        }
    ],
    "instrumentScores": [
        {
            "entityType": "instrumentScore",
            "entityId": PART_UUID,
            "operation": "create",
            "data": {"scoreId": SCORE_UUID, "instrumentName": "Piano", "pdfHash": PDF, "orderIndex": 0},
        }
    ],
    "deletes": ["score:123"],
}

PUSHED: Mapping[str, object] = {
    "newLibraryVersion": 105,
    "accepted": [SCORE_UUID, PART_UUID],
    "serverIdMapping": {SCORE_UUID: 311, PART_UUID: 312},
    "success": True,
    "conflict": False,
}

PULLED: Mapping[str, object] = {
    "libraryVersion": 105,
    "isFullSync": False,
    "epoch": EPOCH,
    "hasMore": False,
    "nextSince": 105,
    "scores": [
        {
            "entityType": "score",
            "serverId": 311,
            "version": 101,
            "data": {"title": "Nocturne", "composer": "Chopin", "bpm": 66},
            "updatedAt": "2026-02-18T06:00:00.000Z",
            "isDeleted": False,
        },
        {
            "entityType": "score",
            "serverId": 123,
            "version": 103,
            "data": {"title": "Etude"},
            "updatedAt": "2026-02-18T06:00:00.000Z",
            "isDeleted": True,
        },
    ],
    "instrumentScores": [],
    "setlists": [],
    "setlistScores": [],
    "deleted": ["score:123"],
}

BEHIND: Mapping[str, object] = {
    "success": False,
    "conflict": True,
    "errorMessage": "Another device was first: pull, then push again.",
    "code": 41200,
    "reason": "version_conflict",
    "serverLibraryVersion": 107,
}

TAKEN: Mapping[str, object] = {
    "success": False,
    "conflict": False,
    "errorMessage": f"{SCORE_UUID}: another score has this key; nothing was changed",
    "code": 40920,
    "reason": "key_taken",
    "entityId": SCORE_UUID,
}

ANSWERS_OF_PUSH = {
    200: ResponseSpec(Pushed, description="All of it was taken", examples=[Example(value=PUSHED)]),
    409: ResponseSpec(
        LibraryFailure,
        description="A key that another one has, a file that is not here; nothing was changed",
        examples=[Example(value=TAKEN)],
    ),
    412: ResponseSpec(
        LibraryFailure,
        description="Another device was first: pull, then push again. With `reset`: pull everything (since=0) first",
        examples=[Example(value=BEHIND)],
    ),
}
ANSWERS_OF_PULL = {
    200: ResponseSpec(PullAnswer, description="What is newer than `since`", examples=[Example(value=PULLED)])
}


@dataclass
class PushOperation(Operation):
    """With an example of its body, for which Litestar has no place."""

    def __post_init__(self) -> None:
        if isinstance(self.request_body, RequestBody):
            for media in self.request_body.content.values():
                media.examples = {"push": Example(value=dict(PUSH))}
