"""What MQTT clients know: when they subscribed, what they published and when it was acknowledged, what arrived. Pure.

All clients share one counter, so that "before" means something. A message was taken by the broker at some moment
between its first PUBLISH and its acknowledgement; a subscription was there for sure between its SUBACK and its
UNSUBSCRIBE, and perhaps between its SUBSCRIBE and its UNSUBACK. From that follows what has to arrive and what must not.
"""

from __future__ import annotations

from collections import defaultdict
from math import inf

import msgspec

from holdfast.broker.topics.matching import matches
from tests.faults.operations import Lost


class Sent(msgspec.Struct, gc=False):
    """A message of a publisher to a topic; a topic has one QoS."""

    publisher: str
    topic: str
    number: int
    qos: int
    sent: int
    taken: float = inf
    """When PUBACK or PUBREC was heard."""
    again: bool = False
    """Sent more than once: at QoS 1 it may have been taken twice, and once behind its successor."""

    @property
    def payload(self) -> bytes:
        return f"{self.publisher} {self.number}".encode()


class Cover(msgspec.Struct):
    """One subscription to one filter, from its SUBSCRIBE to its UNSUBACK."""

    asked: int
    granted: float = inf
    given_up: float = inf
    gone: float = inf

    def surely(self, message: Sent) -> bool:
        return self.granted < message.sent and message.taken < self.given_up

    def perhaps(self, message: Sent) -> bool:
        return self.asked < message.taken and message.sent < self.gone


class Stream(msgspec.Struct):
    """What one subscriber got of one publisher's messages to one topic."""

    seen: set[int] = msgspec.field(default_factory=set)
    open: set[int] = msgspec.field(default_factory=set)
    """Of what is settled: what might have come, had not, and so may come later."""
    last: int = 0


class Listener:
    """What one subscriber asked for and got; or what several that share a subscription did, together and in any
    order."""

    def __init__(self, name: str, truth: Truth, *, is_shared: bool = False) -> None:
        self.name = name
        self.covers: dict[str, list[Cover]] = defaultdict(list)
        self._truth = truth
        self._is_shared = is_shared
        self._streams: dict[tuple[str, str], Stream] = defaultdict(Stream)

    def covering(self, topic: str) -> list[Cover]:
        return [
            cover
            for topic_filter, covers in self.covers.items()
            if matches(topic_filter, topic)
            for cover in covers
        ]

    def arrived(self, topic: str, payload: bytes, qos: int) -> None:
        """A PUBLISH that the protocol does not know for a repetition. Raises `Lost` where it must not be."""
        publisher, _, counted = payload.decode().partition(" ")
        number = int(counted)
        message = self._truth.sent.get((publisher, topic, number))
        stream = self._streams[publisher, topic]
        which = f"message {number} of {publisher} to {topic} at QoS {qos}"
        if number in stream.open:
            stream.open.remove(number)
            return
        if number <= self._truth.floor(publisher, topic) or number in stream.seen:
            if qos == 2:
                raise Lost(f"{self.name} got {which} twice")
            return
        if message is None:
            raise Lost(f"{self.name} got {which}, which nobody sent")
        if message.qos != qos:
            raise Lost(f"{self.name} got {which}, sent at {message.qos}")
        if not any(cover.perhaps(message) for cover in self.covering(topic)):
            raise Lost(f"{self.name} got {which}, to which it is not subscribed")
        taken_twice = message.again and qos == 1
        if number < stream.last and not taken_twice and not self._is_shared:
            raise Lost(f"{self.name} got {which} after {stream.last}")
        stream.seen.add(number)
        stream.last = max(stream.last, number)

    def missing(self) -> list[Sent]:
        """What had to arrive and has not."""
        return [
            message
            for topic in self._truth.topics
            if (covers := self.covering(topic))
            for message in self._truth.by_topic[topic]
            if message.number not in self._streams[message.publisher, topic].seen
            and any(cover.surely(message) for cover in covers)
        ]

    def settle(self) -> None:
        """Everything sent so far has been decided, but for what was sent while a subscription came or went: that may
        lie in the queue still, behind what had to arrive."""
        for topic in self._truth.topics:
            covers = self.covering(topic)
            for message in self._truth.by_topic[topic] if covers else ():
                stream = self._streams[message.publisher, topic]
                if message.number not in stream.seen and any(cover.perhaps(message) for cover in covers):
                    stream.open.add(message.number)
        for stream in self._streams.values():
            stream.seen.clear()
        for topic_filter, covers in self.covers.items():
            self.covers[topic_filter] = [cover for cover in covers if cover.gone == inf]


class Truth:
    def __init__(self, topics: list[str]) -> None:
        self.topics = topics
        self.sent: dict[tuple[str, str, int], Sent] = {}
        self.by_topic: dict[str, list[Sent]] = defaultdict(list)
        self._last: dict[tuple[str, str], int] = defaultdict(int)
        self._floor: dict[tuple[str, str], int] = {}
        self._now = 0

    def now(self) -> int:
        self._now += 1
        return self._now

    def send(self, publisher: str, topic: str, qos: int) -> Sent:
        number = self._last[publisher, topic] = self._last[publisher, topic] + 1
        message = Sent(publisher, topic, number, qos, self.now())
        self.sent[publisher, topic, number] = message
        self.by_topic[topic].append(message)
        return message

    def floor(self, publisher: str, topic: str) -> int:
        """Up to here everything is decided: nothing of it may come any more (at QoS 1: again, it may)."""
        return self._floor.get((publisher, topic), 0)

    def settle(self) -> None:
        """Everybody has got what he had to get: the messages need not be remembered."""
        self._floor = dict(self._last)
        self.sent.clear()
        self.by_topic.clear()
