"""A broker looked at while it runs and when it is stopped: the same sessions, subscriptions, queues, retained messages."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec
import pytest

from holdfast.broker import local_door, stored
from holdfast.broker import operator as ask
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.local_door import LocalDoor
from holdfast.broker.operator import Operator, Page
from holdfast.data_folder import DataFolder
from holdfast.store import Snapshot
from holdfast.store.migrations import of_rooms
from tests.broker.conftest import Start, in_process
from tests.broker.running import InProcess
from tests.conftest import OpenStore

LONG = "ü" * 400


class Seen(msgspec.Struct, frozen=True):
    """All that one can see."""

    sessions: list[SessionInfo]
    subscriptions: list[SubscriptionInfo]
    retained: dict[str, RetainedInfo]
    queues: dict[str, list[QueuedInfo]]


async def running(operator: Operator) -> Seen:
    sessions = operator.sessions(ask.Sessions()).items
    return Seen(
        sessions,
        operator.subscriptions(ask.Subscriptions()).items,
        {one.topic: one for one in operator.retained(ask.Retained()).items},
        {one.client_id: (await operator.queue(ask.Queue(one.client_id, 1_000))).items for one in sessions},
    )


def stopped(view: Snapshot) -> Seen:
    sessions = list(stored.sessions(view))
    return Seen(
        sessions,
        list(stored.subscriptions(view)),
        {one.topic: one for one in stored.retained(view)},
        {one.client_id: stored.queue(view, one.client_id, 1_000) for one in sessions},
    )


@pytest.fixture
async def broker(open_store: OpenStore) -> AsyncIterator[InProcess]:
    made = in_process(open_store, {})
    await made.start()
    yield made
    await made.stop()


async def with_sessions(broker: InProcess) -> None:
    """Some away, one of them cut off in the middle of its messages, with queues, retained messages, long names."""
    for name in ("a", "b/c", LONG):
        client = await broker.client(name, clean=False, session_expiry=3600, username="ann")
        await client.subscribed("x/#", f"$share/g/{name}", f"y/{LONG}", qos=2)
        await client.leave(session_expiry=3600)
    cut = await broker.client("cut", clean=False, session_expiry=7200, receive_maximum=2, username="bob")
    await cut.subscribed("x/#", qos=2)
    publisher = await broker.client("publisher")
    for number in range(5):
        await publisher.publish(f"x/{number}", b"payload", 1 + number % 2, retain=number < 2)
    await publisher.publish(f"y/{LONG}", b"", 1)
    await publisher.leave()
    for _ in range(2):
        await cut.next()
    cut.drop()
    async with asyncio.timeout(20):
        while broker.broker.connected:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_stopped_broker_shows_what_the_running_one_showed(
    broker: InProcess, open_store: OpenStore
) -> None:
    await with_sessions(broker)
    seen = await running(Operator(broker.broker))
    assert [one.client_id for one in seen.sessions] == ["a", "b/c", "cut", LONG]
    assert [one.queued for one in seen.sessions] == [6, 6, 5, 6]
    assert len(seen.subscriptions) == 10
    assert set(seen.retained) == {"x/0", "x/1"}
    assert [one.state for one in seen.queues["cut"]] == ["sent", "sent", "queued", "queued", "queued"]
    await broker.shut()
    async with open_store(of_rooms("store", "broker")) as db:
        kept = await db.read(stopped)
        assert await db.read(stored.session, LONG) == next(
            one for one in kept.sessions if one.client_id == LONG
        )
        assert await db.read(stored.session, "nobody") is None
        assert await db.read(stored.queue, "nobody", 10) == []
        assert [one.number for one in await db.read(stored.queue, "a", 2)] == [
            one.number for one in seen.queues["a"][:2]
        ]
    by_id = {one.client_id: one for one in kept.sessions}
    assert list(by_id.values()) == [msgspec.structs.replace(one) for one in kept.sessions]
    for before in seen.sessions:
        after = by_id[before.client_id]
        assert after == msgspec.structs.replace(before, queued_bytes=after.queued_bytes, dropped=0), (
            "but for how bytes are counted"
        )
    key = lambda one: (one.client_id, one.filter)  # noqa: E731
    assert sorted(kept.sessions, key=lambda one: one.client_id) == seen.sessions
    assert sorted(kept.subscriptions, key=key) == sorted(seen.subscriptions, key=key)
    assert kept.retained == seen.retained
    assert kept.queues == seen.queues


async def test_a_broker_that_was_killed_shows_its_clients_as_away(
    broker: InProcess, open_store: OpenStore
) -> None:
    client = await broker.client("here", clean=False, session_expiry=3600)
    await client.subscribed("x", qos=1)
    db = broker.broker.db
    (kept,) = list(await db.read(lambda view: list(stored.sessions(view))))
    assert (kept.client_id, kept.connected, kept.expires_ms) == ("here", False, kept.since_ms + 3_600_000)


# -- the local door


class Visitor:
    """Somebody who may open the file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __aenter__(self) -> Self:
        connection = local_door.visit(self._folder)
        connection.setblocking(False)
        self._reader, self._writer = await asyncio.open_unix_connection(sock=connection)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def says(self, line: bytes) -> bytes:
        self._writer.write(line + b"\n")
        return await self._reader.readline()

    async def asks(self, question: ask.Question) -> dict[str, msgspec.Raw]:
        return msgspec.json.decode(
            await self.says(msgspec.json.encode(question)), type=dict[str, msgspec.Raw]
        )


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """With a name that is longer than a socket's may be."""
    made = DataFolder(tmp_path / ("x" * 120))
    made.create()
    return made


@pytest.fixture
async def alive(start: Start) -> InProcess:
    made = await start()
    assert isinstance(made, InProcess)
    return made


@pytest.fixture
async def door(alive: InProcess, folder: DataFolder) -> AsyncIterator[LocalDoor]:
    made = LocalDoor(folder, Operator(alive.broker))
    (folder.path / local_door.NAME).touch()  # a dead process's
    await made.open()
    yield made
    await made.close()


async def test_the_local_door_answers_every_question(
    alive: InProcess, folder: DataFolder, door: LocalDoor
) -> None:
    await with_sessions(alive)
    async with Visitor(folder.path) as visitor:
        answered = await visitor.asks(ask.Sessions(limit=2))
        page = msgspec.json.decode(answered["ok"], type=Page[SessionInfo])
        assert ([one.client_id for one in page.items], page.next) == (["a", "b/c"], "b/c")
        for question in (
            ask.LookAround(),
            ask.OneSession(LONG),
            ask.Subscriptions(),
            ask.Retained("x/+"),
            ask.Queue("a"),
            ask.DeleteSession("a"),
            ask.ClearRetained("x/0"),
        ):
            assert "ok" in await visitor.asks(question)
        for question in (
            ask.OneSession("a"),
            ask.Kick("cut"),
            ask.ClearRetained("x/0"),
            ask.Retained("a/#/b"),
        ):
            assert "error" in await visitor.asks(question)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET / HTTP/1.1",
        b"{}",
        b'{"type":"shutdown"}',
        b'{"type":"session"}',
        b'{"type":"session","client_id":7}',
        b'{"type":"sessions","limit":0}',
        b'{"type":"sessions","limit":1000000}',
        b"\xff\xfe",
        b"[" * 50_000,
    ],
)
async def test_what_is_no_question_is_told_so_and_the_next_is_answered(
    folder: DataFolder, door: LocalDoor, line: bytes
) -> None:
    async with Visitor(folder.path) as visitor:
        assert (await visitor.says(line)).startswith(b'{"error":')
        assert "ok" in await visitor.asks(ask.LookAround())


async def test_a_question_without_end_is_not_listened_to(folder: DataFolder, door: LocalDoor) -> None:
    async with Visitor(folder.path) as visitor:
        with suppress(ConnectionResetError):
            assert await visitor.says(b"x" * 1_000_000) == b""
    async with Visitor(folder.path) as visitor:
        assert "ok" in await visitor.asks(ask.LookAround())


async def test_only_its_owner_may_open_the_file_and_it_goes_with_the_door(
    folder: DataFolder, door: LocalDoor
) -> None:
    file = folder.path / local_door.NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with Visitor(folder.path) as visitor:
        assert "ok" in await visitor.asks(ask.LookAround())
        await door.close()
        with suppress(ConnectionResetError):
            assert await visitor.says(b"{}") == b""
    assert not file.exists()
