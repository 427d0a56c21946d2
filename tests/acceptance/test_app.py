"""`holdfast app` as somebody uses it: real processes, a real server, its output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.client.world import UNLIMITED, World
from tests.faults.process import ROOT, Server, without_settings

PATIENCE = 60


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = Server(tmp_path / "server", *UNLIMITED)
    async with AsyncExitStack() as ends:
        ends.callback(server.end)
        yield World(server, await server.start(), tmp_path, ends)


def environment(folder: Path) -> dict[str, str]:
    return {
        **without_settings(os.environ),
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(folder / "data"),
        "COLUMNS": "120",
    }


class Shell:
    """A person at a terminal, with a home of his own."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self.home = world.folder / name
        self.home.mkdir()

    def __call__(self, *words: str, typed: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "app", *words],
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=self.home,
            env=environment(self.home),
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def registers(self) -> None:
        doors = self._world.doors
        self(
            "register",
            self._name,
            *("--server", doors["http"], "--mqtt", doors["mqtt"], "--chat", doors["ws"]),
            typed="correct horse\n",
        )


async def test_work_goes_on_without_a_server_and_settles_when_it_is_there(world: World) -> None:
    ada = Shell(world, "ada")
    ada("book", "add", "Home")
    assert "not logged in, 2 waiting" in ada("bill", "add", "Home", "12.50", "lunch")
    ada.registers()
    assert "●" in ada("bills", "Home")
    world.server.kill()
    assert "offline, 1 waiting" in ada("bill", "add", "Home", "3.20", "tea")
    shown = ada("bills", "Home")
    assert re.search(r"○ .* tea", shown)
    assert re.search(r"● .* lunch", shown)
    assert "no answer from" in ada("status")
    assert "no answer" in ada("sync", code=1)
    await world.restart()
    assert "the same as the server" in ada("sync")
    assert "○" not in ada("bills", "Home")


async def test_two_people_share_a_book(world: World) -> None:
    ada, bob = Shell(world, "ada"), Shell(world, "bob")
    ada.registers()
    bob.registers()
    ada("book", "add", "Home")
    found = re.search(r"code (\w+)", ada("book", "share", "Home"))
    assert found is not None
    assert "joined Home" in bob("join", found[1])
    wrote = re.search(r"\((\w+)\)", bob("bill", "add", "Home", "80", "shoes"))
    assert wrote is not None
    assert "shoes" in ada("bills", "Home")
    assert "only who made a bill" in ada("bill", "change", wrote[1], "--money", "8", code=1)
    bob("bill", "change", wrote[1], "--money", "75")
    assert " 75 " in ada("bills", "Home")
    bob("book", "leave", "Home")
    assert "no books yet" in bob("books")


def interrupted_import(ada: Shell, scans: Path) -> str:
    """Ctrl-C when some files have been taken in."""
    replica = ada.home / "data" / "holdfast" / "app.db.files"
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "app", "library", "import", str(scans)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ada.home,
        env=environment(ada.home),
    ) as importing:
        deadline = time.monotonic() + PATIENCE
        while not (replica.exists() and len(list(replica.iterdir())) > 5):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        importing.send_signal(signal.SIGINT)
        said, _ = importing.communicate(timeout=PATIENCE)
    assert importing.returncode == 130
    return said


async def test_an_import_shows_progress_and_goes_on_after_ctrl_c(world: World) -> None:
    ada = Shell(world, "ada")
    ada.registers()
    scans = ada.home / "scans"
    scans.mkdir()
    for number in range(40):
        (scans / f"Chopin - Etude {number:02}.pdf").write_bytes(b"%PDF-1.4\n" + os.urandom(1_500_000))
    (scans / "notes.pdf").write_text("no music")
    assert "the same command goes on" in interrupted_import(ada, scans)
    again = ada("library", "import", str(scans))
    assert "taking in" in again
    assert "left out notes.pdf" in again
    found = re.search(r"(\d+) taken in, (\d+) were here already", again)
    assert found is not None
    assert int(found[1]) + int(found[2]) == 40
    assert int(found[2]) >= 1
    assert "everything sent" in again
    assert "0 taken in, 40 were here already" in ada("library", "import", str(scans))
    assert ada("library", "list").count("Etude") == 40
    assert ada("library", "open", "Etude 07").strip().startswith("/")


async def test_messages_wait_and_arrive(world: World) -> None:
    ada, bob = Shell(world, "ada"), Shell(world, "bob")
    ada.registers()
    bob.registers()
    found = re.search(r"user +(\d+)", bob("status"))
    assert found is not None
    world.server.kill()
    assert "○" in ada("chat", "send", f"u:{found[1]}", "Dinner", "on", "Friday?")
    await world.restart()
    ada("chat", "list")
    assert "Dinner on Friday?" in bob("chat", "list")
    assert "Dinner on Friday?" in bob("chat", "read", "ada")
    assert "● " in bob("chat", "send", "ada", "Gladly")
    assert "Gladly" in ada("chat", "read", "bob")


def test_what_is_missing_is_said_in_one_sentence(tmp_path: Path) -> None:
    code = (
        "import sys; from importlib import util; real = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name in ABSENT else real(name, *a)\n"
        "sys.argv = ['holdfast', 'serve']\nfrom holdfast.cli.start import main\nmain()"
    )
    for absent, sentence in (
        ("{'typer', 'rich'}", "client's library alone"),
        ("{'litestar'}", "server is not"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("ABSENT", absent)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**without_settings(os.environ), "PYTHONPATH": str(ROOT)},
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 2
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
