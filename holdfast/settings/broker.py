"""The MQTT broker."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.settings.fields import MIB, Bytes, Count, Seconds, means

AtLeastNone = Annotated[int, Meta(ge=0)]
Word = Annotated[int, Meta(ge=1, le=65_535)]


class Broker(Struct, frozen=True, forbid_unknown_fields=True):
    """The MQTT broker."""

    # how long things are kept
    session_expiry: Annotated[
        int,
        Meta(ge=0),
        means("seconds after which the session of a 3.1.1 client that stays away is deleted; 0 = never"),
    ] = 3600
    max_session_expiry: Annotated[
        AtLeastNone, means("seconds that a 5.0 client may ask its session to be kept at the most; 0 = any")
    ] = 0
    sweep_interval: Annotated[Seconds, means("seconds between two sweeps of expired sessions")] = 60.0
    durability: Annotated[
        Literal["commit", "relaxed"],
        means(
            "commit: an acknowledgement means that the message is on disk;"
            " relaxed: acknowledged at once, committed every 100 ms, so that a crash may lose that much"
        ),
    ] = "commit"

    # who may come in
    versions: Annotated[
        tuple[Literal["3", "4", "5"], ...], means("MQTT versions spoken: 3 (3.1), 4 (3.1.1), 5")
    ] = ("3", "4", "5")
    max_connections: Annotated[AtLeastNone, means("connections at the same time; 0 = any number")] = 10_000
    max_connections_per_address: Annotated[
        AtLeastNone, means("connections from one address at the same time; 0 = any number")
    ] = 0
    max_sessions_per_user: Annotated[
        AtLeastNone,
        means("sessions of one user that outlive their connections at the most; 0 = any number"),
    ] = 10_000
    connect_timeout: Annotated[Seconds, means("seconds in which a new connection has to send CONNECT")] = 10.0
    empty_client_id: Annotated[bool, means("a client may leave its id empty and is given one")] = True
    server_keep_alive: Annotated[
        Annotated[int, Meta(ge=0, le=65_535)],
        means("keep-alive seconds that 5.0 clients are told to use; 0 = their own"),
    ] = 0

    # what a client may send
    max_packet_size: Annotated[Bytes, means("bytes of the largest packet that is read")] = MIB
    max_payload: Annotated[
        AtLeastNone, means("bytes of the largest payload that may be published; 0 = any that fits a packet")
    ] = 0
    max_qos: Annotated[Annotated[int, Meta(ge=0, le=2)], means("highest QoS that may be used")] = 2
    retain: Annotated[bool, means("messages may be retained")] = True
    receive_maximum: Annotated[
        Word, means("unacknowledged messages of QoS 1 and 2 that a 5.0 client may have on their way to us")
    ] = 1_024
    topic_alias_max: Annotated[
        Annotated[int, Meta(ge=0, le=65_535)],
        means("topic aliases that a client may use, and that are used towards one that allows them"),
    ] = 10
    message_rate: Annotated[
        AtLeastNone, means("messages a second that one client may publish; more are read later; 0 = any")
    ] = 0
    byte_rate: Annotated[
        AtLeastNone, means("bytes a second that are read from one client; more are read later; 0 = any")
    ] = 0
    max_subscriptions: Annotated[Count, means("subscriptions of one session at the most")] = 1_000
    max_levels: Annotated[Count, means("levels of a topic or a filter at the most")] = 200
    denied_publish: Annotated[
        Literal["drop", "close"],
        means(
            "what becomes of a 3.1.1 client that publishes where it may not: its message is dropped, or it is"
        ),
    ] = "drop"

    # what is kept for a client
    max_inflight: Annotated[
        Word, means("messages of QoS 1 and 2 on their way to one client at the same time")
    ] = 64
    queue_count: Annotated[Count, means("messages that wait for one session at the most")] = 100_000
    queue_bytes: Annotated[Bytes, means("bytes of the messages that wait for one session at the most")] = (
        64 * MIB
    )
    queue_policy: Annotated[
        Literal["drop_newest", "drop_oldest", "disconnect"],
        means("what happens when a queue is full; every dropped message is counted and logged"),
    ] = "drop_oldest"
    retained_count: Annotated[Count, means("retained messages at the most")] = 1_000_000
    retained_bytes: Annotated[Bytes, means("bytes of all retained messages at the most")] = 1024 * MIB

    # slow readers
    high_water: Annotated[
        Bytes, means("bytes that may wait to be sent to a client before QoS 0 messages to it are dropped")
    ] = 512 * 1024
    close_unwritable_after: Annotated[
        Seconds, means("seconds after which a client that takes nothing is disconnected")
    ] = 3.0

    # doors: who is let in, and what is told
    anonymous: Annotated[
        bool,
        means("`holdfast broker`: clients without a user name come in; without a password file any name"),
    ] = False
    password_file: Annotated[
        str, means("`holdfast broker`: users and their password hashes, ours or Mosquitto's, one a line")
    ] = ""
    acl_file: Annotated[
        str, means("`holdfast broker`: who may publish and read what, in Mosquitto's syntax; empty: anything")
    ] = ""
    readers: Annotated[
        tuple[str, ...],
        means(
            "`holdfast serve`: who else may read below user/OWNER/: OWNER:READER or OWNER:READER:FILTER,"
            " with user ids or *; for instance *:*:public/#"
        ),
    ] = ()
    origins: Annotated[
        tuple[str, ...],
        means(
            "web pages that may connect over WebSocket, for instance https://app.example; empty: any,"
            " or with broker.anonymous only pages from this server's own host"
        ),
    ] = ()
    sys_interval: Annotated[
        Annotated[float, Meta(ge=0)], means("seconds between two rounds of $SYS/broker/...; 0 = none")
    ] = 10.0
