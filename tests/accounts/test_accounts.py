"""Registering, logging in, out, and what ends a session: on both databases."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.accounts import Accounts, LoggedIn
from holdfast.accounts.actions import outdate_access_tokens
from holdfast.accounts.model import Grant
from holdfast.accounts.queries import credentials
from holdfast.clock import ManualClock
from holdfast.errors import (
    InvalidField,
    InvalidToken,
    NameTaken,
    NotFound,
    RegistrationClosed,
    SessionInvalid,
    TokenExpired,
    TooManyLogins,
    WrongCredentials,
)
from tests.accounts.conftest import CHEAP, HERE, MIGRATIONS, PASSWORD, OpenAccounts, with_settings
from tests.conftest import OpenStore

NEW_PASSWORD = "battery staple"


async def ann_logs_in(accounts: Accounts, password: str = PASSWORD) -> LoggedIn:
    return await accounts.log_in("ann", password, HERE)


async def test_who_registers_can_log_in_and_is_known_by_the_token(accounts: Accounts) -> None:
    user = await accounts.add_user("ann", PASSWORD)
    login = await ann_logs_in(accounts)
    session = await accounts.sessions.verify(login.access_token)
    assert (session.user_id, session.name, session.is_admin) == (user.id, "ann", False)
    assert login.user_id == str(user.id)
    assert (login.access_token_expires_in_seconds, login.refresh_token_expires_in_seconds) == (
        1800,
        2_592_000,
    )


async def test_of_two_who_register_one_name_at_once_exactly_one_wins(accounts: Accounts) -> None:
    said = await asyncio.gather(
        accounts.add_user("Zoë", PASSWORD), accounts.add_user("ZOE\u0308", PASSWORD), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in said) == ["NameTaken", "User"]
    with pytest.raises(NameTaken):
        await accounts.add_user("zoë", PASSWORD)


async def test_registration_can_be_closed_and_the_operator_still_adds_users(open_store: OpenStore) -> None:
    async with open_store(MIGRATIONS) as db:
        accounts = Accounts(db, CHEAP, ManualClock(), registration_open=False)
        await accounts.start()
        with pytest.raises(RegistrationClosed):
            accounts.require_open_registration()
        user = await accounts.add_user("ann", PASSWORD, is_admin=True)
        assert (await accounts.sessions.verify((await ann_logs_in(accounts)).access_token)).is_admin
        assert await accounts.user_named(str(user.id)) == await accounts.user_named("ANN") == user
        with pytest.raises(NotFound):
            await accounts.user_named("nobody")
        assert [listed async for listed in accounts.list_users()] == [user]
        await accounts.stop()


@pytest.mark.parametrize("password", ["short", "x" * 1025])
async def test_a_password_too_short_or_too_long_is_refused(accounts: Accounts, password: str) -> None:
    with pytest.raises(InvalidField, match="password"):
        await accounts.add_user("ann", password)


async def test_wrong_unknown_and_disabled_answer_alike_and_each_costs_one_real_verification(
    accounts: Accounts,
) -> None:
    await accounts.add_user("ann", PASSWORD)
    await accounts.add_user("bob", PASSWORD)
    await accounts.set_disabled(await accounts.user_named("bob"), disabled=True)
    said = []
    for name, password in [
        ("ann", "wrong password"),
        ("nobody", PASSWORD),
        ("bob", PASSWORD),
        ("bob", "wrong password"),
        ("a\x00b", PASSWORD),
        ("x" * 100_000, PASSWORD),
        ("ann", "x" * 100_000),
        ("12345", PASSWORD),
    ]:
        before = accounts.passwords.verifications
        with pytest.raises(WrongCredentials) as refused:
            await accounts.log_in(name, password, HERE)
        said.append((refused.value.message, refused.value.data, accounts.passwords.verifications - before))
    assert set(said) == {("The user name or the password is wrong.", None, 1.0)}


async def test_the_sixth_failure_in_a_minute_is_refused_until_the_minute_is_over(
    accounts: Accounts, clock: ManualClock
) -> None:
    await accounts.add_user("ann", PASSWORD)
    for _ in range(5):
        with pytest.raises(WrongCredentials):
            await ann_logs_in(accounts, "wrong password")
        clock.advance(1)
    with pytest.raises(TooManyLogins) as refused:
        await ann_logs_in(accounts)
    assert refused.value.retry_after == 55
    await accounts.log_in("ann", PASSWORD, "192.0.2.2")
    clock.advance(55)
    await ann_logs_in(accounts)


async def test_logout_ends_this_login_and_no_other(accounts: Accounts) -> None:
    await accounts.add_user("ann", PASSWORD)
    phone, tablet = await ann_logs_in(accounts), await ann_logs_in(accounts)
    await accounts.log_out(phone.refresh_token)
    await accounts.log_out(phone.refresh_token)
    await accounts.log_out("never seen")
    with pytest.raises(SessionInvalid):
        await accounts.refresh(phone.refresh_token)
    await accounts.refresh(tablet.refresh_token)


async def test_logout_everywhere_ends_every_session_at_once(accounts: Accounts) -> None:
    await accounts.add_user("ann", PASSWORD)
    logins = [await ann_logs_in(accounts) for _ in range(3)]
    sessions = [await accounts.sessions.verify(login.access_token) for login in logins]
    await accounts.log_out_everywhere(sessions[0].user_id, sessions[0].sv)
    for login in logins:
        with pytest.raises(SessionInvalid):
            await accounts.sessions.verify(login.access_token)
        with pytest.raises(SessionInvalid):
            await accounts.refresh(login.refresh_token)
    later = await ann_logs_in(accounts)
    await accounts.log_out_everywhere(
        sessions[1].user_id, sessions[1].sv
    )  # a late repetition of the same wish
    await accounts.sessions.verify(later.access_token)


async def test_a_new_password_ends_every_session_but_the_one_it_answers(accounts: Accounts) -> None:
    await accounts.add_user("ann", PASSWORD)
    login = await ann_logs_in(accounts)
    session = await accounts.sessions.verify(login.access_token)
    with pytest.raises(WrongCredentials):
        await accounts.change_password(session.user_id, session.sv, "wrong password", NEW_PASSWORD, HERE)
    changed = await accounts.change_password(session.user_id, session.sv, PASSWORD, NEW_PASSWORD, HERE)
    with pytest.raises(SessionInvalid):
        await accounts.sessions.verify(login.access_token)
    with pytest.raises(SessionInvalid):
        await accounts.refresh(login.refresh_token)
    with pytest.raises(SessionInvalid):
        await accounts.change_password(session.user_id, session.sv, NEW_PASSWORD, PASSWORD, HERE)
    with pytest.raises(WrongCredentials):
        await ann_logs_in(accounts)
    await accounts.sessions.verify(changed.access_token)
    await accounts.refresh(changed.refresh_token)
    await ann_logs_in(accounts, NEW_PASSWORD)


async def test_what_the_operator_does_ends_sessions_too(accounts: Accounts) -> None:
    user = await accounts.add_user("ann", PASSWORD)

    async def ends_the_session(what: object) -> None:
        login = await ann_logs_in(accounts)
        await accounts.sessions.verify(login.access_token)
        await what  # type: ignore[misc]
        with pytest.raises(SessionInvalid):
            await accounts.sessions.verify(login.access_token)
        with pytest.raises(SessionInvalid):
            await accounts.refresh(login.refresh_token)

    await ends_the_session(accounts.end_sessions(user))
    await ends_the_session(accounts.set_password(user, PASSWORD))
    await ends_the_session(accounts.set_disabled(user, disabled=True))
    with pytest.raises(WrongCredentials):
        await ann_logs_in(accounts)
    with pytest.raises(SessionInvalid):
        await accounts.access_token_for(await accounts.user_named("ann"))
    await accounts.set_disabled(user, disabled=False)
    await ann_logs_in(accounts)
    with pytest.raises(NotFound):
        await accounts.end_sessions(type(user)(1, "gone", False, False, 1))


async def test_with_single_device_a_login_ends_the_one_before(open_accounts: OpenAccounts) -> None:
    async with open_accounts(with_settings(single_device=True)) as accounts:
        await accounts.add_user("ann", PASSWORD)
        phone = await ann_logs_in(accounts)
        await accounts.sessions.verify(phone.access_token)
        tablet = await ann_logs_in(accounts)
        with pytest.raises(SessionInvalid):
            await accounts.sessions.verify(phone.access_token)
        with pytest.raises(SessionInvalid):
            await accounts.refresh(phone.refresh_token)
        await accounts.sessions.verify(tablet.access_token)
        await accounts.refresh(tablet.refresh_token)


async def test_tokens_outlive_a_restart_and_a_lost_cache_logs_nobody_out(open_accounts: OpenAccounts) -> None:
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
        login = await ann_logs_in(accounts)
    async with open_accounts() as accounts:
        await accounts.sessions.verify(login.access_token)
        await accounts.refresh(login.refresh_token)


async def test_a_hash_of_other_settings_is_renewed_at_login(
    open_accounts: OpenAccounts, open_store: OpenStore
) -> None:
    async with open_accounts() as accounts:
        await accounts.add_user("ann", PASSWORD)
    async with open_store(MIGRATIONS) as db, open_accounts.on(db, with_settings(argon2_passes=2)) as accounts:
        said = await asyncio.gather(*[ann_logs_in(accounts) for _ in range(4)])
        assert len({login.refresh_token for login in said}) == 4
        found = await db.read(credentials, "ann")
        assert found is not None
        assert found.password_hash.startswith("$argon2id$v=19$m=8,t=2,p=1$")
        await accounts.sessions.verify(said[0].access_token)
        await ann_logs_in(accounts)


async def test_access_tokens_expire_and_so_do_refresh_tokens(accounts: Accounts, clock: ManualClock) -> None:
    await accounts.add_user("ann", PASSWORD)
    login = await ann_logs_in(accounts)
    await accounts.sessions.verify(login.access_token)
    clock.advance(1800)
    with pytest.raises(TokenExpired):
        await accounts.sessions.verify(login.access_token)
    with pytest.raises(TokenExpired):
        await accounts.sessions.verify(login.access_token)
    clock.advance(2_592_000 - 1800)
    with pytest.raises(TokenExpired):
        await accounts.refresh(login.refresh_token)
    assert await accounts.sweep() == 2
    with pytest.raises(InvalidToken):
        await accounts.refresh(login.refresh_token)


async def test_after_a_restore_old_access_tokens_stay_dead_and_refresh_tokens_go_on(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        user = await accounts.add_user("ann", PASSWORD)
        login = await ann_logs_in(accounts)
        since_the_backup = [accounts.tokens.issue(Grant(user.id, "ann", sv)) for sv in range(1, 20)]
        await db.write(outdate_access_tokens)
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        await ann_logs_in(accounts, PASSWORD)
        for _ in range(3):
            for token in since_the_backup:
                with pytest.raises(SessionInvalid):
                    await accounts.sessions.verify(token)
            refreshed = await accounts.refresh(login.refresh_token)
            await accounts.sessions.verify(refreshed.access_token)
            await accounts.end_sessions(user)
            login = await ann_logs_in(accounts)
