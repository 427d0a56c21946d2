"""A personal library, as an app uses it: scores, their parts, setlists. All of it local, but for a PDF that is not here."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, UnsetType

from holdfast.client.account import Account
from holdfast.client.contents import Content, Contents
from holdfast.client.errors import NotHere
from holdfast.client.http import Http
from holdfast.client.library import changes, rows
from holdfast.client.library.changes import LIBRARY, OUTBOX, Draft
from holdfast.client.library.files import FileQueue, checked_pdf
from holdfast.client.library.model import SYNCED, Data, Entry, Kind, Part, Score, Setlist
from holdfast.client.library.rows import Shown
from holdfast.client.library.rules import checked_number, checked_optional, checked_title
from holdfast.client.library.sync import LibrarySync
from holdfast.client.news import News, Waiting
from holdfast.client.replica import Replica, View
from holdfast.client.timing import Timing
from holdfast.client.watching import watched

T = TypeVar("T")

ANNOTATIONS = 16 * 1024 * 1024
REMARK = 4_000


def new_id() -> str:
    return str(uuid.uuid4())


class Library:
    def __init__(
        self,
        replica: Replica,
        http: Http,
        account: Account,
        timing: Timing,
        news: News,
        contents: Contents,
    ) -> None:
        self._replica = replica
        self._contents = contents
        self.files = FileQueue(replica, http, contents, news)
        self.sync = LibrarySync(replica, http, account, self.files, timing, news, new_id)

    # -- scores

    async def add_score(self, title: str, *, composer: str | None = None, bpm: int | None = None) -> Score:
        data: Data = {"title": checked_title("title", title)}
        if composer is not None:
            data["composer"] = checked_optional("composer", composer, 200)
        if bpm is not None:
            data["bpm"] = checked_number("bpm", bpm)
        return rows.as_score(await self._add(Draft(new_id(), Kind.SCORE, data)))

    async def change_score(
        self,
        score_id: str,
        *,
        title: str | UnsetType = UNSET,
        composer: str | UnsetType | None = UNSET,
        bpm: int | UnsetType | None = UNSET,
    ) -> Score:
        data: Data = {}
        if title is not UNSET:
            data["title"] = checked_title("title", title)
        if composer is not UNSET:
            data["composer"] = checked_optional("composer", composer, 200)
        if bpm is not UNSET:
            data["bpm"] = checked_number("bpm", bpm)
        return rows.as_score(await self._change(Kind.SCORE, score_id, data))

    async def delete_score(self, score_id: str) -> None:
        """With its parts, and out of every setlist."""
        await self._delete(Kind.SCORE, score_id)

    async def scores(self) -> list[Score]:
        return await self._replica.read(_scores)

    async def score(self, score_id: str) -> Score:
        return rows.as_score(await self._replica.read(lambda view: changes.get(view, Kind.SCORE, score_id)))

    # -- parts

    async def add_part(
        self,
        score_id: str,
        instrument: str,
        *,
        pdf: Path | bytes | None = None,
        order: int | None = None,
        annotations: str | None = None,
    ) -> Part:
        """`pdf` is copied into the replica; it goes up by itself, before the part does."""
        data: Data = {"instrumentName": checked_title("instrument", instrument)}
        if order is not None:
            data["orderIndex"] = checked_number("order", order)
        if annotations is not None:
            data["annotationsJson"] = checked_optional("annotations", annotations, ANNOTATIONS)
        content = None if pdf is None else await self._kept(pdf)
        if content is not None:
            data["pdfHash"] = content.md5
        draft = Draft(
            new_id(),
            Kind.PART,
            data,
            score_id=score_id,
            pdf=content.md5 if content else None,
            pdf_size=content.size if content else 0,
            pdf_name=pdf.name if isinstance(pdf, Path) else instrument,
        )
        part = rows.as_part(await self._add(draft))
        if pdf is not None and not self._contents.has(str(part.pdf)):
            await self._kept(
                pdf
            )  # somebody dropped the same content a moment ago, when nothing referred to it
        return part

    async def change_part(
        self,
        part_id: str,
        *,
        instrument: str | UnsetType = UNSET,
        order: int | UnsetType | None = UNSET,
        annotations: str | UnsetType | None = UNSET,
        pdf: Path | bytes | UnsetType | None = UNSET,
    ) -> Part:
        data: Data = {}
        if instrument is not UNSET:
            data["instrumentName"] = checked_title("instrument", instrument)
        if order is not UNSET:
            data["orderIndex"] = checked_number("order", order)
        if annotations is not UNSET:
            data["annotationsJson"] = checked_optional("annotations", annotations, ANNOTATIONS)
        if pdf is None:
            data["pdfHash"] = None
        elif pdf is not UNSET:
            content = await self._kept(pdf)
            data["pdfHash"] = content.md5
            name = pdf.name if isinstance(pdf, Path) else ""
            await self._replica.write(
                partial(changes.keep_file, md5=content.md5, size=content.size, name=name)
            )
        return rows.as_part(await self._change(Kind.PART, part_id, data))

    async def delete_part(self, part_id: str) -> None:
        await self._delete(Kind.PART, part_id)

    async def parts(self, score_id: str) -> list[Part]:
        return await self._replica.read(lambda view: _parts(view, score_id))

    async def pdf(self, part_id: str) -> Path:
        """The part's PDF; fetched now if it is not here, which is the one read that may need the server."""
        row = await self._replica.read(lambda view: changes.get(view, Kind.PART, part_id))
        if row.pdf is None:
            raise NotHere("this part has no PDF")
        return await self.files.fetched(row.pdf)

    async def parts_with(self, md5: str) -> list[Part]:
        """The parts whose PDF has this content."""
        found = await self._replica.read(lambda view: rows.living(view, Kind.PART, "pdf = ?", md5))
        return [rows.as_part(row) for row in found]

    # -- setlists

    async def add_setlist(self, name: str, *, description: str | None = None) -> Setlist:
        data: Data = {"name": checked_title("name", name)}
        if description is not None:
            data["description"] = checked_optional("description", description, REMARK)
        return rows.as_setlist(await self._add(Draft(new_id(), Kind.SETLIST, data)))

    async def change_setlist(
        self, setlist_id: str, *, name: str | UnsetType = UNSET, description: str | UnsetType | None = UNSET
    ) -> Setlist:
        data: Data = {}
        if name is not UNSET:
            data["name"] = checked_title("name", name)
        if description is not UNSET:
            data["description"] = checked_optional("description", description, REMARK)
        return rows.as_setlist(await self._change(Kind.SETLIST, setlist_id, data))

    async def delete_setlist(self, setlist_id: str) -> None:
        await self._delete(Kind.SETLIST, setlist_id)

    async def setlists(self) -> list[Setlist]:
        return await self._replica.read(
            lambda view: [rows.as_setlist(row) for row in rows.living(view, Kind.SETLIST, "1 ORDER BY key")]
        )

    async def add_to_setlist(self, setlist_id: str, score_id: str, *, order: int | None = None) -> Entry:
        data: Data = {} if order is None else {"orderIndex": checked_number("order", order)}
        draft = Draft(new_id(), Kind.ENTRY, data, score_id=score_id, setlist_id=setlist_id)
        return rows.as_entry(await self._add(draft))

    async def move_entry(self, entry_id: str, order: int | None) -> Entry:
        data: Data = {"orderIndex": checked_number("order", order)}
        return rows.as_entry(await self._change(Kind.ENTRY, entry_id, data))

    async def remove_entry(self, entry_id: str) -> None:
        await self._delete(Kind.ENTRY, entry_id)

    async def entries(self, setlist_id: str) -> list[Entry]:
        """In their order."""
        return await self._replica.read(lambda view: _entries(view, setlist_id))

    # -- what waits

    async def parked(self) -> list[Shown]:
        """Rows that the server refused, each with its `refusal`: change them, `retry` or `discard` them."""
        found = await self._replica.read(
            lambda view: rows.find(view, f"state <> {SYNCED} AND refusal IS NOT NULL ORDER BY kind, id")
        )
        return [rows.shown(row) for row in found]

    async def retry(self, row_id: str) -> None:
        await self._replica.write(partial(changes.retry, identity=row_id))

    async def discard(self, row_id: str) -> None:
        """Gives up a change that has not been synced."""
        if not await self._replica.write(partial(changes.discard, identity=row_id)):
            raise NotHere(f"there is no unsynced change of {row_id} in this replica")

    async def waiting(self) -> Waiting:
        return await self._replica.read(lambda view: Waiting(changes.pending(view), changes.parked(view)))

    async def refresh(self) -> int:
        """Syncs now; how many entities came."""
        return await self.sync.sync(at_once=True)

    # -- live

    async def watch_scores(self) -> AsyncIterator[list[Score]]:
        async for scores in watched(self._replica, (LIBRARY, OUTBOX), _scores):
            yield scores

    async def watch_parts(self, score_id: str) -> AsyncIterator[list[Part]]:
        async for parts in watched(self._replica, (LIBRARY, OUTBOX), lambda view: _parts(view, score_id)):
            yield parts

    async def watch_setlist(self, setlist_id: str) -> AsyncIterator[list[Entry]]:
        async for entries in watched(
            self._replica, (LIBRARY, OUTBOX), lambda view: _entries(view, setlist_id)
        ):
            yield entries

    # -- inside

    async def _add(self, draft: Draft) -> rows.Row:
        return await self._replica.write(partial(changes.add, draft=draft))

    async def _change(self, kind: Kind, identity: str, data: Data) -> rows.Row:
        return await self._replica.write(partial(changes.change, kind=kind, identity=identity, changes=data))

    async def _delete(self, kind: Kind, identity: str) -> None:
        await self._replica.write(partial(changes.delete, kind=kind, identity=identity))

    async def _kept(self, pdf: Path | bytes) -> Content:
        content = await asyncio.to_thread(self._contents.add, pdf)
        checked_pdf(content.head)
        return content


def _scores(view: View) -> list[Score]:
    return [rows.as_score(row) for row in rows.living(view, Kind.SCORE, "1 ORDER BY key")]


def _parts(view: View, score_id: str) -> list[Part]:
    parts = [rows.as_part(row) for row in rows.living(view, Kind.PART, "score_id = ? ORDER BY id", score_id)]
    return sorted(parts, key=lambda part: (part.order is None, part.order or 0, part.instrument))


def _entries(view: View, setlist_id: str) -> list[Entry]:
    entries = [
        rows.as_entry(row) for row in rows.living(view, Kind.ENTRY, "setlist_id = ? ORDER BY id", setlist_id)
    ]
    return sorted(entries, key=lambda entry: (entry.order is None, entry.order or 0))
