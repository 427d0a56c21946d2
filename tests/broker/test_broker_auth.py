"""Enhanced authentication: AUTH before CONNACK, and again on an open connection; identities that are over."""

from __future__ import annotations

from holdfast.broker.hooks import Identity, Login
from holdfast.broker.packets import Auth, Connack, Connect, Disconnect, Publish, Reason
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import EverybodyMay, House, Someone, Speaker

ECHO = {"authentication_method": "echo"}


async def admitted(house: House, client_id: str = "c") -> Speaker:
    speaker = house.speaker()
    speaker.say(Connect(client_id=client_id, **ECHO))
    challenge = await speaker.get(Auth)
    assert (challenge.reason, challenge.authentication_data) == (Reason.CONTINUE_AUTHENTICATION, b"who?")
    speaker.say(Auth(reason=0x18, authentication_data=b"me", **ECHO))
    answer = await speaker.get(Connack)
    assert (answer.reason, answer.authentication_method) == (0, "echo")
    return speaker


async def test_a_challenge_goes_to_and_fro_before_connack(house: House) -> None:
    await admitted(house)


async def test_a_wrong_answer_or_an_unknown_method_is_refused(house: House) -> None:
    wrong = house.speaker()
    wrong.say(Connect(client_id="c", **ECHO))
    await wrong.get(Auth)
    wrong.say(Auth(reason=0x18, authentication_data=b"somebody", **ECHO))
    assert (await wrong.get(Connack)).reason == Reason.NOT_AUTHORIZED
    unknown = house.speaker()
    answer = await unknown.connect("c", authentication_method="magic")
    assert answer.reason == Reason.BAD_AUTHENTICATION_METHOD


async def test_nothing_but_auth_and_disconnect_may_come_before_connack(house: House) -> None:
    eager = house.speaker()
    eager.say(Connect(client_id="c", **ECHO))
    await eager.get(Auth)
    eager.say(Publish("t"))
    assert (await eager.get(Connack)).reason == Reason.PROTOCOL_ERROR
    leaving = house.speaker()
    leaving.say(Connect(client_id="c", **ECHO))
    await leaving.get(Auth)
    leaving.say(Disconnect())
    await leaving.closed()
    assert house.broker.session_count == 0


async def test_a_client_may_authenticate_again_while_messages_flow(house: House) -> None:
    client = await admitted(house)
    await client.subscribe("t")
    client.say(Auth(reason=0x19, **ECHO))
    client.publish("t", b"meanwhile")
    assert isinstance(await client.get(object), Auth | Publish)
    client.say(Auth(reason=0x18, authentication_data=b"me", **ECHO))
    found = [await client.get(object), await client.get(object)]
    assert Auth(reason=0, **ECHO) in found


async def test_authenticating_again_must_succeed_with_the_same_method(house: House) -> None:
    wrong = await admitted(house, "a")
    wrong.say(Auth(reason=0x19, **ECHO))
    await wrong.get(Auth)
    wrong.say(Auth(reason=0x18, authentication_data=b"nobody", **ECHO))
    assert (await wrong.get(Disconnect)).reason == Reason.NOT_AUTHORIZED
    other = await admitted(house, "b")
    other.say(Auth(reason=0x19, authentication_method="magic"))
    assert (await other.get(Disconnect)).reason == Reason.PROTOCOL_ERROR
    plain = await house.client("p")
    plain.say(Auth(reason=0x19, **ECHO))
    assert (await plain.get(Disconnect)).reason == Reason.PROTOCOL_ERROR
    unasked = await admitted(house, "u")
    unasked.say(Auth(reason=0x18, **ECHO))
    assert (await unasked.get(Disconnect)).reason == Reason.PROTOCOL_ERROR


class Token(Someone, frozen=True):
    until_ms: int = 0

    def over(self, now_ms: int) -> Reason | None:
        return Reason.NOT_AUTHORIZED if now_ms >= self.until_ms else None


async def test_an_identity_that_is_over_ends_its_connection(open_house: OpenHouse) -> None:
    class Tokens(EverybodyMay):
        async def authenticate(self, login: Login) -> Identity:
            return Token("me", False, house.clock.now_ms() + 5_000)

    async with open_house(hooks=Tokens()) as house:
        client = await house.client("c")
        house.tick(4)
        await client.nothing()
        house.tick(1)
        assert (await client.get(Disconnect)).reason == Reason.NOT_AUTHORIZED
