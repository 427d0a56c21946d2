"""Plain HTTP load from `wrk` (Debian package): as many requests as a server answers, on a number of connections."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import tree
from bench.peers.install import debian
from bench.processes import ChildFailed
from bench.scenario import Values
from bench.servers import Server

LUA = Path(__file__).parent


class Report(Struct, frozen=True):
    requests: int
    seconds: float
    bytes: int
    failed: int
    statuses: int


def requests_per_second(
    server: Server,
    seconds: float,
    *,
    path: str,
    connections: int,
    keep_alive: bool = True,
    headers: Mapping[str, str] | None = None,
    script: str = "report.lua",
    door: str = "http",
) -> Values:
    """Requests a second, and what each cost the server in processor time.

    `script` is a file in `bench/load/` that makes other requests than GET; it ends as `report.lua` does.
    """
    command = [
        str(debian("wrk", "wrk")),
        *("--threads", "1", "--connections", str(connections), "--duration", f"{max(1, round(seconds))}s"),
        *("--timeout", "10s", "--script", str(LUA / script)),
    ]
    sent = {**server.headers, **(headers or {})}
    if not keep_alive:
        sent["Connection"] = "close"
    for name, value in sent.items():
        command += ["--header", f"{name}: {value}"]
    before = tree.cpu_seconds(server.pid)
    done = subprocess.run(
        [*command, f"http://{server.addresses[door]}{path}"],
        capture_output=True,
        check=False,
        timeout=seconds + 30,
        start_new_session=True,
    )
    used = tree.cpu_seconds(server.pid) - before
    if done.returncode:
        raise ChildFailed(f"wrk ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    said = msgspec.json.decode(done.stdout.splitlines()[-1], type=Report)
    # wrk counts the end that `Connection: close` asked for as a read error when it comes with the answer
    if said.statuses or (said.failed and keep_alive) or not said.requests:
        raise ChildFailed(
            f"{said.statuses} of {said.requests} answers were errors, {said.failed} connections failed"
        )
    return {"rate": said.requests / said.seconds, "cpu": used / said.requests * 1e6}
