"""The queue of PDFs: each goes up before the push that refers to it, by content, and continues where it was cut.

not asked → checkHash ─ exists ─────────────────────────────► there
                      ├ claimable ─ claim, proof ───────────► there
                      └ unknown ─ small: one request ───────► there
                                  large: tus, in pieces ────► there
                                         └ cut: HEAD says where it goes on, also after a restart
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.client.contents import Contents
from holdfast.client.errors import InvalidValue, Refused
from holdfast.client.http import Http
from holdfast.client.ledger.model import Refusal
from holdfast.client.library.changes import FILES, LIBRARY, OUTBOX
from holdfast.client.library.model import DELETED, SYNCED
from holdfast.client.library.wire import CHECKED, CLAIM, Claim
from holdfast.client.news import News, Parked, Transfer
from holdfast.client.replica import Replica, Transaction, View

SMALL = 1024 * 1024
PIECE = 4 * 1024 * 1024
READ = 256 * 1024
TUS = {"Tus-Resumable": "1.0.0"}
PDF = b"%PDF-"
GONE = (403, 404, 410)


class Waiting(Struct, frozen=True):
    """A content that a pending row refers to and that the server has not got."""

    md5: str
    size: int
    name: str
    upload_url: str | None


class UploadOver(Exception):
    """The server does not know this upload any more: it is complete and an answer was lost, or it was given up. What
    became of the file is asked from the beginning."""


class FileQueue:
    def __init__(self, replica: Replica, http: Http, contents: Contents, news: News) -> None:
        self._replica = replica
        self._http = http
        self._contents = contents
        self._news = news

    async def waiting(self) -> int:
        """Bytes that are still to go up."""
        return await self._replica.read(_bytes_waiting)

    # -- up

    async def upload_all(self, *, at_once: bool = False) -> None:
        """Files that can never go are parked with the rows that refer to them, and block nobody."""
        while (waiting := await self._replica.read(_next_waiting)) is not None:
            try:
                await self._upload(waiting, at_once=at_once)
            except Refused as refused:
                if refused.status == 401:
                    raise
                await self._refused(waiting, Refusal(refused.code, refused.reason, refused.message))
            except UploadOver:
                await self._replica.write(partial(_goes_on_at, md5=waiting.md5, place=None))

    async def _upload(self, waiting: Waiting, *, at_once: bool) -> None:
        if not self._contents.has(waiting.md5):
            await self._refused(waiting, Refusal(0, "file_gone", "the file is not in the replica any more"))
            return
        if waiting.upload_url is None:
            checked = await self._http.ask(
                "GET", "/file/checkHash", query={"hash": waiting.md5}, at_once=at_once
            )
            known = CHECKED.decode(checked.content)
            if known.exists or (known.claimable and await self._claimed(waiting, at_once=at_once)):
                await self._replica.write(partial(_uploaded, md5=waiting.md5))
                return
        if waiting.size <= SMALL and waiting.upload_url is None:
            body = await asyncio.to_thread(self._contents.path(waiting.md5).read_bytes)
            await self._http.ask(
                "POST",
                "/file/upload",
                body=body,
                headers={"Content-Type": "application/pdf"},
                at_once=at_once,
            )
            self._tell(waiting, waiting.size)
        else:
            await self._resumed(waiting, at_once=at_once)
        await self._replica.write(partial(_uploaded, md5=waiting.md5))

    async def _claimed(self, waiting: Waiting, *, at_once: bool) -> bool:
        """Shows that we have the bytes that the server asks for; False: it wants the file all the same."""
        try:
            asked = await self._http.ask(
                "POST", "/file/claim", body=msgspec.json.encode({"hash": waiting.md5}), at_once=at_once
            )
            challenge = CLAIM.decode(asked.content)
            proof = await asyncio.to_thread(_proof, self._contents.path(waiting.md5), challenge)
            answer = {"claimId": challenge.claim_id, "sha256": proof}
            await self._http.ask("POST", "/file/claim", body=msgspec.json.encode(answer), at_once=at_once)
        except Refused as refused:
            if refused.status == 401:
                raise
            return False
        self._tell(waiting, waiting.size)
        return True

    async def _resumed(self, waiting: Waiting, *, at_once: bool) -> None:
        place = waiting.upload_url
        offset = None if place is None else await self._standing(place, at_once=at_once)
        if place is None or offset is None:
            place = await self._begun(waiting, at_once=at_once)
            offset = 0
        while offset < waiting.size:
            self._tell(waiting, offset)
            try:
                offset = await self._sent_piece(waiting, place, offset, at_once=at_once)
            except Refused as refused:
                if refused.reason != "wrong_offset" and refused.status not in GONE:
                    raise
                # a piece arrived whose answer did not
                standing = await self._standing(place, at_once=at_once)
                if standing is None:
                    raise UploadOver from None
                offset = standing
        self._tell(waiting, waiting.size)

    async def _sent_piece(self, waiting: Waiting, place: str, offset: int, *, at_once: bool) -> int:
        """Where the upload stands after it."""
        length = min(PIECE, waiting.size - offset)
        answer = await self._http.ask(
            "PATCH",
            place,
            body=partial(_read, self._contents.path(waiting.md5), offset, length),
            headers={
                **TUS,
                "Upload-Offset": str(offset),
                "Content-Type": "application/offset+octet-stream",
                "Content-Length": str(length),
            },
            at_once=at_once,
        )
        return int(answer.headers["Upload-Offset"])

    async def _standing(self, place: str, *, at_once: bool) -> int | None:
        """Where an upload that was cut goes on; None: it is not there any more."""
        try:
            answer = await self._http.ask("HEAD", place, headers=TUS, at_once=at_once)
        except Refused as refused:
            if refused.status in GONE:
                return None
            raise
        return int(answer.headers["Upload-Offset"])

    async def _begun(self, waiting: Waiting, *, at_once: bool) -> str:
        headers = {**TUS, "Upload-Length": str(waiting.size)}
        answer = await self._http.ask("POST", "/file/tus", headers=headers, at_once=at_once)
        place: str = answer.headers["Location"]
        await self._replica.write(partial(_goes_on_at, md5=waiting.md5, place=place))
        return place

    async def _refused(self, waiting: Waiting, refusal: Refusal) -> None:
        parked = await self._replica.write(partial(_refused_file, md5=waiting.md5, refusal=refusal))
        for identity in parked:
            self._news.tell(Parked("library", identity, refusal.reason, refusal.message))

    def _tell(self, waiting: Waiting, done: int) -> None:
        self._news.tell(Transfer(waiting.name or waiting.md5, done, waiting.size, "up"))

    # -- down

    async def fetched(self, md5: str) -> Path:
        """Where a content is; fetched first if it is not here."""
        if self._contents.has(md5):
            return self._contents.path(md5)
        async with self._http.stream("/file/download", query={"hash": md5}) as answer:
            return await self._contents.receive(md5, answer.aiter_bytes())

    # -- counting

    async def drop_unreferred(self) -> None:
        """A content goes when no row here refers to it any more, whoever's it was: images count too."""
        held = await asyncio.to_thread(self._contents.held)
        for md5 in await self._replica.write(partial(_unreferred, held=held)):
            self._contents.drop(md5)


def checked_pdf(head: bytes) -> None:
    if not head.startswith(PDF):
        raise InvalidValue("pdf", "this is not a PDF")


async def _read(path: Path, offset: int, length: int) -> AsyncIterator[bytes]:
    """A part of a file, in pieces, never whole in memory."""
    with path.open("rb") as file:
        file.seek(offset)
        while length:
            piece = await asyncio.to_thread(file.read, min(READ, length))
            if not piece:
                return
            length -= len(piece)
            yield piece


def _proof(path: Path, challenge: Claim) -> str:
    digest = sha256(challenge.nonce.encode())
    with path.open("rb") as file:
        file.seek(challenge.offset)
        digest.update(file.read(challenge.length))
    return digest.hexdigest()


def _bytes_waiting(view: View) -> int:
    return view.number(
        "SELECT coalesce(sum(size), 0) FROM library_file WHERE uploaded = 0 AND refusal IS NULL"
    )


def _next_waiting(view: View) -> Waiting | None:
    found = view.row(
        "SELECT md5, size, name, upload_url FROM library_file f WHERE uploaded = 0 AND refusal IS NULL AND EXISTS"
        f" (SELECT 1 FROM library_row r WHERE r.pdf = f.md5 AND r.state NOT IN ({SYNCED}, {DELETED})"
        " AND r.refusal IS NULL) ORDER BY size LIMIT 1"
    )
    return Waiting(*found) if found else None  # type: ignore[arg-type]


def _uploaded(tx: Transaction, md5: str) -> None:
    tx.execute("UPDATE library_file SET uploaded = 1, upload_url = NULL, refusal = NULL WHERE md5 = ?", md5)
    tx.changed(OUTBOX, FILES)


def _goes_on_at(tx: Transaction, md5: str, place: str | None) -> None:
    tx.execute("UPDATE library_file SET upload_url = ? WHERE md5 = ?", place, md5)


def _refused_file(tx: Transaction, md5: str, refusal: Refusal) -> list[str]:
    said = msgspec.json.encode(refusal).decode()
    tx.execute("UPDATE library_file SET refusal = ?, upload_url = NULL WHERE md5 = ?", said, md5)
    which = f"pdf = ? AND state NOT IN ({SYNCED}, {DELETED}) AND refusal IS NULL"
    parked = [str(row[0]) for row in tx.rows(f"SELECT id FROM library_row WHERE {which}", md5)]
    tx.execute(f"UPDATE library_row SET refusal = ? WHERE {which}", said, md5)
    tx.changed(LIBRARY, FILES)
    return parked


def _unreferred(tx: Transaction, held: list[str]) -> list[str]:
    """Forgets what nobody refers to. A write, so that it takes its turn among those that add references."""
    tx.execute(
        f"DELETE FROM library_file WHERE md5 NOT IN (SELECT pdf FROM library_row WHERE pdf IS NOT NULL"
        f" AND state <> {DELETED})"
    )
    return [
        md5
        for md5 in held
        if not tx.value(f"SELECT 1 FROM library_row WHERE pdf = ? AND state <> {DELETED}", md5)
        and not tx.value("SELECT 1 FROM image WHERE md5 = ? AND deleted = 0", md5)
    ]
