"""One person's library: pushes of 1,000 changes, full pulls, a small look-up, and large files up and down."""

from __future__ import annotations

from bench import libraries
from bench.libraries import CHANGES, ENTITIES, FILE_BYTES, Library
from bench.load import wrk
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values

EACH = Measure("each_ms", "ms", "each", more_is_better=False)
CPU = Measure("cpu", "µs", "server's processor time each", more_is_better=False)
FILE = (
    Measure("rate", "MB/s"),
    Measure("cpu", "ms", "server's processor time", more_is_better=False),
    Measure("grown", "MiB", "memory at its peak above what it was", more_is_better=False),
)
FLAT_MIB = 16
FILES = frozenset((OURS, "nginx"))
TRANSFERS = 9  # short ones: one says little


def small(library: Library, seconds: float) -> Values:
    return wrk.requests_per_second(library.server, seconds, what=library.small, connections=64)


def upload_first(library: Library) -> None:
    """Both have a file that is there to be downloaded."""
    library.upload(0)


SCENARIO = Scenario(
    "library",
    "a library's pushes and pulls, and its files",
    (
        Contender(OURS, libraries.ours),
        Contender("kinto", libraries.kinto),
        Contender("nginx", libraries.nginx),
        Contender("noop", libraries.noop),
    ),
    (
        Step(
            "push",
            f"pushes of {CHANGES:,} changes, one after the other",
            (Measure("rate", "changes/s"), EACH),
            Library.push,
            only=frozenset((OURS,)),
        ),
        Step(
            "pull",
            f"full pulls of {ENTITIES:,} entities",
            (Measure("rate", "rows/s"), EACH),
            Library.pull,
            only=frozenset((OURS, "kinto")),
        ),
        Step(
            "check-hash",
            "GET /file/checkHash beside a request that does nothing; 64 connections",
            (Measure("rate", "requests/s"), CPU),
            small,
            only=frozenset((OURS, "noop")),
        ),
        Step("upload", f"{FILE_BYTES // 10**6} MB up", FILE, Library.upload, only=FILES, repeat=TRANSFERS),
        Step(
            "download",
            f"{FILE_BYTES // 10**6} MB down",
            FILE,
            Library.download,
            prepare=upload_first,
            only=FILES,
            repeat=TRANSFERS,
        ),
    ),
    (
        Target("push", "rate", at_least=20_000),
        Target("pull", "rate", at_least=3, beside="kinto"),
        Target("check-hash", "rate", at_least=0.9, beside="noop"),
        Target("upload", "rate", at_least=0.8, beside="nginx"),
        Target("upload", "grown", at_most=FLAT_MIB),
        Target("download", "rate", at_least=0.8, beside="nginx"),
        Target("download", "grown", at_most=FLAT_MIB),
    ),
    (
        f"limits lifted: {' '.join(f'--set {name}={value}' for name, value in libraries.LIFTED.items())}",
        "kinto: pages of 1,000; gunicorn with 2 processes of 8 threads",
        "nginx: PUT and GET of a file; it neither hashes, nor syncs, nor looks at what it is sent",
    ),
)
