"""The user page of the ledger: its examples run as they stand, in their order, and do what the page says."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec

from tests.acceptance.serving import quick_server
from tests.conftest import missing
from tests.faults.process import ROOT

PAGE = ROOT / "docs" / "ledger.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


async def test_the_examples_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    for program, package in (("mosquitto_sub", "mosquitto-clients"), ("curl", "curl")):
        if shutil.which(program) is None:
            missing(package)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) >= 7
    server = quick_server(tmp_path / "data")
    try:
        doors = await server.start()
        host, _, port = doors["mqtt"].rpartition(":")
        script = 'set -eu\nsay() { echo; echo "== $1"; }\n' + "\n".join(
            f"say {number}\n{block}" for number, block in enumerate(blocks)
        )
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            timeout=90,
            cwd=tmp_path,
            env={**os.environ, "HTTP": f"http://{doors['http']}", "MQTT_HOST": host, "MQTT_PORT": port},
        )
        assert done.returncode == 0, done.stderr
        said = [part.partition("\n")[2] for part in done.stdout.split("\n== ")[1:]]
        assert '"ok":false' not in done.stdout, done.stdout
        assert '"name":"Our home"' in said[1]
        assert '"money":50.00' in said[1]
        assert said[2].count('"members":["') == 1
        assert said[3].endswith("GIF89a")
        assert '"action":"add"' in said[4]
        results = msgspec.json.decode(said[5])["data"]
        assert [(result["status"], result["reason"]) for result in results] == [
            (201, None),
            (403, "forbidden"),
        ]
        notified = msgspec.json.decode(said[6].strip().splitlines()[-1])
        assert (notified["type"], msgspec.json.decode(notified["content"])["category"]) == (
            "ADD_BILL",
            "bread",
        )
        answered = msgspec.json.decode(said[7].strip().splitlines()[-1])
        assert (answered["type"], msgspec.json.decode(answered["content"])["ok"]) == ("ADD_BILL_ACK", True)
    finally:
        server.end()
