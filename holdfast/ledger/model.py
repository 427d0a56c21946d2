"""Books, bills and images: as they are sent, as they are asked for, as they are kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from holdfast.clock import rfc3339

BOOK, BILL, IMAGE = 1, 2, 3
"""What the feed calls them."""

Kind = Literal["book", "bill", "image"]
NAMES: dict[int, Kind] = {BOOK: "book", BILL: "bill", IMAGE: "image"}
NUMBERS: dict[Kind, int] = {name: number for number, name in NAMES.items()}

Action = Literal["add", "update", "delete"]
IMAGES_AT = "/api/v1/images/"

# what each field looks like, for the OpenAPI document
Xid = Annotated[str, Meta(examples=["9m4e2mr0ui3e8a215n4g"], description="20 digits of base32hex")]
BookName = Annotated[str, Meta(examples=["Our home"])]
BookType = Annotated[str, Meta(examples=["daily"])]
Money = Annotated[
    Decimal,
    Meta(
        description="up to 15 digits, 4 of them decimals; a number or a string, always answered as a number",
        examples=[50.0],
    ),
]
BillType = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, examples=[1])]
Category = Annotated[str, Meta(examples=["lunch"])]
BillTime = Annotated[str, Meta(examples=["2026-02-18"], description="a date, or a moment in RFC 3339")]
Remark = Annotated[str, Meta(examples=["with Li"])]
Banner = Annotated[str, Meta(examples=["https://example.org/home.png"])]
UserId = Annotated[str, Meta(examples=["8321499136000001"])]
Moment = Annotated[str, Meta(examples=["2026-02-18T05:30:00.000Z"])]
Version = Annotated[int, Meta(examples=[1771392600000], description="its place in the asker's feed")]


class Book(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A book, as its members see it."""

    id: Xid = field(name="_id")
    name: BookName
    type: BookType
    crt_user_id: UserId
    members: tuple[UserId, ...]
    crt_time: Moment
    upd_time: Moment
    banner: Banner | None = None
    is_initial: bool = False
    action: Action | None = None
    version: Version | None = None


class Bill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bill, as the members of its book see it."""

    id: Xid = field(name="_id")
    book_id: Xid
    money: Money
    type: BillType
    category: Category
    time: BillTime
    crt_user: UserId
    images: tuple[Xid, ...]
    crt_time: Moment
    upd_time: Moment
    remark: Remark | None = None
    action: Action | None = None
    version: Version | None = None


class Image(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image of a bill, as the members of its book see it."""

    id: Xid = field(name="_id")
    image_id: Xid
    bill_id: Xid
    book_id: Xid
    md5: Annotated[str, Meta(examples=["9e107d9d372bb6826bd81d3542a419d6"])]
    size: Annotated[int, Meta(examples=[48213])]
    mime: Annotated[str, Meta(examples=["image/jpeg"])]
    ext: Annotated[str, Meta(examples=["jpg"])]
    online_path: Annotated[str, Meta(examples=["/api/v1/images/9m4e2mr0ui3e8a215n50"])]
    crt_user: UserId
    upd_time: Moment
    action: Action | None = None
    version: Version | None = None


class Gone(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was deleted, or may not be seen any more."""

    id: Xid = field(name="_id")
    action: Action | None = None
    version: Version | None = None


Entity: TypeAlias = Book | Bill | Image
Shown: TypeAlias = Book | Bill | Image | Gone


# -- what is asked for


class BookFields(Struct, frozen=True, kw_only=True):
    name: BookName
    type: BookType = ""
    banner: Banner | None = None
    is_initial: bool | None = None
    """None is no."""


class NewBook(BookFields, frozen=True, kw_only=True):
    id: Xid | None = field(name="_id", default=None)


class ChangedBook(BookFields, frozen=True, kw_only=True):
    id: Xid | None = field(name="_id", default=None)
    base_upd_time: Moment | None = None


class BillFields(Struct, frozen=True, kw_only=True):
    money: Money
    type: BillType
    category: Category
    time: BillTime
    remark: Remark | None = None


class NewBill(BillFields, frozen=True, kw_only=True):
    id: Xid | None = field(name="_id", default=None)
    book_id: Xid


class ChangedBill(BillFields, frozen=True, kw_only=True):
    id: Xid | None = field(name="_id", default=None)
    book_id: Xid | None = None
    base_upd_time: Moment | None = None


class NewImage(Struct, frozen=True, kw_only=True):
    """An uploaded file that is to belong to a bill."""

    id: str
    bill_id: str
    sha256: str
    md5: str
    size: int
    mime: str
    ext: str
    holder: str
    """Who has claimed the file until now."""


class By(Struct, frozen=True):
    """Who does something, when, and on which device."""

    user_id: int
    now_ms: int
    origin: str | None = None


# -- what is kept; fields in the order of the row


class StoredBook(Struct, frozen=True):
    id: str
    space: int
    creator: int
    name: str
    type: str
    banner: str | None
    is_initial: bool
    crt_ms: int
    upd_ms: int
    deleted_ms: int | None

    def shown(
        self, members: Sequence[int], *, action: Action | None = None, version: int | None = None
    ) -> Book:
        return Book(
            id=self.id,
            name=self.name,
            type=self.type,
            banner=self.banner,
            is_initial=self.is_initial,
            crt_user_id=str(self.creator),
            members=tuple(map(str, members)),
            crt_time=rfc3339(self.crt_ms),
            upd_time=rfc3339(self.upd_ms),
            action=action,
            version=version,
        )


class StoredBill(Struct, frozen=True):
    id: str
    space: int
    creator: int
    money: str
    type: int
    category: str
    time: str
    remark: str | None
    images: str
    crt_ms: int
    upd_ms: int
    deleted_ms: int | None

    def shown(self, book_id: str, *, action: Action | None = None, version: int | None = None) -> Bill:
        return Bill(
            id=self.id,
            book_id=book_id,
            money=Decimal(self.money),
            type=self.type,
            category=self.category,
            time=self.time,
            remark=self.remark,
            crt_user=str(self.creator),
            images=tuple(self.images.split()),
            crt_time=rfc3339(self.crt_ms),
            upd_time=rfc3339(self.upd_ms),
            action=action,
            version=version,
        )


BillRow: TypeAlias = tuple[str, int, int, str, int, str, str, str | None, str, int, int, int | None]
"""A `StoredBill` as it comes."""


def bill_as_json(row: BillRow, book_id: str, action: Action, version: int) -> bytes:
    """What `as_json` makes of the bill as it is shown, at a third of the cost: a page has a hundred of them."""
    id_, _space, creator, money, type_, category, time, remark, images, crt_ms, upd_ms, _deleted_ms = row
    crt_time = rfc3339(crt_ms)
    upd_time = crt_time if upd_ms == crt_ms else rfc3339(upd_ms)
    shown = f'"{images.replace(" ", _BETWEEN)}"' if images else ""
    remarked = f',"remark":{_quoted(remark)}' if remark is not None else ""
    return (
        f'{{"_id":"{id_}","book_id":"{book_id}","money":{money},"type":{type_},"category":{_quoted(category)},'
        f'"time":"{time}","crt_user":"{creator}","images":[{shown}],"crt_time":"{crt_time}",'
        f'"upd_time":"{upd_time}"{remarked},"action":"{action}","version":{version}}}'
    ).encode()


_BETWEEN = '","'


def _quoted(text: str) -> str:
    return _remembered(text) if len(text) <= _SHORT else _encode(text).decode()


_SHORT = 40


@lru_cache(maxsize=1_024)  # few categories, and the same remarks again and again
def _remembered(text: str) -> str:
    return _encode(text).decode()


class StoredImage(Struct, frozen=True):
    id: str
    space: int
    bill: str
    creator: int
    sha256: str
    md5: str
    size: int
    mime: str
    ext: str
    upd_ms: int
    deleted_ms: int | None

    def shown(self, book_id: str, *, action: Action | None = None, version: int | None = None) -> Image:
        return Image(
            id=self.id,
            image_id=self.id,
            bill_id=self.bill,
            book_id=book_id,
            md5=self.md5,
            size=self.size,
            mime=self.mime,
            ext=self.ext,
            online_path=IMAGES_AT + self.id,
            crt_user=str(self.creator),
            upd_time=rfc3339(self.upd_ms),
            action=action,
            version=version,
        )


_encode = msgspec.json.Encoder(decimal_format="number").encode


def as_json(value: object) -> bytes:
    """As it goes to a client: money is a number, with its digits."""
    return _encode(value)
