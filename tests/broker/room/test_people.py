"""People in `serve` over MQTT: who comes in, what they may do, when they have to go."""

from __future__ import annotations

import asyncio
import time

import pytest

from holdfast.broker.packets import Auth, Connack, Connect, Reason
from holdfast.settings import Auth as AuthSettings
from tests.broker.client import Client
from tests.broker.room.conftest import Home, OpenHome

V3_REFUSED = 0x80


def auth(reason: Reason, token: bytes) -> Auth:
    return Auth(reason=reason, authentication_method="JWT", authentication_data=token)


async def test_a_user_comes_in_with_id_or_name_and_token_in_every_version(home: Home) -> None:
    ann = await home.user("ann")
    token = (await home.token(ann)).encode()
    for version in (3, 4, 5):
        for username in (str(ann.id), "ann"):
            client = await home.stranger(version)
            connack = await client.connect(f"c{version}", username=username, password=token)
            assert connack.reason == 0
            await client.subscribed(f"user/{ann.id}/#", qos=1)
            client.drop()


async def test_nobody_comes_in_without_a_token_of_his_own(home: Home) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    token = (await home.token(ann)).encode()
    for fields in (
        {},
        {"username": "ann", "password": b"correct horse"},
        {"username": "bob", "password": token},
    ):
        client = await home.stranger()
        connack = await client.connect("c1", **fields)
        assert connack.reason == Reason.BAD_USER_NAME_OR_PASSWORD
        await client.expect_end()
    assert bob.id != ann.id


async def test_a_client_id_is_its_users(home: Home) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    await home.client(ann, "phone", clean=False)
    client = await home.stranger()
    token = (await home.token(bob)).encode()
    connack = await client.connect("phone", username="bob", password=token)
    assert connack.reason == Reason.CLIENT_ID_NOT_VALID


async def test_what_is_not_allowed_is_refused_topic_by_topic(home: Home) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    mine, his = f"user/{ann.id}/x", f"user/{bob.id}/x"
    client = await home.client(ann, "phone")
    assert await client.subscribe(
        mine, his, "#", "$SYS/#", f"$share/g/{his}", f"user/{bob.id}/public/#", qos=1
    ) == (
        1,
        Reason.NOT_AUTHORIZED,
        Reason.NOT_AUTHORIZED,
        Reason.NOT_AUTHORIZED,
        Reason.NOT_AUTHORIZED,
        1,
    )
    assert await client.publish(his, b"x", 1) == Reason.NOT_AUTHORIZED
    assert await client.publish(f"user/{bob.id}/public/x", b"x", 1) == Reason.NOT_AUTHORIZED
    old = await home.client(ann, "old", 4)
    assert await old.subscribe(mine, his, qos=1) == (1, V3_REFUSED)


async def test_a_space_is_shared_by_the_setting_and_heji_is_the_ledgers(home: Home) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    reader = await home.client(bob, "reader")
    await reader.subscribed("user/+/public/#", qos=1)
    writer = await home.client(ann, "writer")
    assert await writer.publish(f"user/{ann.id}/public/x", b"for all", 1) == 0
    await reader.receive(f"user/{ann.id}/public/x", b"for all", 1)
    await writer.subscribed(f"heji/notify/{ann.id}/#", qos=1)
    assert await writer.subscribe(f"heji/notify/{bob.id}/#") == (Reason.NOT_AUTHORIZED,)


# -- when they have to go


async def test_a_token_that_expires_ends_the_connection_and_the_session_waits(open_home: OpenHome) -> None:
    quick = AuthSettings(argon2_memory_kib=8, argon2_passes=1, access_seconds=2)
    async with open_home(auth=quick) as home:
        ann = await home.user("ann")
        client = await home.client(ann, "phone", clean=False, session_expiry=3600)
        old = await home.client(ann, "old", 4, clean=False)
        started = time.monotonic()
        await client.expect_end(Reason.NOT_AUTHORIZED)
        await old.expect_end()
        assert time.monotonic() - started < 6
        again = await home.client(ann, "phone", clean=False, session_expiry=3600)
        assert again.connack.session_present


async def test_a_token_renewed_in_time_keeps_the_connection(open_home: OpenHome) -> None:
    quick = AuthSettings(argon2_memory_kib=8, argon2_passes=1, access_seconds=3)
    async with open_home(auth=quick) as home:
        ann = await home.user("ann")
        client = await home.stranger()
        token = (await home.token(ann)).encode()
        await client.connect("phone", authentication_method="JWT", authentication_data=token)
        other = await home.client(ann, "other")
        until = time.monotonic() + 7
        while time.monotonic() < until:
            await asyncio.sleep(1)
            token = (await home.token(ann)).encode()
            await client.send(auth(Reason.REAUTHENTICATE, token))
            await client.answer(Auth, reason=Reason.SUCCESS)
        await other.expect_end(Reason.NOT_AUTHORIZED)
        await client.subscribed(f"user/{ann.id}/#")


async def test_a_connection_cannot_become_another_users(home: Home) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    client = await home.stranger()
    token = (await home.token(ann)).encode()
    await client.connect("phone", authentication_method="JWT", authentication_data=token)
    await client.send(auth(Reason.REAUTHENTICATE, (await home.token(bob)).encode()))
    await client.expect_end(Reason.NOT_AUTHORIZED)


async def test_a_method_nobody_knows_is_refused(home: Home) -> None:
    client = await home.stranger()
    await client.connect("phone", authentication_method="SCRAM-SHA-256", authentication_data=b"n,,n=ann")
    assert client.connack.reason == Reason.BAD_AUTHENTICATION_METHOD


async def test_a_token_that_is_asked_for_comes_in_too(home: Home) -> None:
    ann = await home.user("ann")
    client = await home.stranger()
    await client.send(Connect(version=5, client_id="phone", authentication_method="JWT"))
    await client.answer(Auth, reason=Reason.CONTINUE_AUTHENTICATION, authentication_method="JWT")
    token = (await home.token(ann)).encode()
    await client.send(auth(Reason.CONTINUE_AUTHENTICATION, token))
    await client.expect_a(Connack, reason=0)


@pytest.mark.parametrize("how", ["ended", "disabled", "password"])
async def test_sessions_that_end_take_their_connections_with_them_within_3_s(home: Home, how: str) -> None:
    ann, bob = await home.user("ann"), await home.user("bob")
    clients: list[Client] = [await home.client(ann, f"c{number}") for number in range(3)]
    untouched = await home.client(bob, "bob")
    started = time.monotonic()
    if how == "ended":
        await home.app.accounts.end_sessions(ann)
    elif how == "disabled":
        await home.app.accounts.set_disabled(ann, disabled=True)
    else:
        await home.app.accounts.set_password(ann, "another horse")
    for client in clients:
        await client.expect_end(Reason.NOT_AUTHORIZED)
    assert time.monotonic() - started < 3
    await untouched.subscribed(f"user/{bob.id}/#")


async def test_stopping_tells_everybody(open_home: OpenHome) -> None:
    async with open_home() as home:
        ann = await home.user("ann")
        client, old = await home.client(ann, "phone"), await home.client(ann, "old", 4)
        stopping = asyncio.create_task(home.app.broker.close())
        await client.expect_end(Reason.SERVER_SHUTTING_DOWN)
        await old.expect_end()
        await stopping
