"""The grammar of topic names and topic filters (section 4.7), and of shared subscriptions (4.8.2).

Answers name the clause that a string breaks, or None: who refuses, and how, is decided elsewhere.
Every check is one pass over the string, whatever the number of levels.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_BYTES: Final = 65_535
SHARE: Final = "$share/"


class SharedFilter(NamedTuple):
    """`$share/{group}/{filter}` taken apart."""

    group: str
    filter: str


def topic_name_fault(name: str) -> str | None:
    """The clause that a topic name breaks, None when it is one."""
    if not name:
        return "MQTT-4.7.3-1"
    if "+" in name or "#" in name:
        return "MQTT-4.7.0-1"
    return _text_fault(name)


def topic_filter_fault(pattern: str) -> str | None:
    """The clause that a topic filter breaks, None when it is one. `$share/...` is an ordinary filter here."""
    if not pattern:
        return "MQTT-4.7.3-1"
    if "#" in pattern:
        hash_at = pattern.index("#")
        if hash_at != len(pattern) - 1 or (hash_at and pattern[hash_at - 1] != "/"):
            return "MQTT-4.7.1-1"
    if "+" in pattern and not all(level == "+" for level in pattern.split("/") if "+" in level):
        return "MQTT-4.7.1-2"
    return _text_fault(pattern)


def is_shared(pattern: str) -> bool:
    return pattern.startswith(SHARE)


def shared_filter_fault(pattern: str) -> str | None:
    """The clause that a `$share/...` filter breaks, None when it is one."""
    group, slash, inner = pattern[len(SHARE) :].partition("/")
    if not group:
        return "MQTT-4.8.2-1"
    if "+" in group or "#" in group or not slash or not inner:
        return "MQTT-4.8.2-2"
    return topic_filter_fault(inner)


def split_shared(pattern: str) -> SharedFilter | None:
    """Group and inner filter of a well-formed shared filter, None for an ordinary one."""
    if not pattern.startswith(SHARE):
        return None
    group, _, inner = pattern[len(SHARE) :].partition("/")
    return SharedFilter(group, inner)


def count_levels(name: str) -> int:
    return name.count("/") + 1


def _text_fault(value: str) -> str | None:
    if "\0" in value:
        return "MQTT-4.7.3-2"
    # A character is at most four bytes, so most strings need not be encoded to know that they fit.
    if len(value) * 4 > MAX_BYTES and len(value.encode()) > MAX_BYTES:
        return "MQTT-4.7.3-3"
    return None
