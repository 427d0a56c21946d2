"""What `pip install holdfast` has to bring for the client: nothing of the server."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT = """
import sys

SERVER = {names!r}


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in SERVER:
            raise ModuleNotFoundError(f"{{name}} is not installed", name=name)


sys.meta_path.insert(0, Absent())
import asyncio
import pathlib
import tempfile
from holdfast.client import Holdfast


async def main():
    with tempfile.TemporaryDirectory() as folder:
        async with Holdfast(pathlib.Path(folder) / "home.db") as app:
            book = await app.ledger.add_book("Home")
            await app.ledger.add_bill(book.id, "12.50", "lunch")
            print(len(await app.ledger.bills(book.id)))


asyncio.run(main())
print(sorted(SERVER.intersection(name.partition(".")[0] for name in sys.modules)))
"""

SERVER_MODULES = {
    "apsw",
    "argon2",
    "click",
    "cryptography",
    "granian",
    "jwt",
    "litestar",
    "multipart",
    "obstore",
    "picows",
    "prometheus_client",
    "psycopg",
    "psycopg_pool",
    "redis",
    "rich",
    "structlog",
    "typer",
    "uvloop",
    "zstandard",
}


def test_the_client_works_where_no_dependency_of_the_server_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(names=SERVER_MODULES)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "[]"]


def test_the_core_asks_for_three_libraries_and_the_server_is_an_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    assert names == {"httpx", "msgspec", "websockets"}
    assert {"client", "app", "server"} <= set(project["optional-dependencies"])
    assert any(
        requirement.startswith("granian") for requirement in project["optional-dependencies"]["server"]
    )
