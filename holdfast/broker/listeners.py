"""Listeners in this process: the rooms of the server, or a program that embeds the broker.

The messages of one publisher come one after the other, those of different publishers beside each other. Who publishes
faster than its messages are heard is not read meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.broker.hooks import Client, Identity
from holdfast.broker.message import Message
from holdfast.broker.packets import MessageProperties
from holdfast.broker.topics.filter_tree import FilterTree
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.peer import Peer

BESIDE_EACH_OTHER: Final = 64
MOST_WAITING: Final = 200

log = get_logger("broker")


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a listener in this process gets it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: MessageProperties | None
    client_id: str
    user: str
    """The name that the publisher's session belongs to."""
    identity: Identity | None
    """Who published it; None for a will, whose connection is gone."""


Listener = Callable[[Received], Awaitable[None]]
Heard = Callable[[bool], None]


class Listening:
    """Ends with `cancel`."""

    def __init__(self, listeners: Listeners, topic_filter: str, listener: Listener, *, takes: bool) -> None:
        self._listeners = listeners
        self.filter = topic_filter
        self.listener = listener
        self.takes = takes

    def cancel(self) -> None:
        self._listeners.remove(self)


class _Lane:
    """What one publisher has sent and nobody has heard yet."""

    __slots__ = ("messages", "peer")

    def __init__(self, peer: Peer | None) -> None:
        self.peer = peer
        self.messages: deque[tuple[Received, list[Listening], Heard]] = deque()


class Listeners:
    def __init__(self) -> None:
        self._tree: FilterTree[Listening, Listening] = FilterTree()
        self._count = 0
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(BESIDE_EACH_OTHER)

    def add(self, topic_filter: str, listener: Listener, *, takes: bool) -> Listening:
        listening = Listening(self, topic_filter, listener, takes=takes)
        self._tree.put(topic_filter, listening, listening)
        self._count += 1
        return listening

    def remove(self, listening: Listening) -> None:
        if self._tree.remove(listening.filter, listening) is not None:
            self._count -= 1

    def match(self, topic: str) -> list[Listening]:
        if not self._count:
            return []
        return [listening for found in self._tree.match(topic) for listening in found.values()]

    def hear(
        self, peer: Peer | None, client: Client, message: Message, hears: list[Listening], heard: Heard
    ) -> None:
        """Hands a message to its listeners; `heard` is told whether they took it."""
        lane = self._lanes.get(client.client_id)
        if lane is None:
            lane = self._lanes[client.client_id] = _Lane(peer)
            task = asyncio.get_running_loop().create_task(self._serve(client.client_id, lane))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        received = Received(
            topic=message.topic,
            payload=message.payload,
            qos=message.qos,
            retain=message.retain,
            properties=message.properties,
            client_id=client.client_id,
            user=client.name,
            identity=peer.identity if peer is not None else None,
        )
        lane.peer = peer
        lane.messages.append((received, hears, heard))
        if peer is not None and len(lane.messages) > MOST_WAITING:
            peer.hold_for_listeners()

    async def stop(self) -> None:
        """Waits for those who listen at this moment."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)
        for task in self._tasks:
            task.cancel()

    async def _serve(self, client_id: str, lane: _Lane) -> None:
        messages = lane.messages
        while messages:
            received, hears, heard = messages[0]
            async with self._places:
                taken = await self._tell(received, hears)
            messages.popleft()
            heard(taken)
            if not taken and received.qos:
                # the publisher sends it again, and after it everything that came after it
                while messages:
                    _, _, unheard = messages.popleft()
                    unheard(False)
            if lane.peer is not None and len(messages) <= MOST_WAITING // 2:
                lane.peer.unhold_for_listeners()
        del self._lanes[client_id]

    async def _tell(self, received: Received, hears: list[Listening]) -> bool:
        for listening in hears:
            try:
                await listening.listener(received)
            except Exception:
                log.exception("listener_failed", topic=received.topic, client=received.client_id)
                return False
        return True
