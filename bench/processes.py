"""Child processes: started in a session of their own, so that Ctrl-C reaches us alone and we end each by its id.

`Child` is any process; `Talker` is a program of ours that answers one JSON line for each JSON line.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

import msgspec

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".bench"
STOP_SECONDS = 10.0

T = TypeVar("T")


class ChildFailed(Exception):
    """A process ended, or did not answer in time; what it wrote last is in the message."""


class Child:
    def __init__(
        self,
        command: Sequence[object],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        user: int | None = None,
        talks: bool = False,
    ) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        pipe = subprocess.PIPE if talks else None
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=pipe or subprocess.DEVNULL,
                stdout=pipe or out,
                stderr=out,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                user=user,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def wait_until(self, ready: Callable[[], T | None], seconds: float = 60.0) -> T:
        """What `ready` gives as soon as it gives something; the process must stay alive until then."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (found := ready()) is not None:
                return found
            if self.process.poll() is not None:
                raise self.failed(f"ended with {self.process.returncode} before it was ready")
            time.sleep(0.02)
        raise self.failed(f"was not ready after {seconds:g} s")

    def failed(self, why: str) -> ChildFailed:
        said = self.log.read_text("utf-8", "replace")[-2_000:] if self.log.exists() else ""
        return ChildFailed(f"{Path(str(self.process.args[0])).name} {why}\n{said}".rstrip())  # type: ignore[index]

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """The end of its input, a polite signal, then SIGKILL for it and whatever it started in its session."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        if self.process.poll() is None:
            self.process.send_signal(first)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # children that outlived it; the group is ours alone
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def running(child: Child, first: signal.Signals = signal.SIGTERM) -> Iterator[Child]:
    try:
        yield child
    finally:
        child.stop(first)


class Talker:
    """A program of ours (`python -m module`): one line of JSON in, one line of JSON out, ends when its input ends."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.pid = child.pid
        assert child.process.stdin is not None
        assert child.process.stdout is not None
        self._in, self._out = child.process.stdin, child.process.stdout
        self._read = b""

    def ask(self, question: msgspec.Struct | Mapping[str, object], kind: type[T], seconds: float) -> T:
        try:
            self._in.write(msgspec.json.encode(question) + b"\n")
            self._in.flush()
        except BrokenPipeError:
            raise self.child.failed("ended") from None
        return msgspec.json.decode(self._line(seconds), type=kind)

    def _line(self, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise self.child.failed(f"did not answer within {seconds:g} s")
            piece = os.read(self._out.fileno(), 65_536)
            if not piece:
                raise self.child.failed("ended without an answer")
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return line


@contextmanager
def talker(module: str, log: Path, *arguments: str, python: Path | None = None) -> Iterator[Talker]:
    command: list[str | Path] = [python or sys.executable, "-m", module, *arguments]
    with running(Child(command, log, talks=True)) as child:
        yield Talker(child)


@contextmanager
def ended_cleanly() -> Iterator[None]:
    """Ctrl-C and SIGTERM unwind us once, and only once: the children are ended and the folders removed in peace."""
    interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
