"""A request with a body, for any number of times: `{id}` in it stands for an id that was never used before."""

from __future__ import annotations

import secrets
from itertools import count

from msgspec import Struct

ID = "{id}"
ID_LENGTH = 20
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_PREFIX = 12


class Post(Struct, frozen=True):
    path: str
    body: str
    method: str = "POST"
    may_be_refused: bool = False
    """The server asks to try some again when it is busy: only those that succeeded count."""

    def times(self, number: int) -> int:
        """How many entities `number` such requests make."""
        return number * max(1, self.body.count(ID))


def fresh_prefix() -> str:
    """Twelve digits of an Xid, ours alone; seven that count and a last 0 make it whole."""
    return "".join(secrets.choice(_DIGITS) for _ in range(_PREFIX))


class Ids:
    """Fresh Xids: 20 digits of base32hex."""

    def __init__(self) -> None:
        self.prefix = fresh_prefix()
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"{self.prefix}{next(self._numbers):07x}0"

    def filled(self, template: str) -> str:
        first, *others = template.split(ID)
        return first + "".join(self() + part for part in others)
