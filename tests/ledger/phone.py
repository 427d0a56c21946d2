"""A person's MQTT client, of somebody else's making (paho, by aiomqtt), and what it has heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiomqtt
import msgspec

from tests.ledger.house import Person, new_id

PATIENCE = 20.0
KINDS = ("book", "bill", "image")


class Phone:
    """Online. `heard`: each message with its topic, in the order they came."""

    def __init__(self, person: Person, client: aiomqtt.Client) -> None:
        self.person = person
        self.client = client
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self._changed = asyncio.Event()

    async def listen(self) -> None:
        async for message in self.client.messages:
            self.heard.append((str(message.topic), msgspec.json.decode(bytes(message.payload))))
            self._changed.set()

    async def hears(self, holds: Callable[[], bool], what: str = "what was to come") -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what} did not come; heard: {self.heard}") from None

    async def hears_many(self, count: int) -> list[dict[str, Any]]:
        """The next messages, when there are so many; they are forgotten."""
        await self.hears(lambda: len(self.heard) >= count, f"{count} messages")
        messages = [message for _, message in self.heard[:count]]
        del self.heard[:count]
        return messages

    async def publishes(self, kind: str, type_: str, book_id: str, content: object) -> dict[str, Any]:
        """Over the uplink, once the broker has it; the message as it was sent."""
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        message = {"id": new_id(), "type": type_, "book_id": book_id, "content": text, "timestamp": 0}
        await self.sends(kind, message)
        return message

    async def sends(self, kind: str, message: dict[str, Any]) -> None:
        await self.client.publish(f"heji/up/{self.person.id}/{kind}", msgspec.json.encode(message), qos=1)

    async def acked(self, message: dict[str, Any]) -> dict[str, Any]:
        """The content of the ACK to a message of mine."""

        def ack() -> dict[str, Any] | None:
            for _, heard in self.heard:
                if heard["id"] == message["id"] and heard["type"] == f"{message['type']}_ACK":
                    return heard
            return None

        await self.hears(lambda: ack() is not None, f"the ACK to {message['type']}")
        found = ack()
        assert found is not None
        self.heard = [(topic, heard) for topic, heard in self.heard if heard is not found]
        content: dict[str, Any] = msgspec.json.decode(found["content"])
        return content


@asynccontextmanager
async def online(
    person: Person, address: str, *ways: str, name: str | None = None, version: int = 4
) -> AsyncIterator[Phone]:
    """Subscribed to `ways` (notify, down). With a `name` the session outlives the connection."""
    host, _, port = address.rpartition(":")
    client = aiomqtt.Client(
        host,
        int(port),
        username=person.id,
        password=person.token,
        identifier=name or f"{person.id}-{new_id()}",
        clean_session=name is None,
        protocol=aiomqtt.ProtocolVersion(version),
        timeout=PATIENCE,
    )
    async with client:
        phone = Phone(person, client)
        listening = asyncio.create_task(phone.listen())
        try:
            for way in ways:
                await client.subscribe(f"heji/{way}/{person.id}/#", qos=1)
            yield phone
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
