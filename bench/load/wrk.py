"""HTTP load from `wrk` (Debian package): as many requests as a server answers, on a number of connections."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import tree
from bench.load.post import Post, fresh_prefix
from bench.peers.install import debian
from bench.processes import WORK, ChildFailed
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
    what: str | Post,
    connections: int,
    keep_alive: bool = True,
    headers: Mapping[str, str] | None = None,
    door: str = "http",
) -> Values:
    """Requests a second, and what each cost the server in processor time. `what`: a path to GET, or a body to send."""
    path = what if isinstance(what, str) else what.path
    command = [
        str(debian("wrk", "wrk")),
        *("--threads", "1", "--connections", str(connections), "--duration", f"{max(1, round(seconds))}s"),
        *("--timeout", "10s", "--script", str(LUA / ("report.lua" if what is path else "post.lua"))),
    ]
    sent = {**server.headers, **(headers or {})}
    if what is not path:
        sent["Content-Type"] = "application/json"
    if not keep_alive:
        sent["Connection"] = "close"
    for name, value in sent.items():
        command += ["--header", f"{name}: {value}"]
    with _arguments(what) as arguments:
        before = tree.cpu_seconds(server.pid)
        done = subprocess.run(
            [*command, f"http://{server.addresses[door]}{path}", *arguments],
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
    good = said.requests - said.statuses
    some_may_fail = isinstance(what, Post) and what.may_be_refused
    if (said.statuses and not some_may_fail) or (said.failed and keep_alive) or not good:
        raise ChildFailed(
            f"{said.statuses} of {said.requests} answers were errors, {said.failed} connections failed"
        )
    return {"rate": good / said.seconds, "cpu": used / good * 1e6}


def at_its_best(
    server: Server, seconds: float, *, what: str | Post, connections: tuple[int, ...] = (16, 64, 256)
) -> Values:
    """Each server has a number of connections that suits it best: the best of several, and which it was."""
    tried = {
        number: requests_per_second(server, seconds, what=what, connections=number) for number in connections
    }
    best = max(tried, key=lambda number: tried[number]["rate"])
    return {**tried[best], "connections": float(best)}


@contextmanager
def _arguments(what: str | Post) -> Iterator[list[str]]:
    """What `post.lua` is told."""
    if isinstance(what, str):
        yield []
        return
    with tempfile.NamedTemporaryFile("w", dir=WORK / "tmp", encoding="utf-8") as template:
        template.write(what.body)
        template.flush()
        yield ["--", what.method, template.name, fresh_prefix()]
