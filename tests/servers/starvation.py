"""How long the machine kept our threads waiting for a processor, so that a bound in time can hold on a busy one.

Linux counts, for each thread, the time it was ready to run and did not: waiting for a lock, for another thread or
for the disk is not in it, waiting for somebody else's process is. On a quiet machine it is close to nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress


class Starvation:
    def __init__(self, *, threads: str, processes: Iterable[int] = ()) -> None:
        """This thread, our threads whose names begin with `threads`, and other `processes`."""
        ours = [t.native_id for t in threading.enumerate() if t.name.startswith(threads)]
        paths = [f"/proc/self/task/{tid}/schedstat" for tid in (threading.get_native_id(), *ours)]
        paths += [f"/proc/{pid}/schedstat" for pid in processes]
        self._files: list[int] = []
        for path in paths:
            with suppress(FileNotFoundError):  # a kernel that does not count: then nothing is forgiven
                self._files.append(os.open(path, os.O_RDONLY))

    def now(self) -> list[float]:
        return [int(os.pread(file, 64, 0).split()[1]) / 1e9 for file in self._files]

    def since(self, before: list[float]) -> float:
        """Seconds for which the worst off of them was kept waiting."""
        return max((now - then for now, then in zip(self.now(), before, strict=True)), default=0.0)

    def close(self) -> None:
        for file in self._files:
            os.close(file)
