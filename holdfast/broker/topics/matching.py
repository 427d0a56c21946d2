"""What one filter says about a topic, and about another filter, without a tree: for rules and for tests."""

from __future__ import annotations


def matches(pattern: str, topic: str) -> bool:
    """Whether a topic filter matches a topic name (4.7)."""
    if pattern == topic:
        return True
    filter_levels = pattern.split("/")
    if topic.startswith("$") and filter_levels[0] in ("+", "#"):
        return False  # [MQTT-4.7.2-1]
    levels = topic.split("/")
    for place, level in enumerate(filter_levels):
        if level == "#":
            return True
        if place == len(levels) or (level not in ("+", levels[place])):
            return False
    return len(filter_levels) == len(levels)


def covers(wide: str, narrow: str) -> bool:
    """Whether `wide` matches every topic that the filter `narrow` matches.

    Level by level, so `+/#` is not seen to cover `#`.
    """
    wide_levels, levels = wide.split("/"), narrow.split("/")
    if levels[0].startswith("$") and wide_levels[0] in ("+", "#"):
        return False
    for place, level in enumerate(wide_levels):
        if level == "#":
            return True
        if place == len(levels) or levels[place] == "#" or level not in ("+", levels[place]):
            return False
    return len(wide_levels) == len(levels)


def overlaps(one: str, other: str) -> bool:
    """Whether any topic is matched by both filters."""
    one_levels, other_levels = one.split("/"), other.split("/")
    for first, second in ((one_levels[0], other_levels[0]), (other_levels[0], one_levels[0])):
        if first.startswith("$") and second in ("+", "#"):
            return False
    for mine, yours in zip(one_levels, other_levels, strict=False):
        if mine == "#" or yours == "#":
            return True
        if mine not in ("+", yours) and yours != "+":
            return False
    shorter = min(len(one_levels), len(other_levels))
    rest = one_levels[shorter:] + other_levels[shorter:]
    return rest in ([], ["#"])  # `a/#` matches `a` too
