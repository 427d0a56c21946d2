"""Writes docs/tour.md: runs what a new user would type, and keeps what came back. `python -m scripts.record_tour`"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tour.md"
WIDTH = "96"

Step = tuple[str, str]

BEFORE = """# A tour of `holdfast app`

Recorded by `python -m scripts.record_tour`: every line below a `$` is what the command really answered. ● is synced,
○ waits to be sent, ✗ was refused.
"""

OFFLINE_FIRST: tuple[Step, ...] = (
    ("## No server yet\nThere is nothing to log in to, and it works: everything is in a local file.", ""),
    ("", "holdfast app book add Home"),
    ("", 'holdfast app bill add Home 12.50 lunch --remark "with Li"'),
    ("", "holdfast app bill add Home 3.20 tea"),
    ("", "holdfast app bills Home"),
)
ONLINE: tuple[Step, ...] = (
    (
        "## A server\nSomewhere `holdfast serve` runs. What was written before belongs to who logs in, and goes out at once.",
        "",
    ),
    ("", "echo 'correct horse' | holdfast app register ada --server {http} --mqtt {mqtt} --chat {ws}"),
    ("", "holdfast app bills Home"),
    ("", "holdfast app status"),
    ("## Somebody else\nA code lets others join. Bob has a replica of his own.", ""),
    ("", "holdfast app book share Home"),
    (
        "",
        "echo 'correct horse' | holdfast app --replica bob.db register bob --server {http} --mqtt {mqtt} --chat {ws}",
    ),
    ("", "holdfast app --replica bob.db join {code}"),
    ("", "holdfast app --replica bob.db bill add Home 80 shoes"),
    ("", "holdfast app bills Home"),
    ("Only who wrote a bill changes it:", ""),
    ("", "holdfast app bill change {shoes} --money 8"),
)
AWAY: tuple[Step, ...] = (
    ("## The server goes away\nIt was stopped. Work goes on; what waits is counted.", ""),
    ("", "holdfast app bill add Home 27.90 books"),
    ("", "holdfast app bill delete {tea}"),
    ("", "holdfast app bills Home"),
    ("", "holdfast app status"),
    ("", "holdfast app --replica bob.db bill change {shoes} --money 75"),
)
BACK: tuple[Step, ...] = (
    ("## And comes back\nIt settles, and `sync` compares the replica with the server by a checksum.", ""),
    ("", "holdfast app sync"),
    ("", "holdfast app --replica bob.db sync"),
    ("", "holdfast app bills Home"),
)
LIBRARY_1: tuple[Step, ...] = (
    (
        "## A folder of PDFs\n30 scans of 4 MB each. Ctrl-C while it runs, then the same command again: it goes on where it was.",
        "",
    ),
)
LIBRARY_2: tuple[Step, ...] = (
    ("", "holdfast app library import scans"),
    ("", "holdfast app library list | head -5"),
    ("A third time there is nothing left to do:", ""),
    ("", "holdfast app library import scans"),
    ("", 'holdfast app library setlist Friday "Etude 01" "Etude 02"'),
)
CHAT: tuple[Step, ...] = (
    ("## Messages", ""),
    ("", "holdfast app chat send {bob} Dinner on Friday?"),
    ("", "holdfast app --replica bob.db chat list"),
    ("", "holdfast app --replica bob.db chat read ada"),
    ("", "holdfast app --replica bob.db chat send ada Gladly"),
    ("", "holdfast app chat read bob"),
)


class Tour:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = {"code": "", "tea": "", "shoes": "", "bob": ""}
        self.page = [BEFORE]
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "COLUMNS": WIDTH,
            "LANG": "C.UTF-8",
        }
        self.server: subprocess.Popen[bytes] | None = None

    def start_server(self) -> None:
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        doors = [part for door in ("http", "mqtt", "ws", "mqtt-ws") for part in (f"--{door}", self._at(door))]
        command = [
            "holdfast",
            "serve",
            "--data",
            str(self.folder / "server"),
            "--ready-file",
            str(ready),
            *doors,
        ]
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environment, cwd=self.folder
            )
        while not ready.exists():
            time.sleep(0.05)
        self.words.update(json.loads(ready.read_text()))

    def _at(self, door: str) -> str:
        return self.words.get(door.replace("-", "_")) or "127.0.0.1:0"

    def stop_server(self) -> None:
        assert self.server is not None
        self.server.terminate()
        self.server.wait()

    def take(self, steps: tuple[Step, ...]) -> None:
        for text, command in steps:
            if text:
                self.page.append(text)
            if command:
                typed = command.format(**self.words)
                self.show(typed, self.run(typed))

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.folder,
            timeout=120,
            check=False,
        )
        said = done.stdout + done.stderr
        self.learn(said)
        return said

    def interrupted(self, command: str, seconds: float) -> None:
        """Ctrl-C after a while."""
        process = subprocess.Popen(
            command.split(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        self.show(command, said)

    def learn(self, said: str) -> None:
        for word, pattern in (
            ("code", r"code ([A-Z0-9]{8})"),
            ("tea", r"wrote 3.20 tea \((\w+)\)"),
            ("shoes", r"wrote 80 shoes \((\w+)\)"),
        ):
            if found := re.search(pattern, said):
                self.words[word] = found[1]

    def show(self, command: str, said: str) -> None:
        lines = [line.rstrip() for line in said.rstrip().splitlines()]
        self.page.append("```\n$ " + "\n".join((command, *lines)) + "\n```")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-tour-"))
    tour = Tour(folder)
    try:
        tour.take(OFFLINE_FIRST)
        tour.start_server()
        tour.take(ONLINE)
        tour.words["bob"] = (
            "u:" + re.findall(r"user +(\d+)", tour.run("holdfast app --replica bob.db status"))[0]
        )
        tour.stop_server()
        tour.take(AWAY)
        tour.start_server()
        tour.take(BACK)
        scans = folder / "scans"
        scans.mkdir()
        for number in range(1, 31):
            (scans / f"Chopin - Etude {number:02}.pdf").write_bytes(
                b"%PDF-1.4\n" + os.urandom(4_000_000) + b"\n%%EOF\n"
            )
        tour.take(LIBRARY_1)
        tour.interrupted("holdfast app library import scans", 2.0)
        tour.take(LIBRARY_2)
        tour.take(CHAT)
        PAGE.write_text("\n\n".join(tour.page) + "\n", "utf-8")
    finally:
        if tour.server is not None:
            tour.server.kill()
            tour.server.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
