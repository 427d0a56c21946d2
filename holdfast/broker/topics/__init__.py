"""Topics: their grammar, who subscribes to them, what is retained under them. Pure; no session, no packet."""

from holdfast.broker.topics.retained import RetainedTopics
from holdfast.broker.topics.shared import SharedGroup, SharedSubscriptions
from holdfast.broker.topics.subscriptions import Grant, Route, Subscriptions
from holdfast.broker.topics.syntax import (
    SharedFilter,
    count_levels,
    is_shared,
    shared_filter_fault,
    split_shared,
    topic_filter_fault,
    topic_name_fault,
)

__all__ = [
    "Grant",
    "RetainedTopics",
    "Route",
    "SharedFilter",
    "SharedGroup",
    "SharedSubscriptions",
    "Subscriptions",
    "count_levels",
    "is_shared",
    "shared_filter_fault",
    "split_shared",
    "topic_filter_fault",
    "topic_name_fault",
]
