"""A request's body on its way in: its clock, and what happens to the rest of one that nobody wants.

A server that answers and closes while bytes lie unread resets the connection, and the client may lose the answer with it.
So before an answer leaves, a little of what is still arriving is read and thrown away.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from litestar.types import HTTPReceiveMessage, Message, Receive, Send

from holdfast.errors import Malformed
from holdfast.http.patience import Patience
from holdfast.http.visit import Visit

MOST_THROWN_AWAY = 256 * 1024
SECONDS = 1.0


class Body:
    __slots__ = ("_here", "_patience", "_receive", "_send", "is_over")

    def __init__(self, receive: Receive, send: Send, here: Visit, patience: Patience) -> None:
        self._receive = receive
        self._send = send
        self._here = here
        self._patience = patience
        self.is_over = False
        """It has arrived, or will not."""

    async def receive(self) -> HTTPReceiveMessage:
        if self.is_over:  # whoever waits for the client to leave may wait for long
            return cast("HTTPReceiveMessage", await self._receive())
        try:
            message = cast("HTTPReceiveMessage", await self._patience.wait_for(self._receive()))
        except TimeoutError:
            self.is_over = True
            limit = self._patience.seconds
            raise Malformed(f"The body did not arrive: nothing came for {limit:g} seconds.") from None
        if message["type"] == "http.disconnect":
            self.is_over = True
            raise Malformed("The body was cut: the client left in the middle of it.")
        self.is_over = not message.get("more_body", False)
        self._here.received += len(message["body"])
        return message

    async def send(self, message: Message) -> None:
        if not self.is_over:
            await self._throw_away()
        await self._send(message)

    async def _throw_away(self) -> None:
        most = self._here.received + MOST_THROWN_AWAY
        with suppress(TimeoutError, Malformed):
            async with asyncio.timeout(SECONDS):
                while not self.is_over and self._here.received < most:
                    await self.receive()
        self.is_over = True
