"""How the outside reaches us: listeners, the HTTP server, limits, what is logged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from holdfast.settings.fields import MIB, Address, Bytes, Count, Seconds, means


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """Where each door listens. Port 0 picks a free one."""

    http: Annotated[Address, means("HTTP: accounts, ledger, library, chat queries, metrics")] = (
        "127.0.0.1:8000"
    )
    mqtt: Annotated[Address, means("MQTT over TCP")] = "127.0.0.1:1883"
    ws: Annotated[Address, means("chat over WebSocket, at /ws")] = "127.0.0.1:9001"
    mqtt_ws: Annotated[Address, means("MQTT over WebSocket, at /mqtt")] = "127.0.0.1:8083"


class Http(Struct, frozen=True, forbid_unknown_fields=True):
    """The HTTP server."""

    max_connections: Annotated[
        Count, means("connections served at the same time; more wait in the backlog")
    ] = 10_000
    body_timeout: Annotated[
        Seconds, means("seconds a request's body may stand still before it is given up")
    ] = 30.0
    trust_proxy: Annotated[
        bool, means("take the client's address from X-Forwarded-For (only behind a proxy that sets it)")
    ] = False


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """How much one request, and one user, may ask for."""

    json_body: Annotated[Bytes, means("bytes of a JSON body")] = MIB
    push_body: Annotated[Bytes, means("bytes of a library push")] = 16 * MIB
    image: Annotated[Bytes, means("bytes of an image")] = 20 * MIB
    pdf: Annotated[Bytes, means("bytes of a PDF")] = 200 * MIB
    library_requests: Annotated[Count, means("requests a minute per user on /library/*")] = 100
    requests: Annotated[Count, means("requests a minute per user elsewhere, files included")] = 600
    anonymous_requests: Annotated[Count, means("requests a minute per address without a token")] = 600
    name: Annotated[Count, means("characters of a name")] = 200
    remark: Annotated[Count, means("characters of a remark")] = 4_000
    members: Annotated[Count, means("members of a book")] = 200
    page: Annotated[Count, means("entries of a page")] = 1_000


class Log(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written to stderr."""

    level: Annotated[Literal["debug", "info", "warning", "error"], means("the least that is logged")] = "info"
    format: Annotated[
        Literal["auto", "json", "text"], means("auto: readable on a terminal, JSON lines elsewhere")
    ] = "auto"
