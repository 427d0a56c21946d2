"""A real PostgreSQL for the tests: a cluster of its own in a temporary folder, killed and started at will."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from glob import glob
from pathlib import Path

import psycopg


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres` of the newest PostgreSQL on this machine."""
    found = sorted(glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: float(path.split("/")[4]))
    if found:
        return Path(found[-1]).parent
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_alive(pid: str) -> bool:
    """Not gone, and not a zombie either (which holds nothing any more)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Postgresql:
    """One cluster. `kill` is SIGKILL to every process of it; `start` recovers from its write-ahead log."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self._bin = bin_folder
        self._data = folder / "data"
        self._log = folder / "log"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: dict[str, str | int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = pwd.getpwnam("postgres")
            shutil.chown(folder, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid}

    def create(self) -> None:
        subprocess.run(
            [
                self._bin / "initdb",
                "-D",
                self._data,
                "-U",
                "holdfast",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ],
            check=True,
            capture_output=True,
            cwd="/",
            **self._as_user,  # type: ignore[call-overload]
        )

    def start(self, *, largest_file: int | None = None) -> None:
        """`largest_file`: a write beyond so many bytes of any file is cut short, as on a full disk."""
        limit = [] if largest_file is None else ["prlimit", f"--fsize={largest_file}:"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *limit,
                    self._bin / "postgres",
                    *("-D", self._data, "-p", str(self._port), "-k", ""),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"),
                    *("-c", "shared_buffers=64MB", "-c", "logging_collector=off"),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._as_user,  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError(
                        f"PostgreSQL did not start:\n{self._log.read_text()[-3000:]}"
                    ) from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """SIGKILL to the postmaster and all its children, as if the machine had lost power. When this returns all of
        them are gone: a child that lives on would keep the shared memory, and with it the next start from starting."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # from here on it has no new children
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._process.pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        for pid in (*map(int, children), self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        while any(_is_alive(pid) for pid in children):
            time.sleep(0.005)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)

    def url(self, database: str) -> str:
        return f"postgresql://holdfast@127.0.0.1:{self._port}/{database}"

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_database(self, name: str) -> str:
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
