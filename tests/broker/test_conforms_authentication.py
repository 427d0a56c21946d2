"""Enhanced authentication (4.12), with a method that counts: the client answers 0, 1, 2."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Publish,
    Reason,
    Subscribe,
    Subscription,
)
from tests.broker.client import Client
from tests.broker.conftest import InProcess, Running, Start, kept
from tests.broker.hooks import COUNT

GO_ON = Reason.CONTINUE_AUTHENTICATION
AGAIN = Reason.REAUTHENTICATE


def count(step: int, reason: int = GO_ON, method: str = COUNT) -> Auth:
    return Auth(reason=reason, authentication_method=method, authentication_data=b"%d" % step)


async def begin(broker: Running, name: str = "c", **fields: Any) -> Client:
    client = await broker.open(V5)
    await client.send(
        Connect(client_id=name, authentication_method=COUNT, authentication_data=b"0", **fields)
    )
    return client


async def count_on(client: Client) -> None:
    for step in (1, 2):
        challenge = await client.expect_a(Auth, reason=GO_ON, authentication_method=COUNT)
        assert challenge.authentication_data == b"after %d" % (step - 1)
        await client.send(count(step))


async def counted_in(broker: Running, name: str = "c", **fields: Any) -> Client:
    client = await begin(broker, name, **fields)
    await count_on(client)
    await client.expect_a(Connack, reason=0, authentication_method=COUNT)
    return client


async def refused(client: Client) -> None:
    said = await client.closed()
    assert isinstance(said, Connack)
    assert said.reason == Reason.PROTOCOL_ERROR


async def test_an_exchange_ends_with_connack_that_names_the_method(broker: Running) -> None:
    client = await counted_in(broker)
    await client.quiet()


async def test_an_unknown_method_is_refused_and_closed(broker: Running) -> None:
    client = await broker.open(V5)
    connack = await client.connect("c", authentication_method="OTHER")
    assert connack.reason == Reason.BAD_AUTHENTICATION_METHOD
    assert await client.closed() is None


@pytest.mark.parametrize("step", [0, 1, 2])
async def test_the_server_may_refuse_at_any_step_and_closes(broker: Running, step: int) -> None:
    client = await broker.open(V5)
    wrong = b"wrong"
    data = wrong if step == 0 else b"0"
    await client.send(Connect(client_id="c", authentication_method=COUNT, authentication_data=data))
    for number in range(1, step + 1):
        await client.expect_a(Auth, reason=GO_ON)
        said = wrong if number == step else b"%d" % number
        await client.send(Auth(reason=GO_ON, authentication_method=COUNT, authentication_data=said))
    await client.expect_a(Connack, reason=Reason.NOT_AUTHORIZED, session_present=False)
    assert await client.closed() is None


async def test_the_method_stays_the_same(broker: Running) -> None:
    client = await begin(broker)
    await client.expect_a(Auth, reason=GO_ON)
    await client.send(count(1, method="OTHER"))
    await refused(client)


async def test_a_client_goes_on_with_0x18_only(broker: Running) -> None:
    client = await begin(broker)
    await client.expect_a(Auth, reason=GO_ON)
    await client.send(count(1, reason=AGAIN))
    await refused(client)


@pytest.mark.parametrize("packet", [Publish("t", b"never"), Subscribe(1, (Subscription("t"),))])
async def test_nothing_but_auth_and_disconnect_comes_before_connack(
    broker: Running, packet: Publish | Subscribe
) -> None:
    watcher = await broker.client("w", V5)
    await watcher.subscribed("#")
    client = await begin(broker)
    await client.expect_a(Auth, reason=GO_ON)
    await client.send(packet)
    await refused(client)
    await watcher.quiet()


async def test_a_client_may_leave_in_the_middle(broker: Running) -> None:
    client = await begin(broker)
    await client.expect_a(Auth, reason=GO_ON)
    await client.leave()


async def test_who_named_no_method_gets_and_sends_no_auth(broker: Running) -> None:
    client = await broker.client("c", V5)
    await client.send(Auth(reason=GO_ON, authentication_method=COUNT))
    await client.expect_end(Reason.PROTOCOL_ERROR)


async def test_a_session_waits_until_its_client_has_counted(broker: Running) -> None:
    first = await counted_in(broker, clean_start=False, session_expiry=100)
    await first.subscribed("t", qos=1)
    thief = await begin(broker, clean_start=False, session_expiry=100)
    await thief.expect_a(Auth, reason=GO_ON)
    await first.quiet()  # nobody is taken over before he is known
    await thief.send(count(9))
    await thief.expect_a(Connack, reason=Reason.NOT_AUTHORIZED)
    await first.quiet()
    again = await begin(broker, clean_start=False, session_expiry=100)
    await count_on(again)
    await again.expect_a(Connack, reason=0, session_present=True)
    await first.expect_end(Reason.SESSION_TAKEN_OVER)


# -- again, while connected


async def test_a_client_may_authenticate_again_and_goes_on_meanwhile(broker: Running) -> None:
    client = await counted_in(broker)
    await client.subscribed("t", qos=1)
    await client.send(count(0, reason=AGAIN))
    await client.answer(Auth, reason=GO_ON)
    await client.publish("t", b"meanwhile", 1)
    await client.receive("t", b"meanwhile", 1)
    await client.send(count(1))
    await client.answer(Auth, reason=GO_ON)
    await client.send(count(2))
    await client.answer(Auth, reason=0, authentication_method=COUNT)
    await client.quiet()


async def test_who_fails_to_authenticate_again_is_disconnected(broker: Running) -> None:
    client = await counted_in(broker)
    await client.send(count(7, reason=AGAIN))
    await client.expect_end(Reason.NOT_AUTHORIZED)


async def test_another_method_the_second_time_is_a_protocol_error(broker: Running) -> None:
    client = await counted_in(broker)
    await client.send(count(0, reason=AGAIN, method="OTHER"))
    said = await client.closed()
    assert isinstance(said, Disconnect)
    assert said.reason in (Reason.PROTOCOL_ERROR, Reason.BAD_AUTHENTICATION_METHOD)


# -- an identity that is good no longer


async def test_whose_identity_ends_is_disconnected_and_the_session_stays(start: Start, version: int) -> None:
    broker = await start(password_for={"ann": "a"})
    assert isinstance(broker, InProcess)
    client = await broker.client("c", version, username="ann", password=b"a", **kept(version))
    await client.subscribed("t", qos=1)
    broker.hooks.came[-1].ends = Reason.NOT_AUTHORIZED
    await client.expect_end(Reason.NOT_AUTHORIZED)
    await broker.client("c", version, username="ann", password=b"a", present=True, **kept(version))


async def test_what_became_forbidden_is_delivered_no_more_and_not_resumed(start: Start, version: int) -> None:
    """The rules are asked at delivery, and again when a session resumes."""
    broker = await start(password_for={"ann": "a", "bob": "b"})
    assert isinstance(broker, InProcess)
    ann = await broker.client("ann", version, username="ann", password=b"a", **kept(version))
    bob = await broker.client("bob", version, username="bob", password=b"b")
    await ann.subscribed("open/#", "secret/#", qos=1)
    await bob.publish("secret/x", b"1", 1)
    await ann.receive("secret/x", b"1", 1)
    await ann.leave()
    await bob.publish("secret/x", b"2", 1)
    await bob.publish("open/x", b"3", 1)
    broker.hooks.forbid("ann", "secret/#")
    ann = await broker.client("ann", version, username="ann", password=b"a", present=True, **kept(version))
    await ann.receive("open/x", b"3", 1)
    await bob.publish("secret/x", b"4", 1)
    await ann.quiet()


async def test_3_1_1_knows_nothing_of_all_this(broker: Running) -> None:
    client = await broker.client("c", V311)
    await client.send_bytes(b"\xf0\x00")
    await client.expect_end()
