"""docs/broker.md: its programs run, its settings and options exist."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.broker.acl import parse_acl
from holdfast.broker.passwords import parse_passwords
from holdfast.settings_sources import rows
from tests.faults.process import ROOT, without_settings

PAGE = (ROOT / "docs" / "broker.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**without_settings(os.environ), "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_password_program_writes_a_line_that_is_read(tmp_path: Path) -> None:
    line = await asyncio.to_thread(run, PROGRAMS[0], tmp_path)
    assert parse_passwords(line).verify("alice", b"wonderland")


async def test_the_program_that_embeds_the_broker_runs(tmp_path: Path) -> None:
    said = (await asyncio.to_thread(run, PROGRAMS[1], tmp_path)).splitlines()
    assert said[0].startswith("MQTT at 127.0.0.1:")
    assert said[1] == "retained: home/news"


def test_the_acl_of_the_page_is_one() -> None:
    (rules,) = re.findall(r"```\n(topic .*?)```", PAGE, re.DOTALL)
    assert parse_acl(rules).users


def test_every_setting_and_option_of_the_page_exists() -> None:
    known = {row.name for row in rows()}
    for name in re.findall(r"`((?:broker|tls|listen|http)\.[a-z_]+)", PAGE):
        if name not in ("broker.sock",):
            assert name in known, name
    for name in re.findall(r"`\.([a-z_]+)`", PAGE):
        assert f"broker.{name}" in known, name
    from holdfast.cli import broker_looks, broker_options, options

    sources = "".join(
        Path(str(module.__file__)).read_text() for module in (broker_looks, broker_options, options)
    )
    for option in re.findall(r"`(--[a-z-]+)", PAGE):
        assert f'"{option}"' in sources, option


@pytest.mark.parametrize(
    "name", ["Broker", "BrokerAlone", "Hooks", "FileHooks", "Reason", "Refused", "Received"]
)
def test_what_the_package_promises_is_there(name: str) -> None:
    import holdfast.broker

    assert getattr(holdfast.broker, name).__name__ == name
    assert set(holdfast.broker.__all__) >= {name}
