"""An example for every endpoint of the ledger: what is sent, what is answered. Made of the real types, so that a field
which is renamed is renamed here too."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import msgspec
from litestar.openapi.spec import (
    Example,
    OpenAPIFormat,
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    RequestBody,
    Schema,
)

from holdfast.feed import Checksum
from holdfast.http.envelope import Answer
from holdfast.ledger.listing import BillPage
from holdfast.ledger.model import Bill, Book, Gone, Image, as_json
from holdfast.ledger.pull import Changes

BOOK_ID, BILL_ID, IMAGE_ID = "9m4e2mr0ui3e8a215n4g", "9m4e2mr0ui3e8a215n50", "9m4e2mr0ui3e8a215n5g"
ANN, BOB = "8321499136000001", "8321499136000002"
MADE, CHANGED = "2026-02-18T05:30:00.000Z", "2026-02-18T06:00:00.120Z"
TS = 1_771_392_600_120
VERSION = 1_771_392_600_118

BOOK = Book(
    id=BOOK_ID, name="Our home", type="daily", crt_user_id=ANN, members=(ANN, BOB), crt_time=MADE,
    upd_time=CHANGED, version=VERSION,
)  # fmt: skip
BILL = Bill(
    id=BILL_ID, book_id=BOOK_ID, money=Decimal("50.00"), type=1, category="lunch", time="2026-02-18", crt_user=BOB,
    images=(IMAGE_ID,), crt_time=MADE, upd_time=CHANGED, remark="with Li", version=VERSION,
)  # fmt: skip
IMAGE = Image(
    id=IMAGE_ID, image_id=IMAGE_ID, bill_id=BILL_ID, book_id=BOOK_ID, md5="9e107d9d372bb6826bd81d3542a419d6",
    size=48_213, mime="image/jpeg", ext="jpg", online_path=f"/api/v1/images/{IMAGE_ID}", crt_user=BOB,
    upd_time=CHANGED, version=VERSION,
)  # fmt: skip
GONE = Gone(id=BILL_ID, version=VERSION)
PAGE = Changes(
    books=[msgspec.structs.replace(BOOK, action="update")],
    bills=[msgspec.structs.replace(BILL, action="add", version=VERSION + 1)],
    images=[],
    server_time=VERSION + 1,
    has_more=False,
    next_since=VERSION + 1,
    epoch="669cfa2fd56e953b.1771392600120",
)
CHECKSUM = Checksum(3, "ca05f60416c88ce0", VERSION + 1)
LISTED = BillPage([msgspec.structs.replace(BILL, version=None)], False, None)

NEW_BOOK = {"_id": BOOK_ID, "name": "Our home", "type": "daily"}
CHANGED_BOOK = {"name": "Our new home", "type": "daily", "base_upd_time": CHANGED}
NEW_BILL = {
    "_id": BILL_ID, "book_id": BOOK_ID, "money": 50.5, "type": 1, "category": "lunch", "time": "2026-02-18",
    "remark": "with Li",
}  # fmt: skip
CHANGED_BILL = {
    "money": "55.25", "type": 1, "category": "lunch", "time": "2026-02-18T12:30:00+08:00", "base_upd_time": CHANGED,
}  # fmt: skip
CODE = "7KQ2M9XB"
BATCH = {
    "operations": [
        {"op": "create", "entity": "bill", "id": BILL_ID, "data": {**NEW_BILL, "_id": BILL_ID}},
        {"op": "delete", "entity": "image", "id": IMAGE_ID},
    ]
}
RESULTS = [
    {"status": 201, "code": 0, "reason": None, "data": BILL},
    {"status": 404, "code": 40410, "reason": "deleted", "data": None},
]


def shown(*, sent: object = None, answered: object = None, form: bool = False) -> type[Operation]:
    """The kind of operation that shows what is sent and answered; with `form`, that it takes an upload."""

    @dataclass
    class _Shown(Operation):
        def __post_init__(self) -> None:
            if form:
                self.request_body = RequestBody(
                    {"multipart/form-data": OpenAPIMediaType(FORM)}, required=True
                )
            elif sent is not None and isinstance(self.request_body, RequestBody):
                _show(self.request_body.content, sent)
            for status, response in (self.responses or {}).items():
                if status in ("200", "201") and isinstance(response, OpenAPIResponse) and response.content:
                    _show(response.content, Answer(data=answered, ts=TS))

    return _Shown


def _show(content: dict[str, OpenAPIMediaType], value: object) -> None:
    for media in content.values():
        media.examples = {"example": Example(value=msgspec.json.decode(as_json(value)))}


FORM = Schema(
    type=OpenAPIType.OBJECT,
    required=["file", "bill_id"],
    properties={
        "bill_id": Schema(type=OpenAPIType.STRING, description="best before the file", examples=[BILL_ID]),
        "_id": Schema(type=OpenAPIType.STRING, description="20 digits of base32hex", examples=[IMAGE_ID]),
        "md5": Schema(
            type=OpenAPIType.STRING, description="refused when the file has another", examples=[IMAGE.md5]
        ),
        "file": Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY),
    },
)
