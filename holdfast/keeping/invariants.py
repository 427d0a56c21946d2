"""What must be true, room by room: the one list of everything that `check` proves. A new room adds itself here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from holdfast.accounts.check import verify_accounts
from holdfast.blobs import check as blobs
from holdfast.blobs.place import Place
from holdfast.broker import check as broker
from holdfast.chat import check as chat
from holdfast.feed import verify as feed
from holdfast.ledger import check as ledger
from holdfast.library import check as library
from holdfast.store import Snapshot


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong, in one sentence."""

    room: str
    says: str

    def __str__(self) -> str:
        return f"{self.room}: {self.says}"


class Look(msgspec.Struct, frozen=True):
    """What a room may look at."""

    view: Snapshot
    place: Place
    now_ms: int
    grace_ms: int
    deep: bool
    is_served: bool


class Invariant(msgspec.Struct, frozen=True):
    room: str
    proves: str
    problems: Callable[[Look], Iterator[str]]


def _accounts(look: Look) -> Iterator[str]:
    yield from verify_accounts(look.view)


def _feed(look: Look) -> Iterator[str]:
    yield from feed.problems(look.view, ledger.hashes)


def _blobs(look: Look) -> Iterator[str]:
    yield from blobs.verify_blobs(
        look.view,
        look.place,
        now_ms=look.now_ms,
        grace_ms=look.grace_ms,
        deep=look.deep,
        was_collected=look.is_served,
    )


def _references(look: Look) -> Iterator[str]:
    """What the rooms' own rows add up to."""
    references = Counter(ledger.references(look.view))
    references.update(library.references(look.view))
    yield from blobs.verify_references(look.view, references)


def _broker(look: Look) -> Iterator[str]:
    yield from broker.problems(look.view)


def _ledger(look: Look) -> Iterator[str]:
    yield from ledger.problems(look.view)


def _library(look: Look) -> Iterator[str]:
    yield from library.problems(look.view)


def _chat(look: Look) -> Iterator[str]:
    yield from chat.problems(look.view)


INVARIANTS = (
    Invariant("accounts", "users, sessions and refresh tokens", _accounts),
    Invariant("feed", "positions, heads, links and checksums", _feed),
    Invariant("blobs", "files and their rows", _blobs),
    Invariant("blobs", "references to files", _references),
    Invariant("broker", "sessions, queues, messages", _broker),
    Invariant("ledger", "books, bills, images", _ledger),
    Invariant("library", "libraries and their versions", _library),
    Invariant("chat", "conversations, messages, cursors", _chat),
)
