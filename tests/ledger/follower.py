"""A client's replica of its feed, and what the server shows without the feed: the two must be equal after quiet."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tests.ledger.house import Person

KINDS = ("book", "bill", "image")
PARENTS = {"bill": ("book", "book_id"), "image": ("bill", "bill_id")}
Row = dict[str, Any]


class Wrong(AssertionError):
    """What no client should ever meet."""


class Follower:
    """One device: it pulls page by page, and applies a page in the order books, bills, images."""

    def __init__(self, person: Person, *, with_epoch: bool = True) -> None:
        self.person = person
        self.since = 0
        self.rows: dict[tuple[str, str], Row] = {}
        self._with_epoch = with_epoch
        self._epoch: str | None = None
        self._seen: set[tuple[str, str]] | None = None
        """While everything is pulled anew: what was shown; the rest goes with the last page."""
        self.resets = 0

    async def page(self, limit: int) -> bool:
        """Pulls one page; answers whether there is more."""
        query: dict[str, Any] = {"limit": limit}
        if self._with_epoch and self._epoch is not None:
            query["epoch"] = self._epoch
        page = await self.person.pulls(self.since, **query)
        if page.get("reset"):
            self.resets += 1
            self._seen = set()
        for kind in KINDS:
            for item in page[f"{kind}s"]:
                self._apply(kind, item)
        if not page["next_since"] >= (0 if page.get("reset") else self.since):
            raise Wrong(f"next_since went back from {self.since} to {page['next_since']}")
        if page["next_since"] > page["server_time"]:
            raise Wrong("next_since lies beyond the head")
        self.since, self._epoch = page["next_since"], page["epoch"]
        if not page["has_more"] and self._seen is not None:
            self.rows = {key: row for key, row in self.rows.items() if key in self._seen}
            self._seen = None
        more: bool = page["has_more"]
        return more

    async def catch_up(self, limit: int = 100) -> None:
        for _ in range(100_000):
            if not await self.page(limit):
                return
        raise Wrong("the feed does not end")

    def _apply(self, kind: str, item: Row) -> None:
        key = kind, item["_id"]
        if item["action"] == "delete":
            if set(item) != {"_id", "action", "version"}:
                raise Wrong(f"a deletion tells more than it should: {item}")
            self.rows.pop(key, None)
            return
        if kind in PARENTS:
            parent_kind, field = PARENTS[kind]
            if (parent_kind, item[field]) not in self.rows:
                raise Wrong(f"{kind} {item['_id']} came before its {parent_kind} {item[field]}")
        if self._seen is not None:
            self._seen.add(key)
        self.rows[key] = {name: value for name, value in item.items() if name not in ("action", "version")}

    def checksum(self) -> dict[str, Any]:
        """Over my own rows."""
        total = 0
        for (kind, id_), row in self.rows.items():
            revision = f"{kind}\n{id_}\n{row['upd_time']}".encode()
            total += int.from_bytes(sha256(revision).digest()[:8], "big")
        return {"count": len(self.rows), "digest": f"{total % 2**64:016x}", "version": self.since}


async def shown(person: Person, limit: int = 100) -> dict[tuple[str, str], Row]:
    """Books and bills as the server lists them to him now: this way does not use the feed."""
    found: dict[tuple[str, str], Row] = {}
    for book in await person.ok("GET", "/books/"):
        found["book", book["_id"]] = book
        query = {"book_id": book["_id"], "limit": limit}
        while True:
            page = await person.ok("GET", "/bills/", params=query)
            found.update({("bill", bill["_id"]): bill for bill in page["bills"]})
            if not page["has_more"]:
                break
            query["cursor"] = page["next_cursor"]
    return found


async def agrees(follower: Follower) -> None:
    """After quiet: the replica is what the server shows, with each bill's images, and adds up to the same."""
    there = await shown(follower.person)
    mine = {key: row for key, row in follower.rows.items() if key[0] != "image"}
    if mine != there:
        raise Wrong(
            f"{follower.person.name}: missing {there.keys() - mine.keys()}, extra {mine.keys() - there.keys()},"
            f" stale {[key for key in there.keys() & mine.keys() if there[key] != mine[key]]}"
        )
    listed = {
        (image, bill["_id"])
        for (kind, _), bill in there.items()
        if kind == "bill"
        for image in bill["images"]
    }
    held = {(id_, row["bill_id"]) for (kind, id_), row in follower.rows.items() if kind == "image"}
    if listed != held:
        raise Wrong(f"{follower.person.name}: images {held} instead of {listed}")
    said = await follower.person.checksum()
    if said != follower.checksum():
        raise Wrong(f"{follower.person.name}: {follower.checksum()} instead of {said}")
