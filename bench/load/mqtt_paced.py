"""QoS 1 messages at a fixed pace over several pairs, and how long each took from the moment it was due to its arrival.

    python -m bench.load.mqtt_paced       reads a `Plan` as JSON lines on stdin, answers each with a `Latency`

Two threads with blocking sockets, one that sends and one that receives: an event loop's timers count in milliseconds,
and we measure less than one.
"""

from __future__ import annotations

import selectors
import socket
import sys
import threading
import time

import msgspec
from msgspec import Struct

from bench.load.mqtt_wire import CONNACK_SIZE, DISCONNECT, SUBACK_SIZE, connect, pubacks, publish, subscribe
from bench.load.paced import Latency, summary

GRACE_SECONDS = 10.0
PAYLOAD_SIZE = 64
RING = 1_000
"""Identifiers go round after so many messages of one publisher: never so many are under way."""


class Plan(Struct, frozen=True):
    address: str
    per_second: float
    seconds: float
    pairs: int = 10
    qos: int = 1
    name: str = "paced"


def greeted(address: str, *packets: tuple[bytes, int]) -> socket.socket:
    """A connection on which each packet was answered with so many bytes."""
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), GRACE_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for packet, size in packets:
        made.sendall(packet)
        while size:
            size -= len(made.recv(size)) or _closed()
    return made


def _closed() -> int:
    raise SystemExit("the broker closed a connection of the load")


class Pace:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._count = int(plan.per_second * plan.seconds)
        self._due = [0.0] * self._count
        self._late: list[float] = []
        self._took: list[float] = []
        topics = [f"paced/{number:04}" for number in range(plan.pairs)]
        self._topic_size = len(topics[0])
        self._size = len(publish(topics[0], bytes(PAYLOAD_SIZE), plan.qos))
        self._publishers = [
            greeted(plan.address, (connect(f"{plan.name}-p{topic[-4:]}"), CONNACK_SIZE)) for topic in topics
        ]
        self._subscribers = [
            greeted(
                plan.address,
                (connect(f"{plan.name}-s{topic[-4:]}"), CONNACK_SIZE),
                (subscribe(topic, plan.qos), SUBACK_SIZE),
            )
            for topic in topics
        ]
        self._topics = topics

    def run(self) -> Latency:
        receiver = threading.Thread(target=self._receive)
        receiver.start()
        self._send()
        receiver.join()
        for connection in (*self._publishers, *self._subscribers):
            connection.sendall(DISCONNECT)
            connection.close()
        return summary(self._took, self._late, self._count, 0)

    def _send(self) -> None:
        plan = self._plan
        interval = 1 / plan.per_second
        filler = bytes(PAYLOAD_SIZE - 8)
        start = time.perf_counter() + 0.05
        for number in range(self._count):
            due = self._due[number] = start + number * interval
            while (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            which, turn = number % plan.pairs, number // plan.pairs
            payload = number.to_bytes(8, "big") + filler
            self._publishers[which].sendall(publish(self._topics[which], payload, plan.qos, turn % RING + 1))
            self._late.append(time.perf_counter() - due)

    def _receive(self) -> None:
        """Reads what came, acknowledges it, and drops the publishers' PUBACKs."""
        look = selectors.DefaultSelector()
        rests = dict.fromkeys(range(len(self._subscribers)), b"")
        for number, subscriber in enumerate(self._subscribers):
            look.register(subscriber, selectors.EVENT_READ, number)
        for publisher in self._publishers:
            look.register(publisher, selectors.EVENT_READ, None)
        last = time.perf_counter()
        while len(self._took) < self._count and time.perf_counter() - last < GRACE_SECONDS:
            for key, _ in look.select(GRACE_SECONDS):
                came = key.fileobj.recv(65_536)  # type: ignore[union-attr]
                last = time.perf_counter()
                if not came:
                    _closed()
                if key.data is not None:
                    rests[key.data] = self._take(self._subscribers[key.data], rests[key.data] + came, last)
        look.close()

    def _take(self, subscriber: socket.socket, data: bytes, now: float) -> bytes:
        size, count = self._size, len(data) // self._size
        payload_at = 4 + self._topic_size + (2 if self._plan.qos else 0)
        if self._plan.qos and count:
            subscriber.sendall(pubacks(data, 4 + self._topic_size, size, count))
        for at in range(0, count * size, size):
            number = int.from_bytes(data[at + payload_at : at + payload_at + 8], "big")
            self._took.append(now - self._due[number])
        return data[count * size :]


def main() -> None:
    for line in sys.stdin.buffer:
        done = Pace(msgspec.json.decode(line, type=Plan)).run()
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
