"""A real Redis for the tests: on a free port, in memory, killed and started at will; and a wire to it that is slow."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from redis import Redis as Client
from redis.exceptions import RedisError

from tests.servers.postgresql import free_port


def binary() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


class RedisServer:
    def __init__(self, folder: Path, program: str) -> None:
        self._program = program
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    *("--port", str(self.port), "--bind", "127.0.0.1"),
                    *("--save", "", "--appendonly", "no", "--dir", str(self._folder)),
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client() as client:
                    client.ping()
            except RedisError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def client(self) -> Client:
        return Client(port=self.port)

    def empty(self) -> None:
        with self.client() as client:
            client.flushall()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


class SlowWire:
    """Carries bytes to a server and back, each piece later than it came; or not at all."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.delay = 0.0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there = None
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self._port)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._one_way(reader, there))
                both.create_task(self._one_way(there_reader, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            for end in (writer, there):
                if end is not None:
                    end.close()

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            if self.delay:
                await asyncio.sleep(self.delay)
            writer.write(piece)
            with suppress(ConnectionError):
                await writer.drain()
        raise ConnectionResetError
