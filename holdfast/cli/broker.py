"""`holdfast broker`: the MQTT broker alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer

from holdfast import log
from holdfast.broker.alone import BrokerAlone
from holdfast.cli import broker_looks
from holdfast.cli.broker_options import (
    AclFile,
    Anonymous,
    MaxConnections,
    MaxInflight,
    MaxPacketSize,
    MaxPayload,
    MaxQos,
    Mqtt,
    Mqtts,
    MqttWs,
    NoEmptyClientId,
    NoRetain,
    PasswordFile,
    ProtocolVersions,
    ReadyFile,
    ReceiveMaximum,
    ServerKeepalive,
    TlsCa,
    TlsCert,
    TlsCnAsUsername,
    TlsCrl,
    TlsKey,
    TlsRequireClientCert,
    TopicAliasMax,
)
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.cli.running import keep_up
from holdfast.settings import Settings
from holdfast.settings_sources import Loaded

DOORS = ("listen.mqtt", "listen.mqtts", "listen.mqtt_ws", "listen.mqtt_wss")

broker = typer.Typer(invoke_without_command=True)


@broker.callback()
def run(
    context: typer.Context,
    mqtt: Mqtt = None,
    mqtt_ws: MqttWs = None,
    mqtts: Mqtts = None,
    data: Data = None,
    ready_file: ReadyFile = None,
    anonymous: Anonymous = False,
    password_file: PasswordFile = None,
    acl_file: AclFile = None,
    protocol_versions: ProtocolVersions = None,
    max_connections: MaxConnections = None,
    server_keepalive: ServerKeepalive = None,
    receive_maximum: ReceiveMaximum = None,
    max_inflight: MaxInflight = None,
    max_packet_size: MaxPacketSize = None,
    max_payload: MaxPayload = None,
    max_qos: MaxQos = None,
    no_retain: NoRetain = False,
    no_empty_client_id: NoEmptyClientId = False,
    topic_alias_max: TopicAliasMax = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_crl: TlsCrl = None,
    tls_require_client_cert: TlsRequireClientCert = False,
    tls_cn_as_username: TlsCnAsUsername = False,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Run the MQTT broker alone until SIGTERM or Ctrl-C; or look at one that runs, or at what a stopped one kept.

    Without a door it listens where `serve` does: MQTT on 127.0.0.1:1883, over WebSocket on 127.0.0.1:8083; as soon as
    you name one door, only the named ones open. Port 0 picks a free port. Somebody must be able to log in: name a
    password file, or let anyone in with --anonymous.

    Sessions, queues, retained messages and wills are in the data folder, and survive kill -9: an acknowledgement means
    that the message is on the disk. SIGHUP reads the password file, the ACL file and the certificates again.
    """
    if context.invoked_subcommand is not None:
        context.obj = data
        return
    flags: dict[str, str | None] = {
        "listen.mqtt": mqtt,
        "listen.mqtt_ws": mqtt_ws,
        "listen.mqtts": mqtts,
        "broker.anonymous": _yes(anonymous),
        "broker.password_file": _path(password_file),
        "broker.acl_file": _path(acl_file),
        "broker.versions": protocol_versions,
        "broker.max_connections": _number(max_connections),
        "broker.server_keep_alive": _number(server_keepalive),
        "broker.receive_maximum": _number(receive_maximum),
        "broker.max_inflight": _number(max_inflight),
        "broker.max_packet_size": _number(max_packet_size),
        "broker.max_payload": _number(max_payload),
        "broker.max_qos": _number(max_qos),
        "broker.retain": "false" if no_retain else None,
        "broker.empty_client_id": "false" if no_empty_client_id else None,
        "broker.topic_alias_max": _number(topic_alias_max),
        "tls.ca": _path(tls_ca),
        "tls.cert": _path(tls_cert),
        "tls.key": _path(tls_key),
        "tls.crl": _path(tls_crl),
        "tls.require_client_cert": _yes(tls_require_client_cert),
        "tls.cn_as_username": _yes(tls_cn_as_username),
    }
    loaded = read_settings(data, config, pairs, flags)
    log.configure(loaded.settings.log)
    settings = _named_doors_only(loaded)
    keep_up(lambda: BrokerAlone(settings), ready_file)


for look in broker_looks.COMMANDS:
    broker.command(look.__name__.replace("_", "-"))(look)


def _named_doors_only(loaded: Loaded) -> Settings:
    """The doors that somebody named, or the usual ones."""
    named = [door for door in DOORS if loaded.origins[door] != "default"]
    if not named:
        return loaded.settings
    closed = {door.removeprefix("listen."): "" for door in DOORS if door not in named}
    listen = msgspec.structs.replace(loaded.settings.listen, **closed)
    return msgspec.structs.replace(loaded.settings, listen=listen)


def _yes(given: bool) -> str | None:
    return "true" if given else None


def _number(given: int | None) -> str | None:
    return None if given is None else str(given)


def _path(given: Path | None) -> str | None:
    return None if given is None else str(given)
