"""The loads that only our own server can take, against it: what they count is what happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import chats, ledgers, told
from bench.ledgers import Ledger
from bench.load import paced
from bench.load.crowd import Come, Leave, Say
from bench.load.login import Login
from bench.load.paced import Latency
from bench.load.talk import Connect, Run
from bench.processes import ROOT, talker
from bench.servers import Server, call, holdfast
from bench.users import new_users

SECONDS = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with holdfast(
        tmp_path_factory.mktemp("holdfast"), {**chats.LIFTED, **ledgers.LIFTED, "chat.auth_seconds": 60}
    ) as running:
        yield running


def logins(server: Server, count: int, name: str) -> list[Login]:
    return [Login(user.id, user.token) for user in new_users(server, count, name)]


@pytest.fixture
def ledger(server: Server, tmp_path: Path) -> Ledger:
    (owner,) = new_users(server, 1, tmp_path.name[-20:])
    book = ledgers.new_book(server, owner, [])
    server.headers = owner.headers
    return Ledger(
        server, fill=lambda count: ledgers.fill(server, book, count, owner.headers), owner=owner, book=book
    )


def test_every_bill_that_was_due_is_notified(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "PACE", 60)
    monkeypatch.setattr(told, "BOOKS", 3)
    monkeypatch.setattr(told, "AT_LEAST_SECONDS", 0.5)
    (ROOT / ".bench" / "tmp").mkdir(parents=True, exist_ok=True)
    said = told.told(ledger, 0.5)
    assert 0 < said["p50"] <= said["p99"]
    assert said["answered_p99"] > 0


def test_a_store_is_filled_up_to_a_size_and_no_further(ledger: Ledger) -> None:
    for size in (30, 1_030, 1_000):
        ledger.fill_to(size)
    assert ledger.filled == 1_030
    said = call(ledger.server, "GET", "/api/v1/sync/checksum")["data"]
    assert isinstance(said, dict)
    assert said["count"] == 1_030 + 1
    page = call(ledger.server, "GET", ledgers.middle_of_feed(ledger.server))["data"]
    assert isinstance(page, dict)
    assert page["bills"]
    empty = call(ledger.server, "GET", ledgers.empty_pull(ledger.server))["data"]
    assert isinstance(empty, dict)
    assert not empty["bills"]


def test_bills_at_a_pace_have_ids_of_their_own(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.owner is not None
    request = paced.request(ledgers.create(ledger.book), ledger.owner.headers)
    with talker("bench.load.paced", tmp_path / "log") as load:
        said = load.ask(paced.Plan(ledger.server.http, [request], 100, 0.5), Latency, SECONDS)
    assert (said.sent, said.failed, said.unanswered) == (50, 0, 0)
    found = call(ledger.server, "GET", "/api/v1/sync/checksum")["data"]
    assert isinstance(found, dict)
    assert found["count"] == 50 + 1


def test_messages_between_pairs_are_saved_and_delivered(server: Server, tmp_path: Path) -> None:
    with talker("bench.load.talk", tmp_path / "log", "chat") as talk:
        talk.ask(Connect(server.addresses["ws"], logins(server, 4, "pair")), dict[str, float], SECONDS)
        said = talk.ask(Run(0.3, pairs=2, window=5), dict[str, float], SECONDS)
        assert said["done"] > 0
        said = talk.ask(Run(0.5, pairs=2, per_second=100), dict[str, float], SECONDS)
        assert said["done"] == 50


def test_a_group_hears_what_is_said_and_who_was_away_hears_it_later(server: Server, tmp_path: Path) -> None:
    members = logins(server, 6, "crowd")
    group = chats.new_group(server, members)
    address = server.addresses["ws"]
    with talker("bench.load.crowd", tmp_path / "log") as crowd:
        crowd.ask(Come(address, members[:3]), dict[str, float], SECONDS)
        said = crowd.ask(Say(0, group, 0.3, window=4), dict[str, float], SECONDS)
        assert said["messages"] > 0
        crowd.ask(Leave(), dict[str, float], SECONDS)
        late = crowd.ask(Come(address, members[3:], backlog=int(said["messages"])), dict[str, float], SECONDS)
        assert (late["lacking"], late["twice"]) == (0, 0)


def test_members_are_known_by_the_order_of_their_logins(server: Server, tmp_path: Path) -> None:
    speakers = logins(server, 12, "speaks")
    groups = [chats.new_group(server, [speaker]) for speaker in speakers]
    with talker("bench.load.crowd", tmp_path / "log") as crowd:
        crowd.ask(Come(server.addresses["ws"], speakers), dict[str, float], SECONDS)
        for number, group in enumerate(groups):  # nobody else may speak in it
            said = crowd.ask(Say(number, group, 0, count=3), dict[str, float], SECONDS)
            assert said["messages"] == 3


def test_whom_the_making_of_a_group_has_no_room_for_joins_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chats, "AT_ONCE", 2)
    members = logins(server, 5, "joins")
    group = chats.new_group(server, members)
    headers = {"Authorization": f"Bearer {members[0].secret}"}
    said = call(server, "GET", f"/group/member/list?groupId={group}&limit=10", None, headers)["data"]
    assert isinstance(said, dict)
    assert len(said["items"]) == 5
