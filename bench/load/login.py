"""Who a line of chat belongs to: a name (or id) on the wire, and what proves it."""

from __future__ import annotations

from msgspec import Struct


class Login(Struct, frozen=True):
    user: str
    secret: str
    """A password, or an access token."""
    room: str = ""
    """Where the dialect wants one: the room that both ends of a pair are in."""
