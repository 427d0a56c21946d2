"""The options of `holdfast broker`: each is a setting too (docs/broker.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DOORS = "Doors"
WHO = "Who may come in, and do what"
PROTOCOL = "What clients may ask for"
TLS = "TLS"

Mqtt = Annotated[
    str | None,
    typer.Option(
        "--mqtt",
        metavar="HOST:PORT",
        help="Where MQTT over TCP listens.",
        show_default=False,
        rich_help_panel=DOORS,
    ),
]

MqttWs = Annotated[
    str | None,
    typer.Option(
        "--mqtt-ws",
        metavar="HOST:PORT",
        help="Where MQTT over WebSocket listens, at /mqtt.",
        show_default=False,
        rich_help_panel=DOORS,
    ),
]

Mqtts = Annotated[
    str | None,
    typer.Option(
        "--mqtts",
        metavar="HOST:PORT",
        help="Where MQTT over TLS listens; needs --tls-cert.",
        show_default=False,
        rich_help_panel=DOORS,
    ),
]

ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file",
        metavar="FILE",
        help="Write the doors' addresses here, as JSON, when ready.",
        show_default=False,
    ),
]

Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous",
        help="Let clients in that give no user name (and any name, without a password file).",
        rich_help_panel=WHO,
    ),
]

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="Users and their password hashes, one NAME:HASH a line: argon2id, or as mosquitto_passwd writes them.",
        show_default=False,
        rich_help_panel=WHO,
    ),
]

AclFile = Annotated[
    Path | None,
    typer.Option(
        "--acl-file",
        metavar="FILE",
        help="Who may publish and read what, in Mosquitto's syntax. Without it, everybody may everything.",
        show_default=False,
        rich_help_panel=WHO,
    ),
]

ProtocolVersions = Annotated[
    str | None,
    typer.Option(
        "--protocol-versions",
        metavar="3,4,5",
        help="The versions spoken: 3 (3.1), 4 (3.1.1), 5.  [default: all]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

MaxConnections = Annotated[
    int | None,
    typer.Option(
        "--max-connections",
        metavar="N",
        help="Connections at the same time; 0 = any number.  [default: 10000]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

ServerKeepalive = Annotated[
    int | None,
    typer.Option(
        "--server-keepalive",
        metavar="S",
        help="Keep-alive seconds that 5.0 clients are told to use; 0 = their own.",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

ReceiveMaximum = Annotated[
    int | None,
    typer.Option(
        "--receive-maximum",
        metavar="N",
        help="Unacknowledged messages that a 5.0 client may have on their way to the broker.  [default: 1024]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

MaxInflight = Annotated[
    int | None,
    typer.Option(
        "--max-inflight",
        metavar="N",
        help="Unacknowledged messages on their way to one client.  [default: 64]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

MaxPacketSize = Annotated[
    int | None,
    typer.Option(
        "--max-packet-size",
        metavar="N",
        help="Bytes of the largest packet that is read.  [default: 1 MiB]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

MaxPayload = Annotated[
    int | None,
    typer.Option(
        "--max-payload",
        metavar="N",
        help="Bytes of the largest payload that may be published.  [default: any]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

MaxQos = Annotated[
    int | None,
    typer.Option(
        "--max-qos",
        metavar="N",
        help="The highest QoS that may be used.  [default: 2]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

NoRetain = Annotated[
    bool, typer.Option("--no-retain", help="No message may be retained.", rich_help_panel=PROTOCOL)
]

NoEmptyClientId = Annotated[
    bool,
    typer.Option(
        "--no-empty-client-id", help="Every client must bring an id of its own.", rich_help_panel=PROTOCOL
    ),
]

TopicAliasMax = Annotated[
    int | None,
    typer.Option(
        "--topic-alias-max",
        metavar="N",
        help="Topic aliases that a client may use.  [default: 10]",
        show_default=False,
        rich_help_panel=PROTOCOL,
    ),
]

TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        metavar="FILE",
        help="Certificates of those who vouch for clients.",
        show_default=False,
        rich_help_panel=TLS,
    ),
]

TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        help="The server's certificate, and those between it and the root.",
        show_default=False,
        rich_help_panel=TLS,
    ),
]

TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key",
        metavar="FILE",
        help="The certificate's private key.",
        show_default=False,
        rich_help_panel=TLS,
    ),
]

TlsCrl = Annotated[
    Path | None,
    typer.Option(
        "--tls-crl",
        metavar="FILE",
        help="Revoked client certificates.",
        show_default=False,
        rich_help_panel=TLS,
    ),
]

TlsRequireClientCert = Annotated[
    bool,
    typer.Option(
        "--tls-require-client-cert", help="Only clients with a certificate come in.", rich_help_panel=TLS
    ),
]

TlsCnAsUsername = Annotated[
    bool,
    typer.Option(
        "--tls-cn-as-username",
        help="The common name of a client's certificate is its user name; no password is asked.",
        rich_help_panel=TLS,
    ),
]
