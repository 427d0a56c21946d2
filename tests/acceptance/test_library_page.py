"""The examples of docs/library.md run as they stand there, against a real server."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.serving import quick_server
from tests.conftest import missing
from tests.faults.process import ROOT, Server

PAGE = ROOT / "docs" / "library.md"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = quick_server(tmp_path / "data")
    yield made
    made.end()


async def test_every_example_of_the_page_works(server: Server, tmp_path: Path) -> None:
    for tool in ("bash", "curl", "sha256sum", "cmp"):
        if shutil.which(tool) is None:
            missing(tool)
    doors = await server.start()
    examples = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(examples) >= 7
    script = "set -euo pipefail\n" + "\necho; echo ---\n".join(examples)
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"HOLDFAST": f"http://{doors['http']}", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.split("---")
    assert '"accepted":["s-1","i-1","l-1","e-1"]' in said[1]
    assert '"newLibraryVersion":4' in said[1]
    assert '"title":"Nocturne"' in said[2]
    assert '"serverLibraryVersion":4' in said[3]
    assert '"accepted":["i-1"]' in said[4]
    assert '"claimable":true' in said[5]
    assert '"exists":true}' in said[5].splitlines()[-1]
    assert "upload-hash: " in said[6].lower()
