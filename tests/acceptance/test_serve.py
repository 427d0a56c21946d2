"""`holdfast serve`: starts whole or not at all, stops in time, starts over when the disk fails it."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.acceptance.serving import holdfast, logs_in, quick_server, registers
from tests.conftest import missing
from tests.faults.process import Server
from tests.faults.wire import Cut, Wire


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = quick_server(tmp_path / "data")
    yield made
    made.end()


def one_sentence(text: str) -> str:
    """What an operator reads: one line, with our name before it, and no stack."""
    (line,) = text.splitlines()
    assert line.startswith("holdfast: ")
    return line


# -- starting


async def test_the_ready_file_and_the_output_say_where_each_door_is(server: Server) -> None:
    server.ready_file.write_text("left by an earlier start")
    server.spawn()
    doors = await server.ready()
    assert doors["http"].startswith("127.0.0.1:")
    assert not doors["http"].endswith(":0")
    assert f"holdfast: http at {doors['http']}" in server.last_words().splitlines()
    async with Wire(doors["http"]) as wire:
        assert (await wire.get("/readyz")).status == 200


def test_a_port_in_use_is_one_sentence_and_nothing_is_left(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        ready = tmp_path / "ready"
        ended = holdfast("serve", "--data", tmp_path / "data", "--http", address, "--ready-file", ready)
    assert ended.code == 2
    assert f"{address} is in use" in one_sentence(ended.err)
    assert not (tmp_path / "data" / "holdfast.db").exists()
    assert not ready.exists()


@pytest.mark.parametrize("folder", ["a-file/data", "/proc/holdfast-data"])
def test_a_folder_that_cannot_be_written_is_one_sentence(folder: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    ended = holdfast("serve", "--data", tmp_path / folder, "--http", "127.0.0.1:0")
    assert ended.code == 2
    assert "data folder" in one_sentence(ended.err)


async def test_a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on(server: Server) -> None:
    doors = await server.start()
    ended = await asyncio.to_thread(holdfast, "serve", "--data", server.folder, "--http", "127.0.0.1:0")
    assert ended.code == 2
    assert f"in use by another holdfast (process {server.pid})" in one_sentence(ended.err)
    async with Wire(doors["http"]) as wire:
        assert (await wire.get("/readyz")).status == 200


def test_a_store_from_a_newer_version_is_refused_and_not_changed(tmp_path: Path) -> None:
    assert holdfast("migrate", "--data", tmp_path).code == 0
    with closing(sqlite3.connect(tmp_path / "holdfast.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO schema_migration VALUES ('feed', 99, 'future', 0)")
    ended = holdfast("serve", "--data", tmp_path, "--http", "127.0.0.1:0")
    assert ended.code == 2
    assert "from a newer holdfast" in one_sentence(ended.err)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--set", "auth.registrations=open"], "auth.registrations"),
        (["--set", "store.queue_limit=none"], "store.queue_limit"),
        (["--http", "nowhere"], "nowhere"),
        (["--config", "/nonexistent.toml"], "/nonexistent.toml"),
    ],
)
def test_a_setting_that_is_wrong_is_one_sentence(options: list[str], says: str, tmp_path: Path) -> None:
    ended = holdfast("serve", "--data", tmp_path / "data", *options)
    assert ended.code == 2
    assert says in one_sentence(ended.err)
    assert not (tmp_path / "data").exists()


# -- stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_time_and_what_is_under_way_is_finished(
    number: int, tmp_path: Path
) -> None:
    """With connections that lie idle, one that sends half a request, and one whose request takes a second."""
    slow = ("--set", "auth.argon2_memory_kib=65536", "--set", "auth.argon2_passes=12")
    server = Server(tmp_path / "data", *slow)
    try:
        doors = await server.start()
        host, _, port = doors["http"].rpartition(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        half_reader, half_writer = await asyncio.open_connection(host, int(port))
        half_writer.write(b"POST /auth/login HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        async with Wire(doors["http"]) as kept:
            assert (await kept.get("/healthz")).status == 200
            under_way = asyncio.create_task(registers(doors["http"], "ann"))
            await asyncio.sleep(0.2)
            assert not under_way.done(), "the request is too quick to be under way"
            server.terminate(number)
            assert (await under_way).status == 200
            assert await server.gone() == 0
        for _, writer in [*idle, (half_reader, half_writer)]:
            writer.close()
        doors = await server.start()
        assert await logs_in(doors["http"], "ann") == 200
    finally:
        server.end()


async def test_no_new_connection_is_taken_after_the_signal(server: Server) -> None:
    doors = await server.start()
    server.terminate()
    await server.gone()
    with pytest.raises(Cut):
        await registers(doors["http"], "late")


# -- a disk that fails


@pytest.fixture(scope="session")
def failing_sync(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that stands between the server and the disk."""
    library = tmp_path_factory.mktemp("sync") / "failing_sync.so"
    source = Path(__file__).with_name("failing_sync.c")
    try:
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, capture_output=True
        )
    except FileNotFoundError:
        missing("a C compiler")
    return library


@pytest.fixture
def on_a_bad_disk(failing_sync: Path, tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """The server, and the file that makes its disk fail."""
    order = tmp_path / "fail"
    environment = {"LD_PRELOAD": str(failing_sync), "FAILING_SYNC": str(order)}
    server = quick_server(tmp_path / "data", environment=environment)
    yield server, order
    server.end()


async def test_after_a_failed_sync_nobody_is_acknowledged_and_the_server_starts_over(
    on_a_bad_disk: tuple[Server, Path],
) -> None:
    server, order = on_a_bad_disk
    doors = await server.start()
    assert (await registers(doors["http"], "before")).status == 200
    pid = server.pid
    order.write_text("once")
    refused = await registers(doors["http"], "meanwhile")
    assert refused.status == 503
    assert b"outcome_unknown" in refused.body
    await server.restarted(doors)
    doors = await server.ready()
    assert (server.pid, server.exit_code) == (pid, None), "the same process, run anew"
    assert "starts over" in server.last_words()
    assert await logs_in(doors["http"], "before") == 200
    again = (await registers(doors["http"], "meanwhile")).status
    assert again in (200, 409), "sent again, it is there: from this time or from the first"
    assert await logs_in(doors["http"], "meanwhile") == 200
    server.terminate()
    assert await server.gone() == 0


async def test_a_disk_that_keeps_failing_ends_the_server(on_a_bad_disk: tuple[Server, Path]) -> None:
    server, order = on_a_bad_disk
    doors = await server.start()
    order.write_text("always")
    number = 0
    async with asyncio.timeout(60):
        while server.running:
            number += 1
            try:
                assert (await registers(doors["http"], f"user{number}")).status == 503
            except Cut:
                await asyncio.sleep(0.05)
            if server.ready_file.exists() and (text := server.ready_file.read_text()):
                doors = msgspec.json.decode(text, type=dict[str, str])
    assert server.exit_code == 75
    assert "the disk keeps failing; giving up" in server.last_words()


# -- settings and help


def test_flags_win_over_the_environment_over_the_file_over_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text(
        "data = 'from-file'\n[store]\nreaders = 5\nqueue_limit = 5\n[auth]\nlogin_tries = 5\n"
    )
    environment = {"HOLDFAST_STORE_READERS": "6", "HOLDFAST_STORE_QUEUE_LIMIT": "6"}
    ended = holdfast(
        *("settings", "--json", "--config", tmp_path / "holdfast.toml", "--set", "store.readers=7"),
        environment=environment,
    )
    assert ended.code == 0, ended.err
    found = msgspec.json.decode(ended.out, type=dict[str, dict[str, object]])
    assert found["store.readers"]["value"] == 7
    assert found["store.queue_limit"]["value"] == 6
    assert found["auth.login_tries"]["value"] == 5
    assert found["data"]["value"] == "from-file"
    assert found["store.pool"]["from"] == "default"
    assert "environment" in str(found["store.queue_limit"]["from"])


COMMANDS = ["serve", "broker", "settings", "user", "token", "check", "backup", "restore", "migrate"]


@pytest.mark.parametrize(
    "command", [[], *([name] for name in COMMANDS), ["user", "add"], ["broker", "sessions"]]
)
def test_every_command_has_its_help(command: list[str]) -> None:
    ended = holdfast(*command, "--help")
    assert ended.code == 0
    assert "Usage" in ended.out
    if not command:
        assert all(name in ended.out for name in COMMANDS)
