"""A chat client for tests: one WebSocket, frames as dicts, everything it was sent kept in order.

`hear(...)` waits for the next frame that fits and fails when it does not come; what came before it stays in `heard`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

PATIENCE = 40.0
_numbers = itertools.count(1)

Frame = dict[str, Any]


def fresh_id() -> str:
    return f"c{next(_numbers)}"


class Phone:
    def __init__(self, address: str, token: str = "", *, acks: bool = True, device: str = "") -> None:
        self.url = f"ws://{address}/ws"
        self.token = token
        self.device = device
        self.acks = acks
        """Acknowledge as delivered what comes."""
        self.heard: list[Frame] = []
        self.closed = asyncio.Event()
        self.ws: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()

    # -- life

    async def open(self, *, receive_buffer: int = 0) -> Self:
        """`receive_buffer`: how much the kernel takes for a reader that pauses."""
        line = None
        if receive_buffer:
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            host, _, port = self.url.removeprefix("ws://").removesuffix("/ws").rpartition(":")
            line.connect((host, int(port)))
        self.ws = await connect(
            self.url, sock=line, ping_interval=None, max_size=2**22, open_timeout=PATIENCE
        )
        self._reading = asyncio.create_task(self._read())
        return self

    async def log_in(self, token: str | None = None) -> Frame:
        """Opens, authenticates, and answers AUTH_OK."""
        if self.ws is None:
            await self.open()
        frame = {"type": "AUTH", "token": token or self.token}
        if self.device:
            frame["deviceId"] = self.device
        await self.send(frame)
        return await self.hear("AUTH_OK")

    async def close(self) -> None:
        if self.ws is not None:
            await self.ws.close()
        if self._reading is not None:
            await self._reading

    def cut(self) -> None:
        """As if the network had gone."""
        assert self.ws is not None
        self.ws.transport.abort()

    async def __aenter__(self) -> Self:
        await self.log_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def close_code(self) -> int | None:
        assert self.ws is not None
        return self.ws.close_code

    async def until_closed(self) -> int | None:
        async with asyncio.timeout(PATIENCE):
            await self.closed.wait()
        return self.close_code

    # -- speaking

    async def send(self, frame: Frame | str | bytes) -> None:
        assert self.ws is not None
        await self.ws.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    async def say(self, to: int | str, body: str, client_msg_id: str | None = None, **more: Any) -> Frame:
        """One message to a user; answers its ACK or its ERROR."""
        return await self._post({"type": "SINGLE_CHAT", "to": str(to)}, body, client_msg_id, more)

    async def say_to_group(
        self, group: int | str, body: str, client_msg_id: str | None = None, **more: Any
    ) -> Frame:
        return await self._post({"type": "GROUP_CHAT", "groupId": str(group)}, body, client_msg_id, more)

    async def _post(self, address: Frame, body: str, client_msg_id: str | None, more: Frame) -> Frame:
        key = client_msg_id or fresh_id()
        at = len(self.heard)
        await self.send({**address, "clientMsgId": key, "body": body, **more})
        return await self.hear(
            lambda f: f["type"] in ("ACK", "ERROR") and f.get("clientMsgId") == key, after=at
        )

    async def ack(self, frame: Frame, ack_type: str = "delivered") -> None:
        await self.send({"type": "ACK", "ackType": ack_type, "serverMsgId": frame["serverMsgId"]})

    # -- hearing

    async def hear(self, what: str | Callable[[Frame], bool], *, after: int = 0) -> Frame:
        """The first frame that fits (a type, or a question), heard already or still to come."""
        fits = (lambda f: f["type"] == what) if isinstance(what, str) else what
        found: Frame | None = None

        def there() -> bool:
            nonlocal found
            found = next((f for f in self.heard[after:] if fits(f)), None)
            return found is not None or self.closed.is_set()

        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(there)
        assert found is not None, f"closed ({self.close_code}) before it came; heard {self.heard[-5:]}"
        return found

    async def hear_messages(self, count: int) -> list[Frame]:
        """Until so many messages have come (repeated ones too)."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: len(self.messages) >= count or self.closed.is_set())
        assert len(self.messages) >= count, f"closed after {len(self.messages)} of {count}"
        return self.messages

    @property
    def messages(self) -> list[Frame]:
        return [f for f in self.heard if f["type"] in ("SINGLE_CHAT", "GROUP_CHAT")]

    @property
    def bodies(self) -> list[str]:
        return [f["body"] for f in self.messages]

    async def settled(self) -> None:
        """Until the server has answered everything sent so far on this connection."""
        at = len(self.heard)
        await self.send({"type": "PING"})
        await self.hear("PONG", after=at)

    async def _read(self) -> None:
        assert self.ws is not None
        try:
            async for text in self.ws:
                frame: Frame = json.loads(text)
                async with self._news:
                    self.heard.append(frame)
                    self._news.notify_all()
                if self.acks and frame["type"] in ("SINGLE_CHAT", "GROUP_CHAT"):
                    await self.ack(frame)
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()
            async with self._news:
                self._news.notify_all()
