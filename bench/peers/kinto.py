"""Kinto (Python) on a PostgreSQL of its own, under gunicorn, with a bucket that a user of Basic auth may write."""

from __future__ import annotations

import base64
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from msgspec import Struct

from bench.peers import postgresql
from bench.peers.install import pypi
from bench.processes import Child, ChildFailed
from bench.servers import HOST, Server, call, free_port, peer

REQUIREMENTS = ("kinto[postgresql]==26.5.0", "gunicorn>=23")
COLLECTION = "/v1/buckets/bench/collections/bills"
RECORDS = f"{COLLECTION}/records"
PAGE = 1_000
BATCH = 500
FIRST_MS = 1_735_689_600_000
"""The last_modified of the first row that `fill` makes; each further one is a second later."""
WORKERS, THREADS = 2, 8
"""As many processes as the machines of this project have cores; threads for those that wait for PostgreSQL."""

INI = """
[app:main]
use = egg:kinto
kinto.includes =
kinto.storage_backend = kinto.core.storage.postgresql
kinto.storage_url = {url}
kinto.storage_pool_size = {pool}
kinto.storage_max_overflow = {pool}
kinto.permission_backend = kinto.core.permission.postgresql
kinto.permission_url = {url}
kinto.permission_pool_size = {pool}
kinto.permission_max_overflow = {pool}
kinto.cache_backend = kinto.core.cache.memory
kinto.userid_hmac_secret = {secret}
kinto.bucket_create_principals = system.Authenticated
kinto.paginate_by = {page}
kinto.batch_max_requests = {batch}
multiauth.policies = basicauth
[server:main]
use = egg:waitress#main
[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = plain
[logger_root]
level = ERROR
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = plain
[formatter_plain]
format = %(message)s
"""


class Kinto(Struct):
    server: Server
    url: str
    """Of its database: rows are put there, because through its door they would take minutes."""

    def fill(self, count: int) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "INSERT INTO objects (id, parent_id, resource_name, last_modified, data, deleted)"
                " SELECT gen_random_uuid()::text, '/buckets/bench/collections/bills', 'record',"
                " from_epoch(%s + n * 1000), jsonb_build_object('book_id', 'book', 'money', n * 0.01,"
                " 'type', 1, 'category', 'food', 'time', '2026-02-18', 'remark', 'lunch'), false"
                " FROM generate_series(1, %s) AS n",
                (FIRST_MS, count),
            )
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE objects")


@contextmanager
def kinto(folder: Path) -> Iterator[Kinto]:
    programs = pypi("kinto", *REQUIREMENTS)
    with postgresql.cluster(folder) as cluster:
        url = cluster.new_database("kinto")
        ini = folder / "kinto.ini"
        driver = url.replace("postgresql://", "postgresql+psycopg2://")
        ini.write_text(
            INI.format(url=driver, pool=THREADS, secret=secrets.token_hex(16), page=PAGE, batch=BATCH)
        )
        _migrate(programs, ini)
        port = free_port()
        command = [
            *(programs / "gunicorn", "--paste", ini, "--bind", f"{HOST}:{port}"),
            *("--workers", str(WORKERS), "--threads", str(THREADS), "--worker-class", "gthread"),
            *("--worker-tmp-dir", folder, "--keep-alive", "60", "--log-level", "error"),
        ]
        with peer(Child([str(part) for part in command], folder / "log"), port) as server:
            who = base64.b64encode(f"bench:{secrets.token_hex(8)}".encode()).decode()
            server.headers["Authorization"] = f"Basic {who}"
            call(server, "PUT", "/v1/buckets/bench")
            call(server, "PUT", COLLECTION)
            yield Kinto(server, url)


def _migrate(programs: Path, ini: Path) -> None:
    command = [str(programs / "kinto"), "migrate", "--ini", str(ini)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise ChildFailed(f"kinto migrate: {done.stderr[-1_000:]}")
