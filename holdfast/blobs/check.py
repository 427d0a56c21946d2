"""What must be true of blobs, for `holdfast check`: rows against rows, rows against files, files against hashes.

With a server running beside it, call it inside `Files.hold` with a view taken inside: then nothing that the view
refers to can go while it is looked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Blob, Kept, hash_in_name
from holdfast.blobs.place import Place
from holdfast.store import Snapshot

PAGE = 1000
SLACK_MS = 3_600_000  # collection may be this late before it counts as missing


def verify_blobs(
    view: Snapshot,
    place: Place,
    *,
    now_ms: int,
    grace_ms: int,
    deep: bool = False,
    was_collected: bool = True,
) -> Iterator[str]:
    """Every blob has its file (with `deep`: with its content), and no file is here for nothing.

    `was_collected`: a server runs and has had the time; without one, what waits for its collector is no problem.
    """
    pieces = dict(_pieces(view))
    here = {kept.name: kept for kept in place.listing()}
    names = set(pieces)
    for blob in _blobs(view):
        names.add(blob.name)
        for problem in (
            *(_kept_too_long(view, blob, now_ms) if was_collected else ()),
            *_file(place, here.get(blob.name), blob, deep=deep),
        ):
            yield f"blob {blob.sha256}: {problem}"
    for name, size in pieces.items():
        if name not in here or here[name].size != size:
            yield f"file {name}: a piece of an unfinished upload is missing or cut"
    for name in here.keys() - names if was_collected else ():
        if here[name].modified_ms < now_ms - grace_ms:
            yield f"file {name}: nothing refers to it, and its grace is over"


def verify_references(view: Snapshot, references: Mapping[str, int]) -> Iterator[str]:
    """`references` is what the rooms' own rows add up to: SHA-256 → how many rows name it."""
    counted = {blob.sha256: blob.refs for blob in _blobs(view)}
    for sha256, there in references.items():
        if sha256 not in counted:
            yield f"blob {sha256}: {there} rows refer to it, and it is not there"
    for sha256, refs in counted.items():
        if refs != references.get(sha256, 0):
            yield f"blob {sha256}: it counts {refs} references, there are {references.get(sha256, 0)}"


def _kept_too_long(view: Snapshot, blob: Blob, now_ms: int) -> Iterator[str]:
    if blob.orphan_since_ms is None:
        return
    until = max(blob.orphan_since_ms, view.row(sql.CLAIMED_UNTIL, sha256=blob.sha256) or 0)
    if until < now_ms - SLACK_MS:
        yield "nobody keeps it, and it is still here"


def _file(place: Place, kept: Kept | None, blob: Blob, *, deep: bool) -> Iterator[str]:
    if hash_in_name(blob.name) != blob.sha256:
        yield f"its file is named {blob.name}"
    if kept is None:
        yield f"its file {blob.name} is missing ({blob.refs} references)"
    elif kept.size != blob.size:
        yield f"its file has {kept.size} bytes instead of {blob.size}"
    elif deep and _hash_of(place, blob) != blob.sha256:
        yield f"the content of {blob.name} has another hash"


def _hash_of(place: Place, blob: Blob) -> str:
    hashed = hashlib.sha256()
    content = place.open(blob.name)
    try:
        for piece in content.read(0, blob.size):
            hashed.update(piece)
    finally:
        content.close()
    return hashed.hexdigest()


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
