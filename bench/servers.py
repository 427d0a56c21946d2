"""Servers that are measured over the network: ours as anybody starts it, a peer on a free port."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.processes import ROOT, Child, running

HOST = "127.0.0.1"


class Server(Struct):
    """A running server: its process, where it answers, and what a request of a user carries."""

    pid: int
    addresses: dict[str, str]
    folder: Path
    headers: dict[str, str] = {}
    paths: dict[str, str] = {}
    """What the scenario's steps call, where the contenders have different paths for it."""

    @property
    def http(self) -> str:
        return self.addresses["http"]


@contextmanager
def holdfast(folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[Server]:
    """`holdfast serve` on free ports with an empty data folder; `settings` as with `--set`."""
    ready = folder / "ready.json"
    command: list[str | Path] = [sys.executable, "-m", "holdfast", "serve", "--data", folder / "data"]
    for door in ("http", "mqtt", "ws", "mqtt-ws"):
        command += [f"--{door}", f"{HOST}:0"]
    for name, value in (settings or {}).items():
        command += ["--set", f"{name}={value}"]
    child = Child([*command, "--ready-file", ready], folder / "log")
    with running(child):

        def addresses() -> dict[str, str] | None:
            return msgspec.json.decode(ready.read_bytes(), type=dict[str, str]) if ready.exists() else None

        yield Server(child.pid, child.wait_until(addresses), folder / "data")


@contextmanager
def peer(child: Child, port: int, *, door: str = "http", seconds: float = 60.0) -> Iterator[Server]:
    """A peer's process, ready as soon as its port takes connections."""
    with running(child):
        child.wait_until(lambda: True if accepts(port) else None, seconds)
        yield Server(child.pid, {door: f"{HOST}:{port}"}, child.log.parent)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 0.2).close()
    except OSError:
        return False
    return True


class Refused(Exception):
    """A server answered a request of the preparation with something else than success."""


def call(
    server: Server, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> dict[str, object]:
    """One JSON request, for preparing a scenario; never for measuring."""
    connection = http.client.HTTPConnection(server.http, timeout=30)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(
            method, path, sent, {"Content-Type": "application/json", **server.headers, **(headers or {})}
        )
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise Refused(f"{method} {path}: {answer.status} {raw[:300]!r}")
    return msgspec.json.decode(raw, type=dict[str, object]) if raw else {}


def new_user(server: Server, name: str = "bench") -> dict[str, str]:
    """A user of ours, made beside the running server as an operator would: the headers of a request of theirs."""

    def command(*arguments: str, typed: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments, name, "--data", server.folder],
            input=typed,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=30,
            check=False,
        )
        if done.returncode:
            raise Refused(f"holdfast {' '.join(arguments)}: {done.stderr}")
        return done.stdout.strip()

    command("user", "add", typed=f"{secrets.token_urlsafe(16)}\n")
    return {"Authorization": f"Bearer {command('token')}"}
