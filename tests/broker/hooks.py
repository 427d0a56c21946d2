"""Who may do what in the tests: everybody everything, unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.broker.hooks import Access, Challenge, Client, Identity, Login, Refused
from holdfast.broker.packets import Reason
from holdfast.broker.topics.matching import matches


class Somebody(msgspec.Struct):
    """`ends` may be set while connected: the broker asks every second."""

    name: str = ""
    is_server: bool = False
    ends: Reason | None = None

    def over(self, now_ms: int) -> Reason | None:
        return self.ends


COUNT = "COUNT"
"""A method of enhanced authentication: the client says 0, 1, 2."""
STEPS = 3


class OpenHooks:
    def __init__(self, password_for: Mapping[str, str] | None = None, denied: Sequence[str] = ()) -> None:
        self.password_for = password_for
        self.denied = list(denied)
        """Filters of topics that nobody may use, in any direction."""
        self.came: list[Somebody] = []
        self._forbidden: set[tuple[str, str]] = set()

    def forbid(self, name: str, topic_filter: str) -> None:
        """From now on, for one user."""
        self._forbidden.add((name, topic_filter))

    async def authenticate(self, login: Login) -> Identity:
        if self.password_for is not None:
            wanted = self.password_for.get(login.username or "")
            if wanted is None or login.password != wanted.encode():
                raise Refused(Reason.BAD_USER_NAME_OR_PASSWORD, "the password is another one")
        return self._somebody(login)

    def authorise(self, client: Client, access: Access, topic: str) -> bool:
        forbidden = (*self.denied, *(found for name, found in self._forbidden if name == client.name))
        return not any(topic == denied or matches(denied, topic) for denied in forbidden)

    async def exchange(
        self, login: Login, method: str, data: bytes | None, step: int, known: Identity | None
    ) -> Identity | Challenge:
        if method != COUNT:
            raise Refused(Reason.BAD_AUTHENTICATION_METHOD)
        if data != b"%d" % step:
            raise Refused(Reason.NOT_AUTHORIZED, "that is not the next number")
        if step + 1 < STEPS:
            return Challenge(b"after %d" % step)
        return self._somebody(login)

    def _somebody(self, login: Login) -> Somebody:
        self.came.append(Somebody(login.username or "" if self.password_for else ""))
        return self.came[-1]
