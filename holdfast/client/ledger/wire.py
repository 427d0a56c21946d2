"""The ledger's words on the wire, as a client reads and writes them. Unknown fields are ignored."""

from __future__ import annotations

from decimal import Decimal
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field

T = TypeVar("T")


class WireBook(Struct):
    """A deletion carries only its id, action and version: everything else has a default."""

    id: str = field(name="_id")
    version: int = 0
    action: str = "update"
    name: str = ""
    type: str = ""
    banner: str | None = None
    crt_user_id: str = ""
    members: list[str] = []
    is_initial: bool | None = None
    crt_time: str = ""
    upd_time: str = ""


class WireBill(Struct):
    id: str = field(name="_id")
    version: int = 0
    action: str = "update"
    book_id: str = ""
    money: Decimal = Decimal(0)
    type: int = 0
    category: str = ""
    time: str = ""
    remark: str | None = None
    crt_user: str = ""
    crt_time: str = ""
    upd_time: str = ""


class WireImage(Struct):
    id: str = field(name="_id")
    version: int = 0
    action: str = "update"
    bill_id: str = ""
    book_id: str = ""
    md5: str = ""
    size: int = 0
    mime: str = ""
    ext: str = ""
    online_path: str = ""
    crt_user: str = ""
    upd_time: str = ""


Entity = WireBook | WireBill | WireImage


class Page(Struct):
    """One page of `/sync/changes`."""

    server_time: int
    next_since: int
    has_more: bool
    epoch: str = ""
    reset: bool = False
    books: list[WireBook] = []
    bills: list[WireBill] = []
    images: list[WireImage] = []

    def __len__(self) -> int:
        return len(self.books) + len(self.bills) + len(self.images)


class Envelope(Struct, Generic[T]):
    data: T


class Outcome(Struct):
    """What became of one operation of a batch."""

    status: int
    code: int = 0
    reason: str | None = None
    message: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


class Checksum(Struct):
    count: int
    digest: str
    version: int


class Message(Struct):
    """A notification, a forwarded change or an acknowledgement, over MQTT. `content` is JSON in a string."""

    type: str
    content: str
    timestamp: int = 0
    id: str = ""
    book_id: str = ""


class Ack(Struct):
    """What the content of an acknowledgement says."""

    ok: bool
    id: str = field(name="_id", default="")
    version: int = 0
    code: int = 0
    reason: str = ""
    message: str = ""


_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> bytes:
    """JSON with the digits of decimal numbers as they are."""
    return _encoder.encode(value)


PAGE = msgspec.json.Decoder(Envelope[Page])
OUTCOMES = msgspec.json.Decoder(Envelope[list[Outcome]])
_BOOK = msgspec.json.Decoder(WireBook)
_BILL = msgspec.json.Decoder(WireBill)
_IMAGE = msgspec.json.Decoder(WireImage)
MESSAGE = msgspec.json.Decoder(Message)
ACK = msgspec.json.Decoder(Ack)


def decode(kind: str, data: bytes | str | msgspec.Raw) -> Entity:
    """An entity by the name of its kind."""
    match kind:
        case "book":
            return _BOOK.decode(data)
        case "bill":
            return _BILL.decode(data)
        case _:
            return _IMAGE.decode(data)
