"""What one may see of the broker from outside: plain values, made when somebody asks."""

from __future__ import annotations

import msgspec


class SubscriptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    filter: str
    """As it was subscribed, `$share/…/` included."""
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int
    """0 when the client gave none."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    user: str
    connected: bool
    address: str | None
    """Of the connection, when there is one."""
    version: int
    persistent: bool
    since_ms: int
    """Connected, or disconnected, since then."""
    expires_ms: int | None
    """When the session ends if its client stays away; None while connected, and for one that never ends."""
    subscriptions: int
    inflight: int
    """Messages sent to the client and not acknowledged by it."""
    queued: int
    """Messages that wait for the client; those in flight not among them."""
    queued_bytes: int
    dropped: int
    """Messages dropped for this session since the process started."""


class RetainedInfo(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    size: int
    qos: int
    stored_ms: int
    expires_ms: int | None


class QueuedInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A message in a session's queue: never its payload."""

    number: int
    topic: str
    size: int
    qos: int
    retain: bool
    state: str
    """queued, sent or released."""
    expires_ms: int | None
