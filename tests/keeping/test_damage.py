"""A backup that was cut or changed is refused before anything is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.errors import CannotStart
from holdfast.keeping import reading
from holdfast.keeping.backup import backup
from holdfast.keeping.progress import Unwatched
from holdfast.keeping.restore import restore
from tests.keeping.ground import CLOCK, KNOWN, Ground, ground_at

QUIET = Unwatched()
COPIES = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small backup of everything."""
    folder = tmp_path_factory.mktemp("whole")
    ground = ground_at(folder / "data")

    async def furnish() -> None:
        async with ground.open() as world:
            await world.accounts.add_user("ann", "correct horse")
            await world.keep(b"a song")
            await world.keep(bytes(3_000))

    asyncio.run(furnish())
    backup(ground.kept, KNOWN, folder / "b.tar", CLOCK, QUIET)
    return (folder / "b.tar").read_bytes()


def everything(path: Path) -> list[object]:
    """All that a restore would take from the file."""
    manifest = reading.verified(path, lambda _steps: None)
    tables = [(table, list(rows)) for table, rows in reading.tables(path, manifest)]
    files = [(entry.sha256, entry.whole()) for entry in reading.blobs(path, manifest)]
    return [manifest, tables, files]


@COPIES
@given(where=st.integers(0, 1 << 20), value=st.integers(0, 255))
@example(where=536, value=255)  # no UTF-8 within a JSON string
@example(where=-1, value=ord("9"))
def test_a_changed_byte_is_noticed_or_makes_no_difference(
    where: int, value: int, whole: bytes, tmp_path: Path
) -> None:
    at = whole.index(b'"made_ms"') + 12 if where < 0 else where % len(whole)
    (tmp_path / "whole.tar").write_bytes(whole)
    (tmp_path / "changed.tar").write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
    try:
        found = everything(tmp_path / "changed.tar")
    except CannotStart:
        return
    assert found == everything(tmp_path / "whole.tar")


@COPIES
@given(where=st.integers(0, 1 << 20))
def test_a_cut_backup_is_refused(where: int, whole: bytes, tmp_path: Path) -> None:
    end = whole.rindex(b"manifest.json")  # in the last entry; behind it there is only the tar's padding
    (tmp_path / "cut.tar").write_bytes(whole[: where % (end + 1)])
    with pytest.raises(CannotStart):
        reading.verified(tmp_path / "cut.tar", lambda _steps: None)


def changed(whole: bytes) -> Iterator[tuple[str, bytes]]:
    song = whole.index(b"a song")
    yield "another content", whole[:song] + b"a sang" + whole[song + 6 :]
    yield "no manifest", whole[: song + 512]
    yield "not a backup", b"PK\x03\x04 this is a zip file" + bytes(2_000)
    yield "empty", b""


def test_nothing_is_touched_when_the_backup_is_refused(whole: bytes, tmp_path: Path) -> None:
    ground = Ground(ground_at(tmp_path / "data").kept)
    for what, content in changed(whole):
        (tmp_path / "b.tar").write_bytes(content)
        with pytest.raises(CannotStart):
            restore(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
        assert not (tmp_path / "data").exists(), what


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="there is no file"):
        reading.verified(tmp_path / "nothing.tar", lambda _steps: None)
