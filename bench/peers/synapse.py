"""Synapse (Python, Matrix's reference server) on a PostgreSQL of its own, its limits of requests lifted."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from bench.load.login import Login
from bench.peers import postgresql
from bench.peers.install import pypi
from bench.processes import Child, ChildFailed
from bench.servers import HOST, Server, call, free_port, peer

REQUIREMENTS = ("matrix-synapse==1.163.2", "psycopg2-binary>=2.9")
CLIENT = "/_matrix/client/v3"
_LIFTED = "{per_second: 1000000, burst_count: 1000000}"

CONFIG = """
server_name: bench
pid_file: {folder}/pid
listeners:
  - {{port: {port}, type: http, bind_addresses: ["{host}"], resources: [{{names: [client]}}]}}
database:
  name: psycopg2
  args: {{user: {user}, dbname: {name}, host: "{db_host}", port: {db_port}, cp_min: 5, cp_max: 10}}
log_config: {folder}/log.yaml
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
macaroon_secret_key: {secret}
form_secret: {secret}
report_stats: false
trusted_key_servers: []
enable_registration: true
enable_registration_without_verification: true
bcrypt_rounds: 4
presence: {{enabled: false}}
rc_message: {lifted}
rc_registration: {lifted}
rc_login: {{address: {lifted}, account: {lifted}, failed_attempts: {lifted}}}
rc_joins: {{local: {lifted}, remote: {lifted}}}
rc_invites: {{per_room: {lifted}, per_user: {lifted}, per_issuer: {lifted}}}
"""
LOG = """
version: 1
formatters: {plain: {format: "%(message)s"}}
handlers: {console: {class: logging.StreamHandler, formatter: plain}}
root: {level: ERROR, handlers: [console]}
"""


@contextmanager
def synapse(folder: Path) -> Iterator[Server]:
    python = pypi("synapse", *REQUIREMENTS) / "python"
    with postgresql.cluster(folder) as cluster:
        config, port = folder / "homeserver.yaml", free_port()
        config.write_text(_config(cluster.new_database("synapse"), folder, port))
        (folder / "log.yaml").write_text(LOG)
        command = [python, "-m", "synapse.app.homeserver", "--config-path", config]
        keys = [str(part) for part in (*command, "--generate-keys")]
        done = subprocess.run(keys, capture_output=True, text=True, check=False, timeout=60, cwd=folder)
        if done.returncode:
            raise ChildFailed(f"synapse: {done.stderr[-1_000:]}")
        with peer(Child(command, folder / "log", cwd=folder), port) as server:
            yield server


def _config(url: str, folder: Path, port: int) -> str:
    with psycopg.connect(url) as connection:
        info = connection.info
        return CONFIG.format(
            folder=folder,
            port=port,
            host=HOST,
            user=info.user,
            name=info.dbname,
            db_host=info.host,
            db_port=info.port,
            secret=secrets.token_hex(16),
            lifted=_LIFTED,
        )


def new_pairs(server: Server, count: int) -> list[Login]:
    """Two by two in a room of their own: who sends, who receives."""
    logins: list[Login] = []
    for number in range(count):
        sender, receiver = (_user(server, f"u{number}-{end}") for end in ("sends", "receives"))
        said = call(
            server,
            "POST",
            f"{CLIENT}/createRoom",
            {"preset": "trusted_private_chat", "invite": [receiver.user], "is_direct": True},
            _token(sender),
        )
        room = str(said["room_id"])
        call(server, "POST", f"{CLIENT}/rooms/{quote(room)}/join", {}, _token(receiver))
        logins += (Login(login.user, login.secret, room) for login in (sender, receiver))
    return logins


def _user(server: Server, name: str) -> Login:
    body = {"username": name, "password": secrets.token_urlsafe(12), "auth": {"type": "m.login.dummy"}}
    said = call(server, "POST", f"{CLIENT}/register", body)
    return Login(str(said["user_id"]), str(said["access_token"]))


def _token(login: Login) -> dict[str, str]:
    return {"Authorization": f"Bearer {login.secret}"}
