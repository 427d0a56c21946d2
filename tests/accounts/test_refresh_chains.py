"""Refresh chains: any order of logins, refreshes, lost answers, logouts and time, against a model of who may."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from msgspec import Struct

from holdfast.accounts import Accounts, LoggedIn
from holdfast.accounts.actions import log_in, refresh
from holdfast.accounts.check import verify_accounts
from holdfast.accounts.model import FreshToken
from holdfast.accounts.queries import credentials
from holdfast.accounts.tokens import refresh_hash
from holdfast.clock import ManualClock
from holdfast.errors import HoldfastError, InvalidToken, SessionInvalid, TokenExpired, WrongCredentials
from holdfast.settings import Store
from holdfast.store import Statement, Transaction
from holdfast.store.sqlite import SqliteDatabase
from tests.accounts.conftest import HERE, MIGRATIONS, PASSWORD, OpenAccounts, with_settings

T = TypeVar("T")

GRACE = 60
DAYS = 30
DAY = 86_400
NOW = ManualClock().now_ms()
FORGET = Statement("DELETE FROM refresh_token")


def forget_all_tokens(tx: Transaction) -> None:
    tx.execute(FORGET)


SETTINGS = with_settings(refresh_grace=GRACE, refresh_days=DAYS)


class Login(Struct, eq=False):
    """The model of a chain."""

    ended: bool = False


class Token(Struct, eq=False):
    """The model of a refresh token."""

    text: str
    login: Login
    expires: float
    exchanged: float | None = None
    swept: bool = False


class RefreshChains(RuleBasedStateMachine):
    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.seconds = 0.0
        self.made: list[Token] = []
        self.db = SqliteDatabase(Path(self.folder.name) / "holdfast.db", Store())
        self.run(self.db.start(MIGRATIONS))
        self.accounts = Accounts(self.db, SETTINGS, self.clock)
        self.run(self.accounts.start())
        self.user = self.run(self.accounts.add_user("ann", PASSWORD))

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(work)

    def keep(self, text: str, login: Login) -> Token:
        token = Token(text, login, self.seconds + DAYS * DAY)
        self.made.append(token)
        return token

    @rule(target=tokens)
    def log_in(self) -> Token:
        return self.keep(self.run(self.accounts.log_in("ann", PASSWORD, HERE)).refresh_token, Login())

    @rule(target=tokens, token=tokens)
    def present(self, token: Token) -> Token:
        return self.refresh(token)

    def refresh(self, token: Token) -> Token:
        expected = self.expected(token)
        if expected is not None:
            with pytest.raises(HoldfastError) as refused:
                self.run(self.accounts.refresh(token.text))
            assert type(refused.value) in expected
            return token
        answer = self.run(self.accounts.refresh(token.text))
        self.note_exchange(token)
        assert self.run(self.accounts.sessions.verify(answer.access_token)).user_id == self.user.id
        return self.keep(answer.refresh_token, token.login)

    @rule(token=tokens, seconds=st.sampled_from([0, GRACE - 1, GRACE]))
    def the_answer_gets_lost_and_the_client_asks_again(self, token: Token, seconds: int) -> None:
        self.refresh(token)
        self.pass_time(seconds)
        self.refresh(token)

    def note_exchange(self, token: Token) -> None:
        """The newest, and every twin of it, now have the grace to live."""
        if token.exchanged is None:
            for twin in self.made:
                if twin.login is token.login and twin.exchanged is None:
                    twin.exchanged = self.seconds

    def expected(self, token: Token) -> tuple[type[HoldfastError], ...] | None:
        """What the model says of presenting this token now; None when it works."""
        if token.login.ended:
            return (SessionInvalid, InvalidToken)  # invalid once it was swept
        if self.seconds >= token.expires:
            return (InvalidToken,) if token.swept else (TokenExpired,)
        if token.exchanged is not None and self.seconds >= token.exchanged + GRACE:
            token.login.ended = True
            return (SessionInvalid,)
        return None

    @rule(token=tokens)
    def log_out(self, token: Token) -> None:
        self.run(self.accounts.log_out(token.text))
        if not token.swept:
            token.login.ended = True

    @rule()
    def log_out_everywhere(self) -> None:
        self.run(self.accounts.end_sessions(self.user))
        for token in self.made:
            token.login.ended = True

    @rule(seconds=st.sampled_from([GRACE - 1, GRACE, DAY, (DAYS - 1) * DAY]))
    def time_passes(self, seconds: int) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.seconds += seconds

    @rule()
    def sweep(self) -> None:
        self.run(self.accounts.sweep())
        for token in self.made:
            token.swept = token.swept or token.expires <= self.seconds

    @invariant()
    def the_store_is_sound(self) -> None:
        assert self.run(self.db.read(lambda view: list(verify_accounts(view)))) == []

    def teardown(self) -> None:
        self.run(self.accounts.stop())
        self.run(self.db.stop())
        self.loop.close()
        self.folder.cleanup()


TestRefreshChains = RefreshChains.TestCase
TestRefreshChains.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)


async def test_of_two_refreshes_of_one_token_at_once_both_work_and_both_answers_do(
    open_accounts: OpenAccounts,
) -> None:
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        for _ in range(10):
            login = await accounts.log_in("ann", PASSWORD, HERE)
            answers = await asyncio.gather(*[accounts.refresh(login.refresh_token) for _ in range(4)])
            assert len({answer.refresh_token for answer in answers}) == 4
            for answer in answers:
                await accounts.refresh(answer.refresh_token)


async def test_exactly_one_of_many_refreshes_at_once_takes_the_token_for_the_newest(
    open_accounts: OpenAccounts,
) -> None:
    """The others see that it was exchanged, also when they waited for the rival's commit."""
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        for _ in range(10):
            login = await accounts.log_in("ann", PASSWORD, HERE)
            said = await asyncio.gather(
                *[
                    accounts._db.write(
                        refresh,
                        refresh_hash(login.refresh_token),
                        FreshToken(bytes([n]) * 32, NOW + n, 2 * NOW),
                        60_000,
                    )
                    for n in range(6)
                ]
            )
            assert sorted(decision.name for decision, _grant in said) == ["AGAIN"] * 5 + ["NEXT"]
            await accounts._db.write(forget_all_tokens)


async def test_after_a_logout_that_raced_a_refresh_nothing_of_that_login_works(
    open_accounts: OpenAccounts,
) -> None:
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        for _ in range(15):
            login = await accounts.log_in("ann", PASSWORD, HERE)
            said = await asyncio.gather(
                accounts.refresh(login.refresh_token),
                accounts.log_out(login.refresh_token),
                accounts.refresh(login.refresh_token),
                return_exceptions=True,
            )
            left = [login.refresh_token, *(each.refresh_token for each in said if isinstance(each, LoggedIn))]
            assert said[1] is None
            for token in left:
                with pytest.raises(SessionInvalid):
                    await accounts.refresh(token)


async def test_a_login_that_raced_a_new_password_has_not_survived_it(open_accounts: OpenAccounts) -> None:
    async with open_accounts() as accounts:
        user = await accounts.add_user("ann", PASSWORD)
        for number in range(8):
            old, new = f"password {number}", f"password {number + 1}"
            await accounts.set_password(user, old)
            address = (
                f"192.0.2.{number}"  # those that come too late are wrong, and 5 from one address too many
            )
            logins = [accounts.log_in("ann", old, address) for _ in range(3)]
            said = await asyncio.gather(*logins, accounts.set_password(user, new), return_exceptions=True)
            for login in said[:3]:
                if isinstance(login, LoggedIn):
                    with pytest.raises(SessionInvalid):
                        await accounts.sessions.verify(login.access_token)
                    with pytest.raises(SessionInvalid):
                        await accounts.refresh(login.refresh_token)
                else:
                    assert isinstance(login, WrongCredentials)
            await accounts.log_in("ann", new, "192.0.2.9")


async def test_a_password_that_changed_between_verification_and_login_opens_nothing(
    open_accounts: OpenAccounts,
) -> None:
    async with open_accounts() as accounts:
        user = await accounts.add_user("ann", PASSWORD)
        seen = await accounts._db.glance(credentials, "ann")
        assert seen is not None
        await accounts.set_password(user, PASSWORD)
        with pytest.raises(WrongCredentials):
            await accounts._db.write(log_in, seen, 1, FreshToken(b"x" * 32, 0, 1))


async def test_a_sweep_beside_refreshes_takes_only_what_is_over(open_accounts: OpenAccounts) -> None:
    clock = open_accounts.clock
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        old = [await accounts.log_in("ann", PASSWORD, HERE) for _ in range(30)]
        clock.advance(29 * DAY)
        kept = await asyncio.gather(*[accounts.refresh(login.refresh_token) for login in old[:20]])
        clock.advance(2 * DAY)
        swept, *answers = await asyncio.gather(
            accounts.sweep(), *[accounts.refresh(login.refresh_token) for login in kept]
        )
        assert swept == 20 + 2 * 10
        for login in answers:
            assert isinstance(login, LoggedIn)
            await accounts.refresh(login.refresh_token)
        assert await accounts._db.read(lambda view: list(verify_accounts(view))) == []


async def test_of_two_new_passwords_from_one_session_at_once_exactly_one_wins(
    open_accounts: OpenAccounts,
) -> None:
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        login = await accounts.log_in("ann", PASSWORD, HERE)
        session = await accounts.sessions.verify(login.access_token)
        said = await asyncio.gather(
            *[
                accounts.change_password(session.user_id, session.sv, PASSWORD, f"new password {n}", HERE)
                for n in range(3)
            ],
            return_exceptions=True,
        )
        won = [number for number, answer in enumerate(said) if isinstance(answer, LoggedIn)]
        assert len(won) == 1
        assert sum(isinstance(answer, SessionInvalid) for answer in said) == 2
        await accounts.log_in("ann", f"new password {won[0]}", HERE)
