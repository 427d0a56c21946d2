"""Every setting: its name, its default, what it means. There is no other place where one is defined.

A setting's name is its path (`store.queue_limit`); its environment variable is that path in capitals
(`HOLDFAST_STORE_QUEUE_LIMIT`); in a TOML file it stands in the table of its section. Flags win over the
environment, that over the file, that over the default. `settings_sources` reads them; this module only knows
what there is.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

KIB = 1024
MIB = 1024 * KIB

Address = Annotated[
    str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^:\s\[\]]+):\d{1,5}$", examples=["127.0.0.1:8000"])
]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


def _is(help_text: str, *, secret: bool = False) -> Meta:
    return Meta(description=help_text, extra={"secret": secret})


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """Where each door listens. Port 0 picks a free one."""

    http: Annotated[Address, _is("HTTP: accounts, ledger, library, chat queries, metrics")] = "127.0.0.1:8000"
    mqtt: Annotated[Address, _is("MQTT over TCP")] = "127.0.0.1:1883"
    ws: Annotated[Address, _is("chat over WebSocket, at /ws")] = "127.0.0.1:9001"
    mqtt_ws: Annotated[Address, _is("MQTT over WebSocket, at /mqtt")] = "127.0.0.1:8083"


class Http(Struct, frozen=True, forbid_unknown_fields=True):
    """The HTTP server."""

    max_connections: Annotated[
        Count, _is("connections served at the same time; more wait in the backlog")
    ] = 10_000
    body_timeout: Annotated[
        Seconds, _is("seconds a request's body may stand still before it is given up")
    ] = 30.0
    trust_proxy: Annotated[
        bool, _is("take the client's address from X-Forwarded-For (only behind a proxy that sets it)")
    ] = False


class Store(Struct, frozen=True, forbid_unknown_fields=True):
    """Where rows are kept."""

    url: Annotated[
        str,
        _is(
            "empty: SQLite in the data folder; or a PostgreSQL address, postgresql://user@host/name",
            secret=True,
        ),
    ] = ""
    queue_limit: Annotated[Count, _is("writes that may wait; more are answered with 503")] = 10_000
    group_commands: Annotated[Count, _is("SQLite: writes that share one commit at the most")] = 64
    group_ms: Annotated[Seconds, _is("SQLite: milliseconds after which a group of writes is committed")] = 5.0
    readers: Annotated[Count, _is("SQLite: threads that read")] = 2
    read_limit_ms: Annotated[Count, _is("milliseconds one read may take before it is given up")] = 2_000
    checkpoint_mib: Annotated[
        Count, _is("SQLite: the write-ahead log is moved into the database above this")
    ] = 8
    truncate_mib: Annotated[Count, _is("SQLite: the write-ahead log is cut back to nothing above this")] = 64
    pool: Annotated[Count, _is("PostgreSQL: connections, which is also the commands at the same time")] = 16
    connect_timeout: Annotated[Seconds, _is("PostgreSQL: seconds to wait for a connection before a 503")] = (
        5.0
    )


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """The feeds that clients follow."""

    tombstone_days: Annotated[Count, _is("days for which deletions are kept; older readers start over")] = 90
    sweep_minutes: Annotated[Seconds, _is("minutes between two sweeps of old deletions")] = 60.0


class Blobs(Struct, frozen=True, forbid_unknown_fields=True):
    """Where files are kept."""

    url: Annotated[
        str, _is("empty: a folder in the data folder; or an object store, for instance s3://bucket/prefix")
    ] = ""
    endpoint: Annotated[
        str, _is("address of an S3-compatible service, when it is not the provider's own")
    ] = ""
    region: Annotated[str, _is("region of the bucket")] = ""
    access_key: Annotated[str, _is("access key of the bucket", secret=True)] = ""
    secret_key: Annotated[str, _is("secret key of the bucket", secret=True)] = ""
    grace_hours: Annotated[Seconds, _is("hours for which a file that nothing refers to is kept")] = 24.0
    sweep_minutes: Annotated[Seconds, _is("minutes between two collections of files without reference")] = (
        10.0
    )


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """Users, passwords, tokens."""

    registration: Annotated[
        Literal["auto", "open", "closed"],
        _is("who may register: auto is open while HTTP listens on a loopback address, closed otherwise"),
    ] = "auto"
    single_device: Annotated[bool, _is("a login ends every other session of that user")] = False
    access_seconds: Annotated[Count, _is("lifetime of an access token")] = 1800
    refresh_days: Annotated[Count, _is("lifetime of a refresh token")] = 30
    refresh_grace: Annotated[
        Count, _is("seconds for which a refresh token still works after it was exchanged")
    ] = 60
    issuer: Annotated[str, _is("the `iss` of our tokens")] = "holdfast"
    secret: Annotated[
        str,
        _is("HS256 secret, at least 32 characters; empty: one is made and kept in the store", secret=True),
    ] = ""
    private_key_file: Annotated[
        str, _is("PEM file with an Ed25519 key: tokens are then EdDSA, public keys at /.well-known/jwks.json")
    ] = ""
    previous_key_files: Annotated[
        tuple[str, ...], _is("PEM files of earlier Ed25519 keys whose tokens are still accepted")
    ] = ()
    login_tries: Annotated[Count, _is("failed logins a minute for one name from one address")] = 5
    password_min: Annotated[Count, _is("shortest password, in characters")] = 8
    argon2_memory_kib: Annotated[int, Meta(ge=8), _is("memory of one argon2id hash")] = 19_456
    argon2_passes: Annotated[Count, _is("passes of one argon2id hash")] = 2
    hash_threads: Annotated[Count, _is("threads that hash passwords")] = 1
    hash_queue: Annotated[Count, _is("logins that may wait for a hash; more are answered with 503")] = 256


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """How much one request, and one user, may ask for."""

    json_body: Annotated[Bytes, _is("bytes of a JSON body")] = MIB
    push_body: Annotated[Bytes, _is("bytes of a library push")] = 16 * MIB
    image: Annotated[Bytes, _is("bytes of an image")] = 20 * MIB
    pdf: Annotated[Bytes, _is("bytes of a PDF")] = 200 * MIB
    library_requests: Annotated[Count, _is("requests a minute per user on /library/*")] = 100
    requests: Annotated[Count, _is("requests a minute per user elsewhere, files included")] = 600
    anonymous_requests: Annotated[Count, _is("requests a minute per address without a token")] = 600
    name: Annotated[Count, _is("characters of a name")] = 200
    remark: Annotated[Count, _is("characters of a remark")] = 4_000
    members: Annotated[Count, _is("members of a book")] = 200
    page: Annotated[Count, _is("entries of a page")] = 1_000


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written to stderr."""

    level: Annotated[Literal["debug", "info", "warning", "error"], _is("the least that is logged")] = "info"
    format: Annotated[
        Literal["auto", "json", "text"], _is("auto: readable on a terminal, JSON lines elsewhere")
    ] = "auto"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[str, _is("the data folder; one `serve` at a time")] = "./holdfast-data"
    listen: Listen = Listen()
    http: Http = Http()
    store: Store = Store()
    feed: Feed = Feed()
    blobs: Blobs = Blobs()
    auth: Auth = Auth()
    limits: Limits = Limits()
    log: Log = Log()
