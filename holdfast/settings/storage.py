"""Where rows and files are kept, and for how long."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from holdfast.settings.fields import Count, Seconds, means


class Store(Struct, frozen=True, forbid_unknown_fields=True):
    """Where rows are kept."""

    url: Annotated[
        str,
        means(
            "empty: SQLite in the data folder; or a PostgreSQL address, postgresql://user@host/name",
            secret=True,
        ),
    ] = ""
    queue_limit: Annotated[Count, means("writes that may wait; more are answered with 503")] = 10_000
    group_commands: Annotated[Count, means("SQLite: writes that share one commit at the most")] = 64
    group_ms: Annotated[Seconds, means("SQLite: milliseconds after which a group of writes is committed")] = (
        5.0
    )
    readers: Annotated[Count, means("SQLite: threads that read")] = 2
    read_limit_ms: Annotated[Count, means("milliseconds one read may take before it is given up")] = 2_000
    checkpoint_mib: Annotated[
        Count, means("SQLite: the write-ahead log is moved into the database above this")
    ] = 8
    truncate_mib: Annotated[Count, means("SQLite: the write-ahead log is cut back to nothing above this")] = (
        64
    )
    pool: Annotated[Count, means("PostgreSQL: connections, which is also the commands at the same time")] = 16
    connect_timeout: Annotated[
        Seconds, means("PostgreSQL: seconds to wait for a connection before a 503")
    ] = 5.0


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """The feeds that clients follow."""

    tombstone_days: Annotated[Count, means("days for which deletions are kept; older readers start over")] = (
        90
    )
    sweep_minutes: Annotated[Seconds, means("minutes between two sweeps of old deletions")] = 60.0


class Blobs(Struct, frozen=True, forbid_unknown_fields=True):
    """Where files are kept."""

    url: Annotated[
        str, means("empty: a folder in the data folder; or an object store, for instance s3://bucket/prefix")
    ] = ""
    endpoint: Annotated[
        str, means("address of an S3-compatible service, when it is not the provider's own")
    ] = ""
    region: Annotated[str, means("region of the bucket")] = ""
    access_key: Annotated[str, means("access key of the bucket", secret=True)] = ""
    secret_key: Annotated[str, means("secret key of the bucket", secret=True)] = ""
    grace_hours: Annotated[Seconds, means("hours for which a file that nothing refers to is kept")] = 24.0
    sweep_minutes: Annotated[Seconds, means("minutes between two collections of files without reference")] = (
        10.0
    )
