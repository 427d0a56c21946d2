"""A chat that was restored from a backup: another epoch, and no id that was ever given out is given out again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.serving import PASSWORD, holdfast, quick_server, registers
from tests.chat.phone import Phone
from tests.faults.process import Server
from tests.faults.wire import Wire


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    both = quick_server(tmp_path / "data"), quick_server(tmp_path / "restored")
    yield both
    for server in both:
        server.end()


async def entered(address: str, name: str) -> tuple[str, str]:
    """The user and an access token."""
    await registers(address, name)
    async with Wire(address) as wire:
        answer = await wire.post("/auth/login", {"username": name, "password": PASSWORD})
        data = json.loads(answer.body)["data"]
        return data["userId"], data["accessToken"]


async def test_after_a_restore_the_epoch_is_another_and_ids_are_new(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    server, restored = servers
    doors = await server.start()
    _, ann = await entered(doors["http"], "ann")
    bob, _ = await entered(doors["http"], "bob")
    async with Phone(doors["ws"], ann) as at_ann:
        epoch = at_ann.heard[0]["epoch"]
        kept = await at_ann.say(bob, "in the backup", "kept")
        backup = tmp_path / "backup"
        ended = await asyncio.to_thread(holdfast, "backup", "--data", server.folder, backup)
        assert ended.code == 0, ended.err
        lost = [await at_ann.say(bob, f"after it {n}", f"lost{n}") for n in range(5)]
    server.terminate()
    assert await server.gone() == 0
    ended = await asyncio.to_thread(holdfast, "restore", "--data", restored.folder, backup)
    assert ended.code == 0, ended.err
    doors = await restored.start()
    _, ann = await entered(doors["http"], "ann")
    async with Phone(doors["ws"], ann) as at_ann:
        assert at_ann.heard[0]["epoch"] != epoch
        again = await at_ann.say(bob, "in the backup", "kept")
        assert again["serverMsgId"] == kept["serverMsgId"]
        anew = [await at_ann.say(bob, f"after it {n}", f"lost{n}") for n in range(5)]
        assert [ack["msgSeq"] for ack in anew] == [ack["msgSeq"] for ack in lost]
        assert not {ack["serverMsgId"] for ack in anew} & {ack["serverMsgId"] for ack in lost}
    ended = await asyncio.to_thread(holdfast, "check", "--data", restored.folder)
    assert ended.code == 0, ended.out
