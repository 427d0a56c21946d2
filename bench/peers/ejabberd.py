"""ejabberd (Erlang), with its message archive in a PostgreSQL of its own, or with no archive at all; no shapers.

Started as a plain Erlang program without a node's name: no epmd, nothing that outlives it.
"""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.load.login import Login
from bench.peers import postgresql
from bench.peers.install import PeerUnavailable, debian
from bench.processes import Child
from bench.servers import HOST, Refused, Server, free_port, peer
from tests.servers.postgresql import Postgresql

DOMAIN = "bench"
SCHEMA = Path("/usr/share/ejabberd/sql/pg.sql")
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")

CONFIG = """
hosts: ["{domain}"]
loglevel: error
auth_method: internal
auth_password_format: plain
max_fsm_queue: 1000000
listen:
  - {{port: {c2s}, ip: "{host}", module: ejabberd_c2s, shaper: none, access: all, max_stanza_size: 262144, backlog: 2048}}
  - {{port: {api}, ip: "{host}", module: ejabberd_http, request_handlers: {{"/api": mod_http_api}}}}
api_permissions:
  "bench": {{from: [mod_http_api], who: all, what: ["register"]}}
modules:
  mod_stream_mgmt: {{max_ack_queue: infinity, resume_timeout: 0}}
"""
ARCHIVE = """
  mod_mam: {{db_type: sql, default: always, assume_mam_usage: true}}
sql_type: pgsql
sql_server: "{host}"
sql_port: {port}
sql_database: "{name}"
sql_username: "{user}"
"""


@contextmanager
def with_archive(folder: Path) -> Iterator[Server]:
    """A message is in the archives of both ends, committed and synced, before its sender's ack."""
    debian(
        "ejabberdctl", "ejabberd", "erlang-p1-pgsql"
    )  # its schema has to be here before its database is made
    if not SCHEMA.exists():
        raise PeerUnavailable(f"ejabberd's schema is not at {SCHEMA}")
    with postgresql.cluster(folder) as cluster, _ejabberd(folder, _archive(cluster)) as server:
        yield server


@contextmanager
def without_archive(folder: Path) -> Iterator[Server]:
    """Messages are passed on and kept nowhere."""
    with _ejabberd(folder, "") as server:
        yield server


def _archive(cluster: Postgresql) -> str:
    url = cluster.new_database("ejabberd")
    with psycopg.connect(url) as connection:
        connection.execute(SCHEMA.read_text().encode())
        info = connection.info
        return ARCHIVE.format(host=info.host, port=info.port, name=info.dbname, user=info.user)


@contextmanager
def _ejabberd(folder: Path, archive: str) -> Iterator[Server]:
    debian("ejabberdctl", "ejabberd", "erlang-p1-pgsql")
    c2s, api = free_port(), free_port()
    config = folder / "ejabberd.yml"
    config.write_text(CONFIG.format(domain=DOMAIN, host=HOST, c2s=c2s, api=api) + archive)
    command: list[str | Path] = [
        *(debian("erl", "erlang-base"), "-noinput", "+K", "true", "+P", "250000", "+sbwt", "none"),
        *("-mnesia", "dir", f'"{folder / "mnesia"}"', "-s", "ejabberd"),
    ]
    env = {
        "ERL_LIBS": str(LIBRARIES),
        "ERL_CRASH_DUMP": str(folder / "crash"),
        "EJABBERD_CONFIG_PATH": str(config),
        "EJABBERD_LOG_PATH": str(folder / "ejabberd.log"),
        "HOME": str(folder),
    }
    with peer(Child(command, folder / "log", env=env), c2s, door="xmpp") as server:
        server.addresses["http"] = f"{HOST}:{api}"
        yield server


def new_users(server: Server, count: int, first: int = 0) -> list[Login]:
    connection = http.client.HTTPConnection(server.http, timeout=30)
    try:
        return [_register(connection, f"u{number}") for number in range(first, first + count)]
    finally:
        connection.close()


def _register(connection: http.client.HTTPConnection, name: str) -> Login:
    login = Login(name, secrets.token_urlsafe(8))
    body = json.dumps({"user": name, "host": DOMAIN, "password": login.secret})
    connection.request("POST", "/api/register", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = answer.read()
    if answer.status >= 300:
        raise Refused(f"register {name}: {answer.status} {said[:300]!r}")
    return login
