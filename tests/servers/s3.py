"""A real S3 server for the tests: moto in a process of its own, on 127.0.0.1."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from urllib.error import URLError

from tests.servers.postgresql import free_port

START_SECONDS = 60


class S3:
    def __init__(self) -> None:
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self._port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(self.endpoint, timeout=2).close()
            except (URLError, OSError):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError("the S3 server did not start") from None
                time.sleep(0.05)
            else:
                return

    def make_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
