"""Writes the deeds of a transaction down: files counted, places in the feeds, news. Called once, and last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast import blobs, feed
from holdfast.feed import Recorded, Turn
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
    _count_files(tx, by, deeds)
    places = dict(_places(tx, desk, by, deeds))
    done: list[S] = []
    for number, deed in enumerate(deeds):
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


def _count_files(tx: Transaction, by: By, deeds: Sequence[Deed[S]]) -> None:
    if not any(deed.files for deed in deeds):
        return
    files: Counter[str] = Counter()
    holder = None
    for deed in deeds:
        files.update(deed.files)
        holder = deed.holder or holder
    blobs.adjust(tx, files, by.now_ms, holder=holder)


def _places(
    tx: Transaction, desk: Desk, by: By, deeds: Sequence[Deed[S]]
) -> Iterator[tuple[int, tuple[int | None, int | None]]]:
    """By the number of a deed: where its result stands for those who stay, and where for those who leave."""
    turns: dict[int, Turn] = {}
    begins: dict[int, int] = {}
    for number, deed in enumerate(deeds):
        if not deed.changes and not deed.close:
            continue
        turn = turns.get(deed.space) or Turn(desk[deed.space])
        begins[number] = len(turn.changes)
        turns[deed.space] = Turn(
            turn.space,
            turn.changes + deed.changes,
            turn.join + deed.join,
            turn.leave + deed.leave,
            turn.close or deed.close,
        )
    recorded = (
        dict(zip(turns, feed.record(tx, by.now_ms, list(turns.values())), strict=True)) if turns else {}
    )
    for number, begin in begins.items():
        yield number, _place(recorded[deeds[number].space], deeds[number], begin)


def _place(recorded: Recorded, deed: Deed[S], begin: int) -> tuple[int | None, int | None]:
    return recorded.versions[begin + deed.root] if deed.changes else None, recorded.left
