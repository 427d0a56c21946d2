"""Verified tokens: remembered cheaply, and never believed once their sv was raised, wherever that happened."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import pytest

from holdfast.accounts import Accounts, Session, SessionsEnded, queries
from holdfast.accounts.model import Grant
from holdfast.accounts.sessions import MAX_AGE, Sessions
from holdfast.clock import ManualClock, SystemClock
from holdfast.errors import InvalidToken, SessionInvalid, TokenExpired, Unavailable
from holdfast.store import Database, StoreReset
from tests.accounts.conftest import HERE, MIGRATIONS, PASSWORD, OpenAccounts
from tests.conftest import OpenStore

T = TypeVar("T")


async def login(accounts: Accounts, name: str = "ann") -> str:
    return (await accounts.log_in(name, PASSWORD, HERE)).access_token


async def end(accounts: Accounts, name: str = "ann") -> None:
    await accounts.end_sessions(await accounts.user_named(name))


async def test_a_token_is_known_after_its_verification_and_not_before(accounts: Accounts) -> None:
    await accounts.add_user("ann", PASSWORD)
    token = await login(accounts)
    assert accounts.sessions.known(token) is None
    session = await accounts.sessions.verify(token)
    assert accounts.sessions.known(token) is session
    assert await accounts.sessions.verify(token) is session
    assert token not in repr(vars(accounts.sessions))


async def test_a_raised_sv_is_seen_at_once_and_told_before_the_raise_is_answered(accounts: Accounts) -> None:
    user = await accounts.add_user("ann", PASSWORD)
    token = await login(accounts)
    session = await accounts.sessions.verify(token)
    heard: list[SessionsEnded] = []
    accounts.sessions.on_session_ended(heard.append)
    await end(accounts)
    assert heard == [SessionsEnded(user.id, 2)]
    assert session.ended
    assert isinstance(session.why_over(0), SessionInvalid)
    assert accounts.sessions.known(token) is None
    with pytest.raises(SessionInvalid):
        await accounts.sessions.verify(token)


async def test_one_listener_that_fails_keeps_no_other_from_hearing(accounts: Accounts) -> None:
    await accounts.add_user("ann", PASSWORD)
    heard: list[SessionsEnded] = []

    def fails(_event: SessionsEnded) -> None:
        raise RuntimeError("a room's mistake")

    accounts.sessions.on_session_ended(fails)
    accounts.sessions.on_session_ended(heard.append)
    await end(accounts)
    assert len(heard) == 1


@asynccontextmanager
async def two_processes(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> AsyncIterator[tuple[Accounts, Accounts]]:
    """Two servers on one store, each with its own connections and its own memory, on the real clock."""
    clock = SystemClock()
    async with (
        open_store(MIGRATIONS) as db,
        open_store(MIGRATIONS) as other,
        open_accounts.on(db, clock=clock) as here,
        open_accounts.on(other, clock=clock) as elsewhere,
    ):
        yield here, elsewhere


async def ends_within_three_seconds(accounts: Accounts, token: str, heard: list[SessionsEnded]) -> None:
    deadline = time.monotonic() + 3
    session = accounts.sessions.known(token)
    assert session is not None
    while not session.ended:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert [event.user_id for event in heard] == [session.user_id]
    with pytest.raises(SessionInvalid):
        await accounts.sessions.verify(token)


async def test_a_sv_raised_elsewhere_is_seen_and_told_within_three_seconds(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with two_processes(open_store, open_accounts) as (here, elsewhere):
        await here.add_user("ann", PASSWORD)
        token = await login(here)
        heard: list[SessionsEnded] = []
        elsewhere.sessions.on_session_ended(heard.append)
        await elsewhere.sessions.verify(token)
        await end(here)
        await ends_within_three_seconds(elsewhere, token, heard)


async def test_a_sv_raised_by_a_command_in_a_process_of_its_own_is_seen_and_told_within_three_seconds(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_accounts(clock=SystemClock()) as accounts:
        await accounts.add_user("ann", PASSWORD)
        token = await login(accounts)
        await accounts.sessions.verify(token)
        heard: list[SessionsEnded] = []
        accounts.sessions.on_session_ended(heard.append)
        command = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.accounts.another_process", open_store.where, "ann",
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert command.stdout is not None
        said = await command.stdout.readline()
        await ends_within_three_seconds(accounts, token, heard)
        assert (said, await command.wait()) == (b"ended\n", 0)


async def test_nothing_raised_anywhere_is_ever_skipped(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    """Two processes raise as fast as they can; a third reads what is new all the time, and misses none."""
    async with two_processes(open_store, open_accounts) as (one, two), open_store(MIGRATIONS) as db:
        users = [await one.add_user(f"user {number}", PASSWORD) for number in range(12)]
        third = Sessions(db, one.tokens, SystemClock())
        third._seen = await db.read(queries.revision)
        last: dict[int, int] = {}
        third.on_session_ended(lambda event: last.update({event.user_id: event.sv}))
        raising = asyncio.gather(
            *[accounts.end_sessions(user) for _ in range(6) for user in users for accounts in (one, two)]
        )
        while not raising.done():
            await third._catch_up()
            await asyncio.sleep(0)
        await raising
        await third._catch_up()
        assert last == {user.id: 13 for user in users}


class SlowReads:
    """The store of a process whose reads take a while: each answer waits until `answer` is set."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.has_read = asyncio.Event()
        self.answer = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)

    async def glance(self, query: Callable[..., T], *args: object) -> T:
        found = cast("T", await self._db.glance(query, *args))
        self.has_read.set()
        await self.answer.wait()
        return found


@pytest.mark.parametrize("told_by", ["event", "poll"])
async def test_a_sv_raised_while_a_token_is_being_verified_is_not_overlooked(
    open_store: OpenStore, open_accounts: OpenAccounts, told_by: str
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        await accounts.add_user("ann", PASSWORD)
        token = await login(accounts)
        slow = SlowReads(db)
        sessions = Sessions(cast("Database", slow), accounts.tokens, open_accounts.clock)
        sessions._fresh_until = 1_000_000.0
        if told_by == "event":
            db.subscribe(SessionsEnded, sessions._ended)
        verifying = asyncio.create_task(sessions.verify(token))
        await slow.has_read.wait()
        await end(accounts)
        if told_by == "poll":
            for change in await db.read(queries.changes, 0):
                sessions._ended(SessionsEnded(change.user_id, change.sv))
        slow.answer.set()
        with pytest.raises(SessionInvalid):
            await verifying


async def test_what_is_remembered_does_not_count_when_the_store_cannot_be_asked(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    db = open_store.make()
    await db.start(MIGRATIONS)
    async with open_accounts.on(db) as accounts:
        await accounts.add_user("ann", PASSWORD)
        token = await login(accounts)
        await accounts.sessions.verify(token)
        await db.stop()
        open_accounts.clock.advance(MAX_AGE - 0.1)
        await accounts.sessions.verify(token)
        open_accounts.clock.advance(0.1)
        with pytest.raises(Unavailable):
            await accounts.sessions.verify(token)


async def test_after_a_loop_that_stood_still_the_store_is_asked_first(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with two_processes(open_store, open_accounts) as (here, _), open_accounts() as still:
        await here.add_user("ann", PASSWORD)
        open_accounts.clock.set_wall(SystemClock().now_ms())
        token = await login(here)
        await still.sessions.verify(token)
        await end(here)
        open_accounts.clock.advance(MAX_AGE)
        assert still.sessions.known(token) is None
        with pytest.raises(SessionInvalid):
            await still.sessions.verify(token)


async def test_after_a_commit_without_an_answer_nothing_is_believed_until_it_was_read_again(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        await accounts.add_user("ann", PASSWORD)
        token = await login(accounts)
        session = await accounts.sessions.verify(token)
        db.events.send([StoreReset()])
        assert accounts.sessions.known(token) is None
        assert await accounts.sessions.verify(token) is session


async def test_memory_is_bounded_and_a_session_that_is_still_held_goes_on_to_know_its_end(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        await accounts.add_user("ann", PASSWORD)
        await accounts.add_user("bob", PASSWORD)
        sessions = Sessions(db, accounts.tokens, open_accounts.clock, limit=10)
        await sessions.start()
        of_connection: Session = await sessions.verify(await login(accounts))
        for _ in range(30):
            await sessions.verify(await login(accounts, "bob"))
        assert sessions.held == 10
        await end(accounts)
        assert of_connection.ended
        await end(accounts, "bob")
        open_accounts.clock.advance(1801)
        sessions._drop_expired()
        assert sessions.held == 0
        del of_connection
        assert len(sessions._watched) == 0
        await sessions.stop()


async def test_a_token_for_nobody_and_one_that_expired_are_refused(
    accounts: Accounts, clock: ManualClock
) -> None:
    await accounts.add_user("ann", PASSWORD)
    with pytest.raises(InvalidToken):
        await accounts.sessions.verify(accounts.tokens.issue(Grant(7, "nobody", 1)))
    token = await login(accounts)
    session = await accounts.sessions.verify(token)
    clock.advance(1801)
    assert accounts.sessions.known(token) is None
    assert isinstance(session.why_over(clock.now_ms()), TokenExpired)
    with pytest.raises(TokenExpired):
        await accounts.sessions.verify(token)


async def test_a_token_with_an_sv_still_to_come_is_refused(accounts: Accounts) -> None:
    user = await accounts.add_user("ann", PASSWORD)
    with pytest.raises(SessionInvalid):
        await accounts.sessions.verify(accounts.tokens.issue(Grant(user.id, "ann", 2)))


async def test_knowing_a_token_costs_microseconds(open_accounts: OpenAccounts) -> None:
    async with open_accounts(clock=SystemClock()) as accounts:
        await accounts.add_user("ann", PASSWORD)
        token = await login(accounts)
        await accounts.sessions.verify(token)
        known, best = accounts.sessions.known, 1.0
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(500):
                known(token)
            best = min(best, (time.perf_counter() - started) / 500)
        print(f"a known token costs {best * 1e6:.2f} µs")
        assert best < 20e-6
