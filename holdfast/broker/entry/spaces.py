"""`user/{id}/#`: a free space for each user's apps, and who else may read in it. Pure.

| who | may |
|---|---|
| the owner | publish, subscribe, receive |
| a reader (`broker.readers`, OWNER:READER or OWNER:READER:FILTER) | subscribe and receive below the filter |
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.broker.topics.matching import covers, matches
from holdfast.broker.topics.syntax import topic_filter_fault
from holdfast.errors import CannotStart

ROOT = "user/"
ANYBODY = "*"


class Grant(Struct, frozen=True):
    """Readers of a part of a space. None: any reader."""

    reader: int | None
    filter: str


def read_grants(settings: tuple[str, ...]) -> tuple[Grant, ...]:
    """What `broker.readers` says, or `CannotStart`."""
    return tuple(_read_grant(text) for text in settings)


def _read_grant(text: str) -> Grant:
    owner, reader, rest = (*text.split(":", 2), "", "")[:3]
    below = rest or "#"
    owners = "+" if owner == ANYBODY else str(_id(owner, text))
    topic_filter = f"{ROOT}{owners}/{below}"
    if topic_filter_fault(topic_filter) is not None:
        raise CannotStart(f"broker.readers: {text!r}: {below!r} is no topic filter")
    return Grant(None if reader == ANYBODY else _id(reader, text), topic_filter)


def _id(word: str, text: str) -> int:
    if word.isascii() and word.isdigit() and 0 < int(word) < 2**63:
        return int(word)
    raise CannotStart(
        f"broker.readers: {text!r} is not OWNER:READER or OWNER:READER:FILTER, with user ids or *"
    )


class UserSpaces:
    """Rules over `user/…` (`messenger.TopicRules`): an answer for each topic there, None for any other."""

    def __init__(self, readers: tuple[str, ...]) -> None:
        self._grants = read_grants(readers)

    def may_publish(self, user_id: int, topic: str) -> bool | None:
        if not topic.startswith(ROOT):
            return None
        return topic.startswith(f"{ROOT}{user_id}/")

    def may_subscribe(self, user_id: int, topic_filter: str) -> bool | None:
        if not topic_filter.startswith(ROOT):
            return None
        if topic_filter.startswith(f"{ROOT}{user_id}/"):
            return True
        return any(covers(granted, topic_filter) for granted in self._granted_to(user_id))

    def may_receive(self, user_id: int, topic: str) -> bool | None:
        if not topic.startswith(ROOT):
            return None
        if topic.startswith(f"{ROOT}{user_id}/"):
            return True
        return any(matches(granted, topic) for granted in self._granted_to(user_id))

    def _granted_to(self, user_id: int) -> list[str]:
        return [grant.filter for grant in self._grants if grant.reader is None or grant.reader == user_id]
