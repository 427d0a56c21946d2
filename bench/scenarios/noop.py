"""Our own ceiling: an authenticated request that does nothing, beside the framework that we stand on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import memory
from bench.load import wrk
from bench.processes import Child
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values
from bench.servers import Server, free_port, holdfast, new_user, peer

LIFTED = {"limits.requests": 10**9, "auth.access_seconds": 86_400}
CONNECTIONS = (1, 16, 64, 256)
RATE = Measure("rate", "requests/s")
CPU = Measure("cpu", "µs", "server's processor time each", more_is_better=False)
IDLE = 1_000


@contextmanager
def ours(folder: Path) -> Iterator[Server]:
    with holdfast(folder, LIFTED) as server:
        server.headers = new_user(server)
        server.paths["noop"] = "/auth/me"
        yield server


@contextmanager
def module(name: str, folder: Path) -> Iterator[Server]:
    port = free_port()
    with peer(Child([sys.executable, "-m", name, str(port)], folder / "log"), port) as server:
        server.paths["noop"] = "/noop"
        yield server


def requests(server: Server, seconds: float, *, connections: int, keep_alive: bool) -> Values:
    return wrk.requests_per_second(
        server, seconds, what=server.paths["noop"], connections=connections, keep_alive=keep_alive
    )


def idle_connections(server: Server, _seconds: float) -> Values:
    greeting = f"GET {server.paths['noop']} HTTP/1.1\r\nHost: bench\r\n"
    greeting += "".join(f"{name}: {value}\r\n" for name, value in server.headers.items())
    return memory.per_connection(server.pid, server.http, f"{greeting}\r\n".encode(), IDLE)


def step(connections: int, *, keep_alive: bool) -> Step[Server]:
    how = "keep-alive" if keep_alive else "a connection each"
    return Step(
        f"{'keep' if keep_alive else 'close'}-{connections}",
        f"{how}, {connections} at once",
        (RATE, CPU),
        partial(requests, connections=connections, keep_alive=keep_alive),
    )


SCENARIO = Scenario(
    "noop",
    "authenticated requests that do nothing (GET /auth/me with a Bearer token)",
    (
        Contender(OURS, ours),
        Contender("litestar", partial(module, "bench.peers.bare_litestar")),
        Contender("granian", partial(module, "bench.peers.bare_granian")),
        Contender("trivial", partial(module, "bench.load.trivial_server"), ceiling=True),
    ),
    (
        *(step(connections, keep_alive=True) for connections in CONNECTIONS),
        *(step(connections, keep_alive=False) for connections in CONNECTIONS),
        Step(
            "idle",
            f"{IDLE:,} idle keep-alive connections",
            (
                Measure("kib", "KiB", "memory of each", more_is_better=False),
                Measure("mib", "MiB", "the whole server with them", more_is_better=False),
            ),
            idle_connections,
            only=frozenset({OURS, "litestar", "granian"}),
            warm_up=False,
            repeat=1,  # memory that the first thousand left behind would be used again,
        ),
    ),
    (Target("keep-64", "rate", at_least=0.8, beside="litestar"),),
    (
        f"rate limits lifted: {' '.join(f'--set {name}={value}' for name, value in LIFTED.items())}",
        "the peers neither authenticate nor limit, count, name or time a request; load from wrk, one thread",
    ),
)
