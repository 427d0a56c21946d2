"""How the outside reaches us: listeners, the HTTP server, limits, what is logged."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from holdfast.settings.fields import MIB, Address, Bytes, Count, Door, Seconds, means


class Listen(Struct, frozen=True, forbid_unknown_fields=True):
    """Where each door listens. Port 0 picks a free one."""

    http: Annotated[Address, means("HTTP: accounts, ledger, library, chat queries, metrics")] = (
        "127.0.0.1:8000"
    )
    mqtt: Annotated[Door, means("MQTT over TCP; empty: closed")] = "127.0.0.1:1883"
    mqtts: Annotated[Door, means("MQTT over TLS, with tls.cert and tls.key; empty: closed")] = ""
    ws: Annotated[Address, means("chat over WebSocket, at /ws")] = "127.0.0.1:9001"
    mqtt_ws: Annotated[Door, means("MQTT over WebSocket, at /mqtt; empty: closed")] = "127.0.0.1:8083"
    mqtt_wss: Annotated[Door, means("MQTT over WebSocket and TLS, at /mqtt; empty: closed")] = ""


class Tls(Struct, frozen=True, forbid_unknown_fields=True):
    """TLS of the MQTT doors: PEM files."""

    cert: Annotated[str, means("the server's certificate, and those between it and the root")] = ""
    key: Annotated[str, means("the certificate's private key; empty: it is in the file of tls.cert")] = ""
    ca: Annotated[str, means("certificates of those who vouch for clients; empty: clients show none")] = ""
    crl: Annotated[str, means("revoked client certificates; a revocation list of each issuer")] = ""
    require_client_cert: Annotated[bool, means("only clients with a certificate come in")] = False
    cn_as_username: Annotated[
        bool, means("the common name of a client's certificate is its user name, and no password is asked")
    ] = False


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
    push_changes: Annotated[Count, means("changes and deletions in a library push")] = 50_000
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
