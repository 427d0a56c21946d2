"""The broker in `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.metrics import Metrics

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


def offer_figures(broker: Broker, metrics: Metrics) -> None:
    counters = broker.counters
    for name, help_text, read in (
        ("connections", "connections of MQTT clients", lambda: float(broker.connected)),
        ("sessions", "MQTT sessions, of clients connected and away", lambda: float(broker.session_count)),
        (
            "subscriptions",
            "MQTT subscriptions, shared ones included",
            lambda: float(broker.subscription_count + broker.shared_subscription_count),
        ),
        ("retained_messages", "retained MQTT messages", lambda: float(broker.retained_count)),
        ("queued_messages", "MQTT messages kept for sessions", lambda: float(broker.queued_count)),
        ("queued_bytes", "bytes of the MQTT messages kept for sessions", lambda: float(broker.queued_bytes)),
        (
            "unwritten_bytes",
            "bytes of MQTT messages that wait for a commit",
            lambda: float(broker.journal.weight),
        ),
    ):
        metrics.gauge(f"holdfast_broker_{name}", help_text, read)
    for name, help_text, read in (
        ("bytes_received", "bytes received over MQTT", lambda: float(counters.bytes_received)),
        ("bytes_sent", "bytes sent over MQTT", lambda: float(counters.bytes_sent)),
        ("publish_received", "MQTT messages received", lambda: float(counters.publish_received)),
        ("publish_sent", "MQTT messages sent", lambda: float(counters.publish_sent)),
        ("dropped", "MQTT messages dropped, whatever the reason", lambda: float(counters.publish_dropped)),
        (
            "expired_messages",
            "MQTT messages that expired in a queue",
            lambda: float(counters.expired_messages),
        ),
        ("expired_sessions", "MQTT sessions that expired", lambda: float(counters.expired_sessions)),
        ("refused", "MQTT connections refused", lambda: float(counters.refusals.total())),
    ):
        metrics.tally(f"holdfast_broker_{name}", help_text, read)
