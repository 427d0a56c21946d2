"""Writes the deeds of a transaction down: files counted, places in the feeds, news. Called once, and last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast import blobs, feed
from holdfast.feed import Change, Recorded, Space, Turn
from holdfast.ledger.actions.deed import Deed, Membership, News, Say
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.model import NAMES, By, Shown
from holdfast.store import Transaction

S = TypeVar("S", bound=Shown)


def do(tx: Transaction, by: By, run: Callable[[Transaction, Desk, By], Deed[S]]) -> S:
    """One operation as a transaction of its own; answers what there is now, and its version for the author."""
    desk = Desk(tx)
    (done,) = post(tx, desk, by, [run(tx, desk, by)])
    return done


def post(
    tx: Transaction, desk: Desk, by: By, deeds: Sequence[Deed[S]], message_id: str | None = None
) -> list[S]:
    """What each deed came to, with its version for the author."""
    return post_all(tx, desk, [(by, deed) for deed in deeds], message_id)


def post_all(
    tx: Transaction, desk: Desk, deeds: Sequence[tuple[By, Deed[S]]], message_id: str | None = None
) -> list[S]:
    """The same for deeds of several people."""
    _count_files(tx, deeds)
    places = _places(tx, desk, deeds)
    done: list[S] = []
    for number, (by, deed) in enumerate(deeds):
        here, left = places.get(number, (None, None))
        if number in places:
            mine = left if deed.close or by.user_id in deed.leave else here
        else:
            here = mine = feed.version_of(tx, by.user_id, deed.space, deed.kind, deed.result.id)
        for say in deed.says:
            version = left if say.leaving else here
            if version is not None:
                tx.after(_news(by, deed, say, version, message_id))
        if deed.members is not None:
            tx.after(Membership(deed.book_id, deed.members))
        done.append(replace(deed.result, version=mine))
    return done


def _news(by: By, deed: Deed[Shown], say: Say, version: int, message_id: str | None) -> News:
    return News(
        say.type,
        NAMES[deed.kind],
        deed.book_id,
        say.about,
        say.to,
        say.own,
        version,
        by.user_id,
        by.origin,
        message_id,
        say.again,
    )


def _count_files(tx: Transaction, deeds: Sequence[tuple[By, Deed[S]]]) -> None:
    if not any(deed.files for _, deed in deeds):
        return
    files: Counter[str] = Counter()
    holder = None
    for _, deed in deeds:
        files.update(deed.files)
        holder = deed.holder or holder
    blobs.adjust(tx, files, _now_ms(deeds), holder=holder)


def _now_ms(deeds: Sequence[tuple[By, Deed[S]]]) -> int:
    return max(by.now_ms for by, _ in deeds)


class _Turn:
    """What the deeds do to one space, as it is gathered."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.join: list[int] = []
        self.leave: list[int] = []
        self.close = False

    def add(self, deed: Deed[S]) -> int:
        """Where in the changes the deed's begin."""
        begin = len(self.changes)
        self.changes += deed.changes
        self.join += deed.join
        self.leave += deed.leave
        self.close = self.close or deed.close
        return begin

    def of(self, space: Space) -> Turn:
        return Turn(space, tuple(self.changes), tuple(self.join), tuple(self.leave), self.close)


def _places(
    tx: Transaction, desk: Desk, deeds: Sequence[tuple[By, Deed[S]]]
) -> dict[int, tuple[int | None, int | None]]:
    """By the number of a deed: where its result stands for those who stay, and where for those who leave."""
    turns: defaultdict[int, _Turn] = defaultdict(_Turn)
    begins = {
        number: turns[deed.space].add(deed)
        for number, (_, deed) in enumerate(deeds)
        if deed.changes or deed.close
    }
    if not turns:
        return {}
    written = feed.record(tx, _now_ms(deeds), [turn.of(desk[key]) for key, turn in turns.items()])
    recorded = dict(zip(turns, written, strict=True))
    return {
        number: _place(recorded[deeds[number][1].space], deeds[number][1], begin)
        for number, begin in begins.items()
    }


def _place(recorded: Recorded, deed: Deed[S], begin: int) -> tuple[int | None, int | None]:
    return recorded.versions[begin + deed.root] if deed.changes else None, recorded.left
