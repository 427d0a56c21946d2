"""Users of ours by the thousand, through the door for accounts: for preparing a scenario, never for measuring."""

from __future__ import annotations

import http.client
import json
import secrets
from concurrent.futures import ThreadPoolExecutor

import msgspec
from msgspec import Struct

from bench.servers import Refused, Server

AT_ONCE = 8
LIFTED = {
    "limits.requests": 10**9,
    "limits.anonymous_requests": 10**9,
    "auth.access_seconds": 86_400,
    "auth.argon2_memory_kib": 64,
    "auth.argon2_passes": 1,
}
"""For a server that is measured by few users who ask much; and what a password costs is not measured here."""


class User(Struct, frozen=True):
    id: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class _LoggedIn(Struct, frozen=True, rename="camel"):
    user_id: str
    access_token: str


class _Answer(Struct, frozen=True):
    data: _LoggedIn


def new_users(server: Server, count: int, prefix: str = "bench") -> list[User]:
    """Registered and logged in, in the order of their numbers."""
    shares = [range(first, count, AT_ONCE) for first in range(min(AT_ONCE, count))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = [user for share in pool.map(lambda s: _share(server, prefix, s), shares) for user in share]
    return [user for _, user in sorted(made, key=lambda numbered: numbered[0])]


def _share(server: Server, prefix: str, numbers: range) -> list[tuple[int, User]]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        return [(number, _user(connection, f"{prefix}-{number}")) for number in numbers]
    finally:
        connection.close()


def _user(connection: http.client.HTTPConnection, name: str) -> User:
    body = json.dumps({"username": name, "password": secrets.token_urlsafe(12)})
    _ask(connection, "/auth/register", body)
    said = msgspec.json.decode(_ask(connection, "/auth/login", body), type=_Answer).data
    return User(said.user_id, said.access_token)


def _ask(connection: http.client.HTTPConnection, path: str, body: str) -> bytes:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    raw = answer.read()
    if answer.status >= 300:
        raise Refused(f"POST {path}: {answer.status} {raw[:300]!r}")
    return raw
