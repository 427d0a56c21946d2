"""Who comes into `holdfast serve` over MQTT, what he may do, and when he has to go."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.accounts import Accounts, User
from holdfast.broker.entry import AccountHooks
from holdfast.broker.hooks import Access, Challenge, Identity, Refused
from holdfast.broker.packets import Reason
from tests.accounts.conftest import PASSWORD, OpenAccounts
from tests.broker.entry.guests import Guest, login


class House:
    def __init__(self, accounts: Accounts, hooks: AccountHooks, ann: User) -> None:
        self.accounts, self.hooks, self.ann = accounts, hooks, ann

    async def token(self, user: User | None = None) -> str:
        return await self.accounts.access_token_for(user or self.ann)

    async def refused(self, **given: str | bytes | None) -> Refused:
        with pytest.raises(Refused) as refused:
            await self.hooks.authenticate(login(**given))  # type: ignore[arg-type]
        return refused.value


@pytest.fixture
async def house(open_accounts: OpenAccounts) -> AsyncIterator[House]:
    async with open_accounts() as accounts:
        hooks = AccountHooks(())
        hooks.sessions = accounts.sessions
        yield House(accounts, hooks, await accounts.add_user("Zoë", PASSWORD))


# -- who


async def test_a_user_comes_in_with_his_id_or_his_name_and_an_access_token(house: House) -> None:
    token = await house.token()
    for username in (str(house.ann.id), "Zoë", "ZOË", "Zoe\u0308", None, ""):
        identity = await house.hooks.authenticate(login(username, token))
        assert (identity.name, identity.is_server) == (str(house.ann.id), False)


async def test_nobody_comes_in_without_his_own_token(house: House) -> None:
    token = await house.token()
    other = await house.accounts.add_user("bob", PASSWORD)
    cases: list[tuple[str | None, str | bytes | None]] = [
        ("Zoë", None),
        ("Zoë", ""),
        ("Zoë", PASSWORD),
        ("Zoë", token[:-2]),
        ("Zoë", b"\xff\xfe"),
        ("Zoë", "x" * 60_000),
        ("bob", token),
        (str(other.id), token),
        ("nobody", token),
        ("x" * 60_000, token),
        ("Zoë", (await house.accounts.log_in("Zoë", PASSWORD, "192.0.2.1")).refresh_token),
    ]
    for username, password in cases:
        refused = await house.refused(username=username, password=password)
        assert refused.reason is Reason.BAD_USER_NAME_OR_PASSWORD
        assert refused.text is not None
        assert token not in refused.text


async def test_a_token_that_has_expired_or_was_ended_does_not_come_in(
    house: House, open_accounts: OpenAccounts
) -> None:
    token = await house.token()
    await house.accounts.end_sessions(house.ann)
    assert (await house.refused(username="Zoë", password=token)).reason is Reason.NOT_AUTHORIZED
    token = await house.token(await house.accounts.user_named("Zoë"))
    open_accounts.clock.advance(1801)
    assert (await house.refused(username="Zoë", password=token)).reason is Reason.NOT_AUTHORIZED


async def test_who_is_inside_has_to_go_when_his_token_expires_or_his_sessions_end(
    house: House, open_accounts: OpenAccounts
) -> None:
    clock = open_accounts.clock
    identity = await house.hooks.authenticate(login("Zoë", await house.token()))
    assert identity.over(clock.now_ms()) is None
    assert identity.over(clock.now_ms() + 1_801_000) is Reason.NOT_AUTHORIZED
    await house.accounts.end_sessions(house.ann)
    assert identity.over(clock.now_ms()) is Reason.NOT_AUTHORIZED


async def test_a_disabled_user_has_to_go_and_stays_outside(house: House, open_accounts: OpenAccounts) -> None:
    token = await house.token()
    identity = await house.hooks.authenticate(login("Zoë", token))
    await house.accounts.set_disabled(house.ann, disabled=True)
    assert identity.over(open_accounts.clock.now_ms()) is Reason.NOT_AUTHORIZED
    assert (await house.refused(username="Zoë", password=token)).reason is Reason.NOT_AUTHORIZED


# -- AUTH


async def test_a_token_comes_in_by_the_method_jwt_at_once_or_when_asked_for(house: House) -> None:
    token = (await house.token()).encode()
    identity = await house.hooks.exchange(login(), "JWT", token, 0, None)
    assert not isinstance(identity, Challenge)
    assert identity.name == str(house.ann.id)
    assert isinstance(await house.hooks.exchange(login(), "JWT", None, 0, None), Challenge)
    again = await house.hooks.exchange(login(), "JWT", token, 1, None)
    assert not isinstance(again, Challenge)


async def test_a_connection_goes_on_with_a_new_token_of_the_same_user_only(
    house: House, open_accounts: OpenAccounts
) -> None:
    known = await house.hooks.authenticate(login("Zoë", await house.token()))
    open_accounts.clock.advance(1_700)
    renewed = await house.hooks.exchange(login(), "JWT", (await house.token()).encode(), 0, known)
    assert not isinstance(renewed, Challenge)
    assert renewed.over(open_accounts.clock.now_ms() + 1_500_000) is None
    bob = await house.accounts.add_user("bob", PASSWORD)
    stolen = (await house.token(bob)).encode()
    assert await exchange_refused(house, "JWT", stolen, 0, known) is Reason.NOT_AUTHORIZED


async def exchange_refused(
    house: House, method: str, data: bytes | None, step: int, known: Identity | None
) -> Reason:
    with pytest.raises(Refused) as refused:
        await house.hooks.exchange(login(), method, data, step, known)
    return refused.value.reason


async def test_other_methods_and_silence_are_refused(house: House) -> None:
    token = (await house.token()).encode()
    assert await exchange_refused(house, "SCRAM-SHA-1", token, 0, None) is Reason.BAD_AUTHENTICATION_METHOD
    assert await exchange_refused(house, "jwt", token, 0, None) is Reason.BAD_AUTHENTICATION_METHOD
    assert await exchange_refused(house, "JWT", None, 1, None) is Reason.NOT_AUTHORIZED
    assert await exchange_refused(house, "JWT", b"garbage", 0, None) is Reason.BAD_USER_NAME_OR_PASSWORD


# -- what


class Heji:
    """A room's rules, as the ledger says them."""

    def may_subscribe(self, user_id: int, topic_filter: str) -> bool | None:
        return topic_filter.startswith(f"heji/down/{user_id}/") if topic_filter.startswith("heji/") else None

    def may_publish(self, user_id: int, topic: str) -> bool | None:
        return topic.startswith(f"heji/up/{user_id}/") if topic.startswith("heji/") else None

    def may_receive(self, user_id: int, topic: str) -> bool | None:
        return self.may_subscribe(user_id, topic)


ALL = (Access.PUBLISH, Access.SUBSCRIBE, Access.RECEIVE)


def test_a_room_rules_over_its_topics_and_nobody_over_the_rest() -> None:
    hooks = AccountHooks(("9:7",))
    hooks.ask(Heji())
    seven = Guest("7")

    def ruled(topic: str) -> list[object]:
        return [hooks.authorise(seven, access, topic) for access in ALL]

    assert ruled("heji/up/7/bill") == [True, False, False]
    assert ruled("heji/down/7/bill") == [False, True, True]
    assert ruled("heji/down/8/bill") == [False, False, False]
    assert ruled("user/7/x") == [True, True, True]
    assert ruled("user/9/x") == [False, True, True]
    for elsewhere in ("#", "+", "state/lamp", "$SYS/broker/uptime", "$SYS/#", "heji", "user"):
        assert ruled(elsewhere) == [False, False, False]


def test_the_server_may_everything_and_a_name_that_is_no_id_nothing() -> None:
    hooks = AccountHooks(("*:*",))
    for access in ALL:
        assert hooks.authorise(Guest("", is_server=True), access, "heji/up/7/bill") is True
        for name in ("", "alice", "7 "):
            if name != "7 ":
                assert hooks.authorise(Guest(name), access, "user/7/x") is False


async def test_administrators_read_sys_and_nobody_else(house: House) -> None:
    admin = await house.accounts.add_user("root", PASSWORD, is_admin=True)
    await house.hooks.authenticate(login("root", await house.token(admin)))
    guest = Guest(str(admin.id))
    assert [house.hooks.authorise(guest, access, "$SYS/broker/uptime") for access in ALL] == [
        False,
        True,
        True,
    ]
    assert house.hooks.authorise(Guest(str(house.ann.id)), Access.RECEIVE, "$SYS/broker/uptime") is False
