"""A running server, people with replicas, and how to wait for them without sleeping for luck."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from holdfast.client import Holdfast, Timing
from holdfast.client.holdfast import Transport
from tests.acceptance.serving import PASSWORD, QUICK
from tests.faults.operations import Doors
from tests.faults.process import Server

T = TypeVar("T")

MANY = str(10**9)
SHORT_NAMES = 60
"""The client takes 200 characters: so a test can write what this server will refuse."""
UNLIMITED = (
    *QUICK,
    *("--mqtt", "127.0.0.1:0", "--ws", "127.0.0.1:0", "--mqtt-ws", "127.0.0.1:0"),
    *("--set", f"limits.requests={MANY}"),
    *("--set", f"limits.library_requests={MANY}"),
    *("--set", f"limits.anonymous_requests={MANY}"),
    *("--set", f"ledger.join_tries={MANY}"),
    *("--set", f"limits.name={SHORT_NAMES}"),
    *("--set", "log.level=warning"),
)
PATIENCE = 30.0


class NotInTime(AssertionError):
    pass


async def until(holds: Callable[[], Awaitable[T]], what: str = "", seconds: float = PATIENCE) -> T:
    """What `holds` answers as soon as it is true."""
    deadline = time.monotonic() + seconds
    while True:
        found = await holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotInTime(f"not within {seconds:g} s: {what or holds}")
        await asyncio.sleep(0.02)


def ports_to_keep() -> list[str]:
    """Options for a server that will be started again on the same ports: below those that the system gives to outgoing
    connections, one of which would take a port while the server is down."""
    options = []
    for door in ("http", "mqtt", "ws"):
        while True:
            with socket.socket() as probe:
                port = random.randrange(20_000, 32_000)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    continue
            if f"127.0.0.1:{port}" not in options:
                break
        options += [f"--{door}", f"127.0.0.1:{port}"]
    return options


class World:
    def __init__(self, server: Server, doors: Doors, folder: Path, ends: AsyncExitStack) -> None:
        self.server = server
        self.doors = doors
        self.folder = folder
        self.ends = ends

    def replica(
        self,
        name: str,
        *,
        transport: Transport = "http",
        timing: Timing | None = None,
        chat: bool = False,
        doors: Doors | None = None,
    ) -> Holdfast:
        """Not opened yet; the same name is the same replica."""
        at = doors or self.doors
        return Holdfast(
            self.folder / f"{name}.db",
            server=at["http"],
            mqtt=at.get("mqtt"),
            chat=at.get("ws", False) if chat else False,
            transport=transport,
            timing=timing,
        )

    async def opened(self, name: str, **how: object) -> Holdfast:
        return await self.ends.enter_async_context(self.replica(name, **how))  # type: ignore[arg-type]

    async def person(self, name: str, *, device: str = "", **how: object) -> Holdfast:
        """Somebody with an account, logged in on a replica of his own."""
        app = await self.opened(name + device, **how)
        if device:
            await app.login(name, PASSWORD)
        else:
            await app.register(name, PASSWORD)
        return app

    async def restart(self) -> None:
        """Killed and started on the same ports."""
        self.server.kill()
        same = ("http", "mqtt", "ws")
        await self.server.start(*(part for door in same for part in (f"--{door}", self.doors[door])))
