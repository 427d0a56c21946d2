"""What the broker counts: plain numbers, read by `$SYS`, the metrics and the admin's page."""

from __future__ import annotations

from collections import Counter


class Counters:
    """Since the start of the process."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections",
        "drops",
        "expired_messages",
        "expired_sessions",
        "packets_received",
        "packets_sent",
        "publish_bytes_received",
        "publish_bytes_sent",
        "publish_received",
        "publish_sent",
        "refusals",
    )

    def __init__(self) -> None:
        self.connections = 0
        """CONNECTs that were accepted."""
        self.bytes_received = 0
        self.bytes_sent = 0
        self.packets_received = 0
        self.packets_sent = 0
        self.publish_received = 0
        self.publish_sent = 0
        self.publish_bytes_received = 0
        """Payloads only, as `publish_bytes_sent`."""
        self.publish_bytes_sent = 0
        self.expired_sessions = 0
        self.expired_messages = 0
        self.drops: Counter[str] = Counter()
        """Messages dropped, by why: slow, queue_full, too_large, not_allowed; and not taken from
        their publishers: not_allowed_to_publish, too_big_to_publish, not_retained."""
        self.refusals: Counter[str] = Counter()
        """CONNECTs refused, by reason."""

    @property
    def publish_dropped(self) -> int:
        return self.drops.total()
