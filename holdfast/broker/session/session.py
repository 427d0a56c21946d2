"""What is kept for one client id. It belongs to the user who made it; whether its client is here, `peer` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.message import Message
from holdfast.broker.session.incoming import Incoming
from holdfast.broker.session.outgoing import Outgoing
from holdfast.broker.topics import Grant

if TYPE_CHECKING:
    from holdfast.broker.peer import Peer
    from holdfast.broker.replay import Replay


class Session:
    """Whatever an earlier connection still does, it does not touch the session: it looks at `connection` first."""

    __slots__ = (
        "client_id",
        "connection",
        "created_ms",
        "disconnected_ms",
        "dropped",
        "ended",
        "expiry",
        "hearing",
        "id",
        "incoming",
        "is_server",
        "loading",
        "name",
        "outgoing",
        "peer",
        "persistent",
        "pumped",
        "replays",
        "resting",
        "since_ms",
        "subscriptions",
        "version",
        "warned",
    )

    def __init__(
        self,
        *,
        session_id: int,
        client_id: str,
        name: str,
        is_server: bool,
        version: int,
        expiry: int | None,
        persistent: bool,
        created_ms: int,
        outgoing: Outgoing | None = None,
    ) -> None:
        self.id = session_id
        """0 for a session that ends with its connection."""
        self.client_id = client_id
        self.name = name
        self.is_server = is_server
        self.version = version
        self.expiry = expiry
        """Seconds that it outlives its connection, None for ever."""
        self.persistent = persistent
        self.created_ms = created_ms
        self.since_ms = created_ms
        self.disconnected_ms: int | None = None
        self.subscriptions: dict[str, Grant] = {}
        """By filter as it was subscribed, `$share/…/` included."""
        self.incoming = Incoming()
        self.hearing: dict[int, Message] | None = None
        """QoS 2 messages that a listener in this process has not taken yet, by packet id."""
        self.outgoing = outgoing or Outgoing(persistent=persistent)
        self.connection: Peer | None = None
        """The connection that the session belongs to now, also before its CONNACK."""
        self.peer: Peer | None = None
        """The same, once messages may be sent over it."""
        self.ended = False
        self.loading: Peer | None = None
        """For whom a part of the queue is being read from the store."""
        self.pumped = False
        """It will be pumped at the end of this turn."""
        self.replays: list[Replay] = []
        """Retained messages that are still to be sent."""
        self.resting = 0
        """SUBACKs that have to leave before its queue goes on."""
        self.dropped = 0
        self.warned = 0.0

    def expires_ms(self) -> int | None:
        """When it ends, if its client stays away."""
        if self.disconnected_ms is None or self.expiry is None:
            return None
        return self.disconnected_ms + self.expiry * 1000
