"""What is published without a connection: by the server itself, and for clients who left a will."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.broker.message import Message
from holdfast.broker.packets import MessageProperties, Reason
from holdfast.broker.topics import topic_name_fault
from holdfast.broker.wills import Testator
from holdfast.errors import InvalidField, Unavailable

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


class _Caller:
    """Somebody in this process who waits."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def fail(self) -> None:
        if not self.done.done():
            self.done.set_exception(Unavailable("the message could not be stored; publish it again"))


class Saying:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def say(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, properties: MessageProperties | None
    ) -> None:
        self._route(self._message(topic, payload, qos=qos, retain=retain, properties=properties))

    async def say_and_wait(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, properties: MessageProperties | None
    ) -> None:
        message = self._message(topic, payload, qos=qos, retain=retain, properties=properties)
        caller = _Caller()
        message.acknowledgement = caller
        if self._route(message) is Reason.QUOTA_EXCEEDED:
            raise Unavailable("there is no room for another retained message")
        await caller.done

    def say_for(self, message: Message, testator: Testator) -> None:
        """A will: rooms of the server hear it as they would have heard its client."""
        hears = self._broker.listeners.match(message.topic)
        if not hears:
            self._route(message)
            return

        def heard(taken: bool) -> None:
            if taken and not any(listening.takes for listening in hears):
                self._route(message)

        self._broker.listeners.hear(None, testator, message, hears, heard)

    def _message(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, properties: MessageProperties | None
    ) -> Message:
        if topic_name_fault(topic) is not None:
            raise InvalidField("topic", "this is not a topic name")
        expires_ms = None
        if properties is not None and properties.message_expiry is not None:
            expires_ms = self._broker.clock.now_ms() + properties.message_expiry * 1000
        return Message(topic, payload, qos, retain, properties, expires_ms)

    def _route(self, message: Message) -> Reason:
        broker = self._broker
        message.waiting = 1
        plan = broker.router.plan(message.topic, None, kept=message.qos > 0)
        reason = broker.publishing.route(plan, message)
        message.settled()
        broker.turns.commit_later()
        return reason
