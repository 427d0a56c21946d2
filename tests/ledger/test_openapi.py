"""The reference: every endpoint of the ledger is in it, with examples that the server would take and give."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.ledger.http import examples
from holdfast.ledger.http.sync import Operations
from holdfast.ledger.model import ChangedBill, ChangedBook, NewBill, NewBook
from holdfast.ledger.rules import check_bill, check_book
from holdfast.settings import Limits
from tests.ledger.house import House

ENDPOINTS = """
POST /books · GET /books · PUT /books/{book_id} · DELETE /books/{book_id} · POST /books/{book_id}/share
DELETE /books/{book_id}/share · POST /books/join · DELETE /books/{book_id}/members/{member_id}
POST /bills · PUT /bills/{bill_id} · DELETE /bills/{bill_id} · GET /bills
POST /images/upload · POST /image/upload · GET /images/{image_id} · DELETE /images/{image_id}
POST /sync/batch · GET /sync/changes · GET /sync/checksum
"""


async def test_every_endpoint_is_described_with_examples(quick_home: House) -> None:
    document = (await quick_home.http.get("/openapi/json")).json()
    found = {
        f"{method.upper()} {path.removeprefix('/api/v1')}": operation
        for path, item in document["paths"].items()
        if path.startswith("/api/v1/")
        for method, operation in item.items()
        if "ledger" in operation.get("tags", [])
    }
    assert set(found) == set(ENDPOINTS.replace("\n", " · ").strip(" ·").split(" · "))
    for name, operation in found.items():
        assert operation["summary"], name
        assert operation["security"] == [{"token": []}], name
        for part in contents(operation):
            if "multipart/form-data" in part:
                assert part["multipart/form-data"]["schema"]["required"] == ["file", "bill_id"]
                continue
            for media in part.values():
                assert media.get("examples"), name
    assert (await quick_home.http.get("/docs")).status_code == 200


def contents(operation: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [operation["requestBody"]["content"]] if "requestBody" in operation else []
    parts += [
        response["content"]
        for status, response in operation["responses"].items()
        if status in ("200", "201") and response.get("content")
    ]
    return parts


@pytest.mark.parametrize(
    ("example", "kind"),
    [
        (examples.NEW_BOOK, NewBook),
        (examples.CHANGED_BOOK, ChangedBook),
        (examples.NEW_BILL, NewBill),
        (examples.CHANGED_BILL, ChangedBill),
        (examples.BATCH, Operations),
    ],
)
def test_what_the_examples_send_is_taken(example: object, kind: type) -> None:
    taken = msgspec.json.decode(msgspec.json.encode(example), type=kind)
    if isinstance(taken, NewBook | ChangedBook):
        check_book(taken, Limits())
    if isinstance(taken, NewBill | ChangedBill):
        check_bill(taken, Limits())
