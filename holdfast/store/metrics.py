"""What the store counts: commits, commands per commit, how long a writer waits, how many are waiting."""

from __future__ import annotations

from holdfast.metrics import COUNTS, Metrics


class StoreMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._commits = metrics.counter("holdfast_store_commits", "Commits that succeeded")
        self._commands = metrics.counter("holdfast_store_commands", "Write commands that were answered")
        self._refused = metrics.counter(
            "holdfast_store_refused", "Commands refused because the queue was full"
        )
        self._retries = metrics.counter(
            "holdfast_store_retries", "Transactions run again after a deadlock (each one a defect)"
        )
        self._group = metrics.histogram(
            "holdfast_store_group_commands", "Commands that shared one commit", bounds=COUNTS
        ).series()
        self._commit = metrics.histogram("holdfast_store_commit_seconds", "Time of one commit").series()
        self._answer = metrics.histogram(
            "holdfast_store_write_seconds", "Time from a write's arrival to its answer"
        ).series()
        self._waiting = 0
        self._wal_bytes = 0
        metrics.gauge("holdfast_store_waiting", "Writes that wait", lambda: self._waiting)
        metrics.gauge("holdfast_store_wal_bytes", "Bytes in the write-ahead log", lambda: self._wal_bytes)

    def committed(self, commits: int, commands: int, seconds: float) -> None:
        if commits:
            self._commits.add(amount=commits)
            self._group.observe(commands / commits)
            self._commit.observe(seconds / commits)
        self._commands.add(amount=commands)

    def answered(self, seconds: float) -> None:
        self._answer.observe(seconds)

    def refused(self) -> None:
        self._refused.add()

    def retried(self) -> None:
        self._retries.add()

    def waiting(self, commands: int) -> None:
        self._waiting = commands

    def wal(self, size: int) -> None:
        self._wal_bytes = size

    @property
    def commits(self) -> float:
        return self._commits.value()
