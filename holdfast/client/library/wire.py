"""The library's words on the wire, as a client reads and writes them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.client.library.model import Data


class Item(Struct, rename="camel"):
    """One entity of a pull."""

    entity_type: str
    server_id: int
    version: int
    data: Data
    updated_at: str = ""
    is_deleted: bool = False


class Pull(Struct, rename="camel"):
    library_version: int
    is_full_sync: bool = False
    epoch: str = ""
    has_more: bool = False
    next_since: int = 0
    scores: list[Item] = []
    instrument_scores: list[Item] = []
    setlists: list[Item] = []
    setlist_scores: list[Item] = []

    def shelves(self) -> tuple[list[Item], ...]:
        """By kind, parents before children."""
        return (self.scores, self.instrument_scores, self.setlists, self.setlist_scores)

    def __len__(self) -> int:
        return sum(map(len, self.shelves()))


class Change(Struct, rename="camel", omit_defaults=True):
    entity_type: str
    entity_id: str
    operation: str
    version: int
    data: Data | UnsetType = UNSET
    server_id: int | UnsetType = UNSET


class PushBody(Struct, rename="camel"):
    client_library_version: int
    epoch: str | UnsetType
    scores: list[Change]
    instrument_scores: list[Change]
    setlists: list[Change]
    setlist_scores: list[Change]
    deletes: list[str]


class Pushed(Struct, rename="camel"):
    new_library_version: int
    accepted: list[str] = []
    server_id_mapping: dict[str, int] = {}


class Checked(Struct):
    exists: bool
    claimable: bool = False


class Claim(Struct, rename="camel"):
    claim_id: str = ""
    offset: int = 0
    length: int = 0
    nonce: str = ""


PULL = msgspec.json.Decoder(Pull)
PUSHED = msgspec.json.Decoder(Pushed)
CHECKED = msgspec.json.Decoder(Checked)
CLAIM = msgspec.json.Decoder(Claim)
