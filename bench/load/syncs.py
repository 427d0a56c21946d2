"""Counts fsyncs as SQLite asks for them. Every call then goes through Python: for counting, never for timing."""

from __future__ import annotations

import apsw

COUNTING = "bench-counting"


class CountingVfs(apsw.VFS):
    def __init__(self) -> None:
        self.syncs = 0
        super().__init__(COUNTING, base="")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _CountingFile:  # noqa: N802
        return _CountingFile(self, name, flags)


class _CountingFile(apsw.VFSFile):
    def __init__(self, vfs: CountingVfs, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._vfs.syncs += 1
        super().xSync(flags)
