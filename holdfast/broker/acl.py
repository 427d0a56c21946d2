"""Who may publish and read which topics, by a file in Mosquitto's syntax (`holdfast broker --acl-file`).

    topic [read|write|readwrite|deny] TOPIC      before any `user` line: clients without a user name
    user NAME                                    the `topic` lines that follow are this user's
    pattern [read|write|readwrite|deny] TOPIC    everyone's, with %u (user name) and %c (client id)

Without an access word a line grants both. What no line grants is denied. A client's own lines are asked
before the patterns, and among each `deny` before the rest, as Mosquitto does.

Where this differs from Mosquitto:
- a subscription is refused (0x87) when no line could ever let one of its messages through, or one `deny`
  takes them all; Mosquitto grants every subscription and stays silent. What is granted is still filtered
  message by message, so `#` works as it does there.
- a pattern is not applied to a client whose name or id, put into it, holds `/`, `+` or `#`: `user/%u/#`
  must not give `alice/x` a part of what is alice's.
- a line that cannot be read is an error that names it, not a warning.

Pure: no file is opened here, and nothing is remembered between questions.
"""

from __future__ import annotations

from enum import Flag
from typing import Final

import msgspec

from holdfast.broker.topics.matching import covers, matches, overlaps
from holdfast.broker.topics.syntax import split_shared, topic_filter_fault


class Access(Flag):
    READ = 1
    WRITE = 2
    READWRITE = 3
    DENY = 4


_ACCESS: Final = {
    "read": Access.READ,
    "write": Access.WRITE,
    "readwrite": Access.READWRITE,
    "deny": Access.DENY,
}
_SPECIAL: Final = frozenset("+#/")


class AclFileError(ValueError):
    """A line of the file cannot be read; the message names it."""


class Rule(msgspec.Struct, frozen=True):
    access: Access
    topic: str


class Client(msgspec.Struct, frozen=True):
    """Who asks. `username` is None for a client that gave none."""

    client_id: str
    username: str | None = None


class Acl(msgspec.Struct, frozen=True):
    anonymous: tuple[Rule, ...] = ()
    users: dict[str, tuple[Rule, ...]] = {}
    patterns: tuple[Rule, ...] = ()

    def may_publish(self, client: Client, topic: str) -> bool:
        return self._may(client, topic, Access.WRITE)

    def may_receive(self, client: Client, topic: str) -> bool:
        """Asked for every message at delivery, also for a session that resumes."""
        return self._may(client, topic, Access.READ)

    def may_subscribe(self, client: Client, pattern: str) -> bool:
        """Whether any message of this filter, shared or not, could be received."""
        shared = split_shared(pattern)
        wanted = shared.filter if shared is not None else pattern
        rules = self._rules_of(client) + self._patterns_for(client)
        if any(rule.access is Access.DENY and covers(rule.topic, wanted) for rule in rules):
            return False
        return any(Access.READ in rule.access and overlaps(rule.topic, wanted) for rule in rules)

    def _may(self, client: Client, topic: str, access: Access) -> bool:
        for rules in (self._rules_of(client), self._patterns_for(client)):
            applying = [rule.access for rule in rules if matches(rule.topic, topic)]
            if Access.DENY in applying:
                return False
            if any(access in granted for granted in applying):
                return True
        return False

    def _rules_of(self, client: Client) -> tuple[Rule, ...]:
        if client.username is None:
            return self.anonymous
        return self.users.get(client.username, ())

    def _patterns_for(self, client: Client) -> tuple[Rule, ...]:
        filled = (_fill(rule, client) for rule in self.patterns)
        return tuple(rule for rule in filled if rule is not None)


def _fill(pattern: Rule, client: Client) -> Rule | None:
    """The pattern with this client's names in it, None when it does not apply."""
    topic = pattern.topic
    parts = []
    for mark, name in (("%c", client.client_id), ("%u", client.username)):
        if mark in topic:
            if not name or not _SPECIAL.isdisjoint(name):
                return None
            parts.append((mark, name))
    # One pass, so that a client id that contains "%u" is not filled in again.
    pieces = topic.split("%")
    filled = pieces[0]
    names = {mark[1]: name for mark, name in parts}
    for piece in pieces[1:]:
        name = names.get(piece[:1])
        filled += "%" + piece if name is None else name + piece[1:]
    return Rule(pattern.access, filled)


def parse_acl(text: str) -> Acl:
    """The rules of a file, or AclFileError."""
    anonymous: list[Rule] = []
    users: dict[str, list[Rule]] = {}
    patterns: list[Rule] = []
    current = anonymous
    for number, line in enumerate(text.splitlines(), start=1):
        keyword, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if not keyword or keyword.startswith("#"):
            continue
        if not rest:
            raise AclFileError(f"line {number}: nothing follows {keyword!r}")
        if keyword == "user":
            current = users.setdefault(rest, [])
        elif keyword == "topic":
            current.append(_rule(number, rest))
        elif keyword == "pattern":
            patterns.append(_rule(number, rest))
        else:
            raise AclFileError(f"line {number}: {keyword!r} is not user, topic or pattern")
    return Acl(tuple(anonymous), {name: tuple(rules) for name, rules in users.items()}, tuple(patterns))


def _rule(number: int, rest: str) -> Rule:
    word, space, topic = rest.partition(" ")
    topic = topic.strip()
    if not space:
        access, topic = Access.READWRITE, word
    elif word in _ACCESS:
        access = _ACCESS[word]
    else:
        raise AclFileError(f"line {number}: {word!r} is not read, write, readwrite or deny")
    if topic_filter_fault(topic) is not None:
        raise AclFileError(f"line {number}: {topic!r} is not a topic filter")
    return Rule(access, topic)
