"""A library after its server was restored from a backup: who saw more than the backup is told so, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.acceptance.serving import PASSWORD, holdfast, quick_server
from tests.faults.process import Server
from tests.library.conftest import Json, part, score
from tests.library.pdfs import md5, pdf

PATIENCE = 60.0
ANN = {"username": "ann", "password": PASSWORD}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """The one that was, and the one that is restored from its backup."""
    both = quick_server(tmp_path / "data"), quick_server(tmp_path / "restored")
    yield both
    for server in both:
        server.end()


@asynccontextmanager
async def logged_in(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    address = (await server.start())["http"]
    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=PATIENCE) as http:
        await http.post("/auth/register", json=ANN)
        login = (await http.post("/auth/login", json=ANN)).json()["data"]
        http.headers["Authorization"] = f"Bearer {login['accessToken']}"
        yield http


async def pushed(http: httpx.AsyncClient, body: Json) -> httpx.Response:
    return await http.post("/library/push", json=body)


async def test_a_device_that_is_ahead_of_a_restored_server_starts_over_and_brings_what_it_has(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    before, after = servers
    content = pdf()
    async with logged_in(before) as http:
        await http.post("/file/upload", content=content)
        first = {
            "clientLibraryVersion": 0,
            "scores": [score("kept", "A")],
            "instrumentScores": [part("A", "v", "I", pdfHash=md5(content))],
        }
        assert (await pushed(http, first)).status_code == 200
        saved = await asyncio.to_thread(holdfast, "backup", tmp_path / "b.tar", "--data", before.folder)
        assert saved.code == 0, saved.err
        later = {"clientLibraryVersion": 2, "scores": [score("after the backup", "B")]}
        assert (await pushed(http, later)).json()["newLibraryVersion"] == 3
        old = (await http.get("/library/pull")).json()
    before.terminate()
    await before.gone()

    restored = await asyncio.to_thread(holdfast, "restore", tmp_path / "b.tar", "--data", after.folder)
    assert restored.code == 0, restored.err
    async with logged_in(after) as http:
        refused = await pushed(http, {"clientLibraryVersion": 3, "epoch": old["epoch"]})
        assert (refused.status_code, refused.json()["reset"]) == (412, True)
        found = (await http.get("/library/pull", params={"since": 3, "epoch": old["epoch"]})).json()
        assert (found["isFullSync"], found["libraryVersion"]) == (True, 2)
        assert found["epoch"] != old["epoch"]
        assert [item["data"]["title"] for item in found["scores"]] == ["kept"]
        again = {
            "clientLibraryVersion": 2,
            "epoch": found["epoch"],
            "scores": [score("after the backup", "B")],
        }
        assert (await pushed(http, again)).json()["newLibraryVersion"] == 3
        assert (await http.get(f"/file/download?hash={md5(content)}")).content == content
    checked = await asyncio.to_thread(holdfast, "check", "--deep", "--data", after.folder)
    assert checked.code == 0, checked.out
