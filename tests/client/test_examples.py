"""Every example of README.md and docs/client.md runs, in its order, against a real server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.world import World
from tests.faults.process import ROOT, without_settings

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PATIENCE = 60


def examples(page: str) -> list[str]:
    return PYTHON.findall((ROOT / page).read_text("utf-8"))


def for_this(world: World, code: str) -> str:
    """The same words, said to the test's server."""
    for usual, door in (("127.0.0.1:8000", "http"), ("127.0.0.1:1883", "mqtt"), ("127.0.0.1:9001", "ws")):
        code = code.replace(usual, world.doors[door])
    return code


def run(world: World, folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", for_this(world, code)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**without_settings({"PATH": ""}), "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    return done.stdout


async def test_the_examples_of_the_page_run_one_after_the_other(world: World, tmp_path: Path) -> None:
    said = [run(world, tmp_path, code) for code in examples("docs/client.md")]
    assert said[0] == "[(Decimal('12.50'), 'lunch')]\n"
    assert re.fullmatch(r"[A-Z0-9]{8}\n", said[1])
    assert said[2] == "12.50 spent in 1 bills\n"
    assert said[3] == "2\n"
    assert said[5].startswith("True 0 0 ")
    assert said[6].strip().endswith(".files/" + said[6].strip()[-32:])
    assert "'Tuesday at eight', True)" in said[7]


async def test_ten_lines_make_a_bill_offline_and_another_ten_watch_it_live(
    world: World, tmp_path: Path
) -> None:
    offline, live = examples("README.md")
    assert len([line for line in offline.splitlines() if line.strip()]) <= 10
    assert run(world, tmp_path, offline) == "12.50 lunch waits for the server\n"
    ada = await world.person("ada")
    await ada.logout()
    sees_it_settle(for_this(world, live), tmp_path)


def sees_it_settle(code: str, folder: Path) -> None:
    """The bill is synced by itself, and whoever watches sees that too."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**without_settings({"PATH": ""}), "PYTHONPATH": str(ROOT)},
    ) as watching:
        try:
            assert watching.stdout is not None
            lines = iter(watching.stdout)
            assert "'lunch'" in next(lines)
            while "'lunch', 1)]" not in next(lines):
                pass
        finally:
            watching.kill()


@pytest.mark.parametrize("page", ["docs/client.md", "README.md"])
def test_there_are_examples(page: str) -> None:
    assert examples(page)
