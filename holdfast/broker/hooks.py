"""What the program around the broker decides: who a client is, what it may do, what happens with some messages.

    class MyHooks(Hooks):
        async def authenticate(self, login: Login) -> Identity: ...
        def authorise(self, client: Client, access: Access, topic: str) -> Verdict: ...

`holdfast serve` decides by access tokens and the ledger's rules, `holdfast broker` by its password and ACL files;
an embedding program brings its own. The broker knows only this page of any of them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import Enum
from typing import Protocol

import msgspec

from holdfast.broker.packets import Reason


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """What a CONNECT says about who is there. `client_id` is the one the session will have, also when we made it."""

    client_id: str
    username: str | None = None
    password: bytes | None = None
    version: int
    address: str
    certificate_name: str | None = None
    """The common name of the client's certificate, when TLS verified one."""


class Refused(Exception):
    """The client may not come in; the reason goes into its CONNACK (or DISCONNECT, when it was in already)."""

    def __init__(self, reason: Reason = Reason.NOT_AUTHORIZED, text: str | None = None) -> None:
        super().__init__(text or reason.name)
        self.reason = reason
        self.text = text


class Identity(Protocol):
    """Whom a connection belongs to, as long as it lasts. Sessions belong to `name`."""

    @property
    def name(self) -> str:
        """A user's; empty for a client that nobody knows. Another name may not take this one's client ids."""

    @property
    def is_server(self) -> bool:
        """The server itself, which may do everything."""

    def over(self, now_ms: int) -> Reason | None:
        """Why this identity is good no longer (token expired, session ended), or None. Asked every second."""


class Client(Protocol):
    """A connected client, or a session whose client is away, as `authorise` sees it."""

    @property
    def client_id(self) -> str: ...
    @property
    def name(self) -> str:
        """The name of the identity that the session belongs to."""

    @property
    def is_server(self) -> bool: ...


class Access(Enum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    """`topic` is a filter, without its `$share/…/`; asked again when a session resumes."""
    RECEIVE = "receive"
    """One message on its way; the answer must be there at once."""


Verdict = bool | Awaitable[bool]
"""An awaitable where the answer has to be looked up. At RECEIVE an awaitable counts as no."""


class Challenge(msgspec.Struct, frozen=True):
    """Enhanced authentication goes on: this goes out in an AUTH packet with reason 0x18."""

    data: bytes | None = None


class Hooks(Protocol):
    async def authenticate(self, login: Login) -> Identity:
        """Or raises `Refused`."""

    def authorise(self, client: Client, access: Access, topic: str) -> Verdict:
        """Called often: a plain bool wherever possible, within microseconds."""

    async def exchange(
        self, login: Login, method: str, data: bytes | None, step: int, known: Identity | None
    ) -> Identity | Challenge:
        """Enhanced authentication: `step` counts from 0 within an exchange; `known` is who it was before, at a
        re-authentication. `Refused` with BAD_AUTHENTICATION_METHOD says that there is no such method."""
