"""One device of a library, and large files, against our own server: what the load counts is what the server has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.libraries import LIFTED
from bench.load.library import Pulls, Pushes, changes
from bench.load.transfer import pdf
from bench.processes import ChildFailed, talker
from bench.servers import Server, holdfast
from bench.users import User, new_users


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with holdfast(tmp_path_factory.mktemp("holdfast"), LIFTED) as running:
        yield running


@pytest.fixture(scope="module")
def user(server: Server) -> User:
    return new_users(server, 3)[1]


def test_what_was_pushed_is_pulled(server: Server, user: User, tmp_path: Path) -> None:
    push, pull = f"/library/push?userId={user.id}", f"/library/pull?userId={user.id}&since=0"
    with talker("bench.load.library", tmp_path / "log") as device:
        pushed = device.ask(
            Pushes(server.http, push, user.headers, changes=50, count=150), dict[str, float], 60
        )
        pulled = device.ask(Pulls(server.http, pull, user.headers, '"serverId":', 0.2), dict[str, float], 60)
    assert pushed["version"] == 150
    assert pushed["rate"] > 0
    assert pulled["rows"] == 150


def test_a_push_that_is_refused_ends_the_load_with_the_servers_words(
    server: Server, user: User, tmp_path: Path
) -> None:
    push = Pushes(server.http, f"/library/push?userId={user.id}", user.headers, 10, version=10**6, count=10)
    with (
        talker("bench.load.library", tmp_path / "log") as device,
        pytest.raises(ChildFailed, match="412"),
    ):
        device.ask(push, dict[str, float], 60)


@pytest.mark.parametrize("count", [4, 50, 1_000])
def test_a_push_has_as_many_changes_as_asked_for(count: int) -> None:
    assert sum(map(len, changes(count).values())) == count


@pytest.mark.parametrize("size", [200, 1_000_000, 3_000_000])
def test_a_file_that_is_sent_has_its_size_and_begins_like_no_other(size: int) -> None:
    first, second = (b"".join(pdf(size)) for _ in range(2))
    assert len(first) == len(second) == size
    assert first[:60] != second[:60]
    assert first.startswith(b"%PDF-")
