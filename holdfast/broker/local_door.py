"""The operator's own door: a socket in the data folder. Whoever may open that file is the operator.

One JSON line is a question (`operator.Question`), one line is its answer: `{"ok": …}` or `{"error": sentence}`. It is how
`holdfast broker sessions --data DIR` and the like talk to the server that has the folder, with `serve` and alone.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.broker.operator import Operator, Question
from holdfast.data_folder import DataFolder
from holdfast.errors import HoldfastError
from holdfast.log import get_logger

NAME = "broker.sock"
LONGEST_QUESTION = 300_000
PATIENCE = 60.0

log = get_logger("broker")

_read = msgspec.json.Decoder(Question).decode
_write = msgspec.json.Encoder().encode


class LocalDoor:
    """A folder where no socket can be made (some network disks) costs a warning, not the start."""

    def __init__(self, folder: DataFolder, operator: Operator) -> None:
        self._file = folder.path / NAME
        self._operator = operator
        self._server: asyncio.Server | None = None
        self._visitors: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """The folder is ours: a socket that lies there is a dead process's."""
        try:
            self._file.unlink(missing_ok=True)
            listener = _at(self._file, socket.socket.bind)
            self._file.chmod(0o600)
            listener.listen(16)
        except OSError as error:
            log.warning("local_door_closed", why=error.strerror)
            return
        self._server = await asyncio.start_unix_server(self._visited, sock=listener, limit=LONGEST_QUESTION)

    async def close(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for visitor in self._visitors:
            visitor.cancel()
        await asyncio.gather(*self._visitors, return_exceptions=True)
        self._file.unlink(missing_ok=True)

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visitors.add(task)
        try:
            async with asyncio.timeout(PATIENCE) as patience:
                while self._server is not None and (line := await reader.readline()):
                    writer.write(await self._answer(line) + b"\n")
                    await writer.drain()
                    patience.reschedule(asyncio.get_running_loop().time() + PATIENCE)
        except (OSError, ValueError, TimeoutError):
            pass  # he left, said too much at once, or nothing more
        finally:
            self._visitors.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, line: bytes) -> bytes:
        try:
            return _write({"ok": await self._operator.answer(_read(line))})
        except msgspec.DecodeError as error:
            return _write({"error": f"this is no question: {error}"})
        except HoldfastError as error:
            return _write({"error": error.message})
        except Exception:
            log.exception("operator_not_answered")
            return _write({"error": "the server made a mistake; its log says more"})


def visit(folder: Path) -> socket.socket:
    """A connection to the server that has this folder; `OSError` when none listens."""
    return _at(folder / NAME, socket.socket.connect)


def _at(file: Path, act: object) -> socket.socket:
    """Binds or connects. A socket's path has at most about 100 bytes, so the folder is named by its descriptor."""
    assert callable(act)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(os.fsencode(file)) < 100 or not Path("/proc/self/fd").exists():
            act(found, str(file))
            return found
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            act(found, f"/proc/self/fd/{folder}/{file.name}")
        finally:
            os.close(folder)
    except OSError:
        found.close()
        raise
    return found
