"""What must be true of blobs, for `holdfast check`: rows against rows, rows against files, files against hashes.

With a server running beside it, call it inside `Files.hold` with a view taken inside: then nothing that the view
refers to can go while it is looked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Blob, Kept, hash_in_name
from holdfast.blobs.place import Place
from holdfast.errors import FileGone
from holdfast.store import Snapshot

PAGE = 1000
SLACK_MS = 3_600_000  # collection may be this late before it counts as missing


class Problem(msgspec.Struct, frozen=True):
    what: str
    subject: str
    says: str

    def __str__(self) -> str:
        return f"{self.what}: {self.subject}: {self.says}"


def verify(
    view: Snapshot, place: Place, *, now_ms: int, grace_ms: int, deep: bool = False
) -> Iterator[Problem]:
    """Every blob has its file (with `deep`: with its content), and no file is here for nothing."""
    names = set()
    for blob in _blobs(view):
        names.add(blob.name)
        yield from _kept_too_long(view, blob, now_ms)
    pieces = dict(_pieces(view))
    here = {kept.name: kept for kept in place.listing()}
    for blob in _blobs(view):
        yield from _file(place, here.get(blob.name), blob, deep=deep)
    for name, size in pieces.items():
        if name not in here or here[name].size != size:
            yield Problem("piece_lost", name, "a piece of an unfinished upload is missing or cut")
    for name in here.keys() - names - pieces.keys():
        if here[name].modified_ms < now_ms - grace_ms:
            yield Problem("file_unknown", name, "nothing refers to this file, and its grace is over")


def verify_references(view: Snapshot, references: Mapping[str, int]) -> Iterator[Problem]:
    """`references` is what the rooms' own rows add up to: SHA-256 → how many rows name it."""
    counted = {blob.sha256: blob.refs for blob in _blobs(view)}
    for sha256, there in references.items():
        if sha256 not in counted:
            yield Problem("blob_missing", sha256, f"{there} rows refer to a blob that is not there")
    for sha256, refs in counted.items():
        if refs != references.get(sha256, 0):
            says = f"counted {refs} references, there are {references.get(sha256, 0)}"
            yield Problem("count_wrong", sha256, says)


def _kept_too_long(view: Snapshot, blob: Blob, now_ms: int) -> Iterator[Problem]:
    if blob.orphan_since_ms is None:
        return
    until = max(blob.orphan_since_ms, view.row(sql.CLAIMED_UNTIL, sha256=blob.sha256) or 0)
    if until < now_ms - SLACK_MS:
        yield Problem("not_collected", blob.sha256, "nobody keeps this blob, and it is still here")


def _file(place: Place, kept: Kept | None, blob: Blob, *, deep: bool) -> Iterator[Problem]:
    if hash_in_name(blob.name) != blob.sha256:
        yield Problem("name_wrong", blob.sha256, f"its file is named {blob.name}")
    if kept is None:
        yield Problem(
            "file_missing", blob.sha256, f"its file {blob.name} is missing ({blob.refs} references)"
        )
    elif kept.size != blob.size:
        yield Problem("file_cut", blob.sha256, f"its file has {kept.size} bytes instead of {blob.size}")
    elif deep:
        yield from _content(place, blob)


def _content(place: Place, blob: Blob) -> Iterator[Problem]:
    hashed = hashlib.sha256()
    try:
        content = place.open(blob.name)
        try:
            for piece in content.read(0, blob.size):
                hashed.update(piece)
        finally:
            content.close()
    except FileGone:
        yield Problem(
            "file_missing", blob.sha256, f"its file {blob.name} is missing ({blob.refs} references)"
        )
        return
    if hashed.hexdigest() != blob.sha256:
        yield Problem("content_wrong", blob.sha256, f"the content of {blob.name} has another hash")


def _blobs(view: Snapshot) -> Iterator[Blob]:
    above = ""
    while page := view.rows(sql.PAGE, above=above, limit=PAGE):
        yield from page
        above = page[-1].sha256


def _pieces(view: Snapshot) -> Iterator[tuple[str, int]]:
    above = ""
    while page := view.rows(sql.PIECE_PAGE, above=above, limit=PAGE):
        yield from page
        above = page[-1][0]
