"""What every place promises: the disk, and object stores of three kinds (one of them a real S3 server)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.blobs.model import blob_name, piece_name
from holdfast.blobs.objects import PART_BYTES, ObjectPlace, connect
from holdfast.blobs.place import Place
from holdfast.errors import FileGone, FilesUnavailable
from holdfast.settings import Blobs
from tests.servers.postgresql import free_port

NAME = blob_name("ab" * 32, "once")
BIG = os.urandom(1024) * (2 * PART_BYTES // 1024 + 300)


def put(place: Place, folder: Path, name: str, content: bytes) -> None:
    source = folder / "place" / "source"  # on the file system of the disk's place
    source.parent.mkdir(exist_ok=True)
    source.write_bytes(content)
    place.keep(source, name)


def content_of(place: Place, name: str, start: int = 0, stop: int | None = None) -> bytes:
    opened = place.open(name)
    try:
        return b"".join(opened.read(start, opened.size if stop is None else stop))
    finally:
        opened.close()


@pytest.mark.parametrize("content", [b"", b"x", BIG], ids=["empty", "one byte", "several parts"])
def test_what_is_kept_is_read_back(place: Place, tmp_path: Path, content: bytes) -> None:
    put(place, tmp_path, NAME, content)
    assert place.open(NAME).size == len(content)
    assert content_of(place, NAME) == content


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 1), (5, 5), (PART_BYTES - 1, PART_BYTES + 1), (100, len(BIG)), (len(BIG) - 1, len(BIG))],
)
def test_any_range_is_read(place: Place, tmp_path: Path, start: int, stop: int) -> None:
    put(place, tmp_path, NAME, BIG)
    assert content_of(place, NAME, start, stop) == BIG[start:stop]


def test_a_name_that_is_not_there_is_gone(place: Place) -> None:
    with pytest.raises(FileGone):
        place.open(NAME)


def test_removing_is_final_and_may_be_repeated(place: Place, tmp_path: Path) -> None:
    other = piece_name("twice")
    put(place, tmp_path, NAME, b"one")
    put(place, tmp_path, other, b"two")
    for _ in range(2):
        place.remove([NAME, piece_name("never")])
        with pytest.raises(FileGone):
            place.open(NAME)
    assert content_of(place, other) == b"two"


def test_the_listing_names_every_file_with_its_size(place: Place, tmp_path: Path) -> None:
    assert list(place.listing()) == []
    wanted = {blob_name(f"{n:064x}", f"o{n}"): n for n in range(20)} | {piece_name("p1"): 3}
    for name, size in wanted.items():
        put(place, tmp_path, name, b"x" * size)
    listed = list(place.listing())
    assert {kept.name: kept.size for kept in listed} == wanted
    assert all(kept.modified_ms > 1_700_000_000_000 for kept in listed)


def test_a_read_under_way_survives_the_removal(place: Place, tmp_path: Path) -> None:
    put(place, tmp_path, NAME, BIG)
    opened = place.open(NAME)
    pieces = opened.read(0, opened.size)
    first = next(pieces)
    place.remove([NAME])
    assert first + b"".join(pieces) == BIG
    opened.close()


def test_a_path_when_there_is_one_leads_to_the_same_bytes_or_nowhere(place: Place, tmp_path: Path) -> None:
    put(place, tmp_path, NAME, b"some content")
    opened = place.open(NAME)
    if opened.path is not None:
        assert opened.path.read_bytes() == b"some content"
        place.remove([NAME])
        assert not opened.path.exists()
    opened.close()


def test_an_object_store_that_cannot_be_reached_is_unavailable_not_empty(tmp_path: Path) -> None:
    settings = Blobs(
        url="s3://bucket/x",
        endpoint=f"http://127.0.0.1:{free_port()}",
        region="r",
        access_key="a",
        secret_key="s",
    )
    place = ObjectPlace(connect(settings))
    with pytest.raises(FilesUnavailable):
        place.open(NAME)
    with pytest.raises(FilesUnavailable):
        put(place, tmp_path, NAME, b"x")
