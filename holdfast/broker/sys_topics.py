"""`$SYS/broker/…`: the broker about itself, under the names that Mosquitto's users know.

Every `broker.sys_interval`, retained, QoS 0 (a value that is worth a queue would be a log, not a status), and only
what has changed since the round before. `load/…` are averages over 1, 5 and 15 minutes, per minute, decaying.
"""

from __future__ import annotations

import asyncio
import math
import resource
from collections.abc import Mapping
from pathlib import Path

from holdfast import __version__
from holdfast.broker.broker import Broker
from holdfast.clock import Clock
from holdfast.log import get_logger

ROOT = "$SYS/broker/"
MINUTES = (1, 5, 15)

log = get_logger("broker")


class Load:
    """One number that only grows, as an average per minute."""

    def __init__(self) -> None:
        self._before: float | None = None
        self.averages = dict.fromkeys(MINUTES, 0.0)

    def look(self, total: float, seconds: float) -> None:
        if self._before is not None and seconds > 0:
            rate = (total - self._before) * 60 / seconds
            for minutes in MINUTES:
                weight = math.exp(-seconds / (60 * minutes))
                self.averages[minutes] = rate + weight * (self.averages[minutes] - rate)
        self._before = total


class SysTopics:
    def __init__(self, broker: Broker, clock: Clock, interval: float) -> None:
        self._broker = broker
        self._clock = clock
        self._interval = interval
        self._loads: dict[str, Load] = {}
        self._told: dict[str, str] = {}
        self._most_connected = 0
        self._started = self._before = clock.monotonic()
        self._telling: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._interval:
            self._telling = asyncio.create_task(self._tell_now_and_then(), name="mqtt: $SYS")

    async def stop(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
            self._telling = None

    def tell(self) -> None:
        """One round."""
        for name, value in self.values().items():
            if self._told.get(name) != value:
                self._told[name] = value
                self._broker.send(ROOT + name, value.encode(), qos=0, retain=True)

    def values(self) -> Mapping[str, str]:
        """What there is to tell at this moment; each call is a round for the averages."""
        now = self._clock.monotonic()
        values = {**self._clients(), **self._messages(), **self._averages(now - self._before)}
        self._before = now
        values["version"] = f"holdfast version {__version__}"
        values["uptime"] = f"{int(now - self._started)} seconds"
        values.update(_memory())
        return values

    async def _tell_now_and_then(self) -> None:
        while True:
            try:
                self.tell()
            except Exception:
                # a status that cannot be told must not end the telling of all others
                log.exception("sys_topics_failed")
            await asyncio.sleep(self._interval)

    def _clients(self) -> dict[str, str]:
        broker = self._broker
        connected = broker.connected
        away = max(0, broker.session_count - connected)
        self._most_connected = max(self._most_connected, connected)
        return {
            "clients/total": str(connected + away),
            "clients/connected": str(connected),
            "clients/active": str(connected),
            "clients/disconnected": str(away),
            "clients/inactive": str(away),
            "clients/maximum": str(self._most_connected),
            "clients/expired": str(broker.counters.expired_sessions),
            "subscriptions/count": str(broker.subscription_count),
            "shared_subscriptions/count": str(broker.shared_subscription_count),
        }

    def _messages(self) -> dict[str, str]:
        broker, counters = self._broker, self._broker.counters
        stored = broker.retained_count + broker.queued_count
        return {
            "retained messages/count": str(broker.retained_count),
            "messages/stored": str(stored),
            "store/messages/count": str(stored),
            "store/messages/bytes": str(broker.queued_bytes),
            "messages/received": str(counters.packets_received),
            "messages/sent": str(counters.packets_sent),
            "publish/messages/received": str(counters.publish_received),
            "publish/messages/sent": str(counters.publish_sent),
            "publish/messages/dropped": str(counters.publish_dropped),
            "publish/bytes/received": str(counters.publish_bytes_received),
            "publish/bytes/sent": str(counters.publish_bytes_sent),
            "bytes/received": str(counters.bytes_received),
            "bytes/sent": str(counters.bytes_sent),
        }

    def _averages(self, seconds: float) -> dict[str, str]:
        counters = self._broker.counters
        totals = {
            "messages/received": counters.packets_received,
            "messages/sent": counters.packets_sent,
            "publish/received": counters.publish_received,
            "publish/sent": counters.publish_sent,
            "publish/dropped": counters.publish_dropped,
            "bytes/received": counters.bytes_received,
            "bytes/sent": counters.bytes_sent,
            "connections": counters.connections,
        }
        values: dict[str, str] = {}
        for name, total in totals.items():
            load = self._loads.setdefault(name, Load())
            load.look(total, seconds)
            for minutes, average in load.averages.items():
                values[f"load/{name}/{minutes}min"] = f"{average:.2f}"
        return values


def _memory() -> dict[str, str]:
    """The whole process, since nobody counts what is the broker's part of it."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return {"heap/maximum": str(most)}
    return {"heap/current": str(pages * resource.getpagesize()), "heap/maximum": str(most)}
