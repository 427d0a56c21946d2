"""Chat, and the Redis that makes several processes quick."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.settings.fields import KIB, Bytes, Count, Seconds, means


class Backpressure(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to a reader that does not keep up."""

    low: Annotated[
        Bytes, means("bytes waiting for a reader below which messages are written to it again")
    ] = 256 * KIB
    high: Annotated[Bytes, means("bytes waiting for a reader above which no message is written to it")] = (
        512 * KIB
    )
    close_after_ms: Annotated[Count, means("milliseconds above the mark after which it is closed")] = 3_000
    drop_when_unwritable: Annotated[
        bool,
        means(
            "above the mark, messages stay in the log until the reader catches up; false: they are buffered"
        ),
    ] = True


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """How messages reach the members of a group who are online."""

    mode: Annotated[
        Literal["auto", "push", "notify", "none"],
        means("push the message, notify that there is one, do neither; auto: by the four numbers below"),
    ] = "auto"
    notify_members: Annotated[Count, means("auto: members from which on they are notified")] = 2_000
    notify_online: Annotated[Count, means("auto: members online from which on they are notified")] = 500
    none_online: Annotated[Count, means("auto: members online from which on nothing is sent")] = 2_000
    none_members: Annotated[Count, means("auto: members from which on nothing is sent")] = 10_000
    receipts: Annotated[
        Literal["auto", "on", "off"],
        means(
            "tell a message's sender who received and read it; auto: in groups below receipts_below members"
        ),
    ] = "auto"
    receipts_below: Annotated[
        Count, means("members from which on, with auto, receipts are not passed on")
    ] = 100
    max_members: Annotated[Count, means("members of a group")] = 50_000


class Rate(Struct, frozen=True, forbid_unknown_fields=True):
    """How many frames are taken; who sends more is closed."""

    connection: Annotated[Count, means("frames a second of one connection")] = 60
    connection_burst: Annotated[Count, means("frames of one connection at once")] = 120
    user: Annotated[Count, means("messages and calls a second of one user")] = 30
    user_burst: Annotated[Count, means("messages and calls of one user at once")] = 60


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """Chat."""

    single_session: Annotated[bool, means("the newest connection of a user ends the older ones")] = True
    backpressure: Backpressure = Backpressure()
    group: Group = Group()
    rate: Rate = Rate()
    max_connections: Annotated[Count, means("connections at the same time; more are refused")] = 50_000
    max_frame: Annotated[Bytes, means("bytes of a frame from a client")] = 512 * KIB
    queue: Annotated[Count, means("frames of a connection that may wait; more are answered server_busy")] = 64
    auth_seconds: Annotated[Seconds, means("seconds a connection has to authenticate")] = 3.0
    ping_seconds: Annotated[
        Seconds, means("seconds without a frame to a client after which it is pinged")
    ] = 30.0
    silence_seconds: Annotated[
        Seconds, means("seconds without a frame from a client after which it is closed")
    ] = 90.0
    compare_seconds: Annotated[
        Seconds, means("seconds between two looks for messages that a lost push has left behind")
    ] = 30.0
    window: Annotated[
        Count, means("messages written to a connection and not acknowledged, above which its backlog waits")
    ] = 1_000
    ack_batch_ms: Annotated[
        int,
        Meta(ge=0, le=1_000),
        means("milliseconds for which acknowledgements are collected into one write"),
    ] = 200
    ack_detail: Annotated[bool, means("write every acknowledgement to message_ack, for audits")] = False
    history_on_join: Annotated[bool, means("a new member may read what was said before")] = False
    body_characters: Annotated[Count, means("characters of a message")] = 4_096
    revoke_seconds: Annotated[Count, means("seconds for which a sender may revoke a message")] = 120
    ring_seconds: Annotated[Seconds, means("seconds a call rings")] = 30.0


class Redis(Struct, frozen=True, forbid_unknown_fields=True):
    """Redis or Valkey: several processes are quicker with it, and nothing is lost without."""

    url: Annotated[str, means("empty: none; or redis://host:port/0", secret=True)] = ""
    timeout_ms: Annotated[
        Count, means("milliseconds after which an answer of Redis is no longer waited for")
    ] = 250
