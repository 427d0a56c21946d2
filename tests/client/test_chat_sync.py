"""Chat between people against a real server."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client import ChatEnded, Event, Holdfast, InvalidValue, Message, MessageArrived, Parked
from holdfast.client.replica import Transaction
from tests.client.hurried import hurried
from tests.client.world import World, until


async def two_people(world: World) -> tuple[Holdfast, Holdfast]:
    return await world.person("ann", chat=True), await world.person("bob", chat=True)


async def said(app: Holdfast, whom: Holdfast) -> list[str | None]:
    return [message.body for message in await app.chat.messages(f"u:{whom.user_id}")]


async def arrives(app: Holdfast, whom: Holdfast, words: list[str | None]) -> None:
    async def there() -> bool:
        return await said(app, whom) == words

    await until(there, f"{words}")


async def test_what_was_written_offline_arrives_in_its_order(world: World) -> None:
    ann, bob = await two_people(world)
    world.server.kill()
    words: list[str | None] = [f"number {number}" for number in range(10)]
    for word in words:
        waiting = await ann.chat.send(str(word), to=bob.user_id)
        assert not waiting.is_saved
    assert await said(ann, bob) == words
    assert (await ann.status()).rooms["chat"].pending == 10
    await world.restart()
    for person in (ann, bob):
        person.network_returned()
    await arrives(bob, ann, words)
    messages = await ann.chat.messages(f"u:{bob.user_id}")
    assert [message.seq for message in messages] == list(range(1, 11))
    assert (await ann.status()).rooms["chat"].pending == 0


async def test_the_queue_survives_a_restart_and_keeps_its_names(world: World) -> None:
    bob = await world.person("bob", chat=True)
    ann = world.replica("ann", chat=True)
    await ann.open()
    await ann.register("ann", "correct horse")
    world.server.kill()
    sent = await ann.chat.send("hello", to=bob.user_id)
    await ann.close()
    await world.restart()
    ann = await world.opened("ann", chat=True)
    await arrives(bob, ann, ["hello"])
    [there] = await bob.chat.messages(f"u:{ann.user_id}")
    assert there.client_msg_id == sent.client_msg_id


async def test_receipts_come_back_for_what_was_received_and_read(world: World) -> None:
    ann, bob = await two_people(world)
    await ann.chat.send("hello", to=bob.user_id)
    await arrives(bob, ann, ["hello"])

    async def delivered(read: int) -> bool:
        [conversation] = await ann.chat.conversations()
        return (conversation.their_delivered, conversation.their_read) == (1, read)

    await until(lambda: delivered(0))
    [there] = await bob.chat.conversations()
    assert there.unread == 1
    await bob.chat.mark_read(there.id)
    await until(lambda: delivered(1))
    assert (await bob.chat.conversations())[0].unread == 0


async def test_a_gap_is_not_acknowledged_and_is_filled_over_http(world: World) -> None:
    ann, bob = await two_people(world)
    for number in range(5):
        await ann.chat.send(str(number), to=bob.user_id)
    await arrives(bob, ann, list("01234"))
    conversation = f"u:{ann.user_id}"

    def lose(tx: Transaction) -> None:
        """As if two frames had never come, and nothing had been acknowledged behind them."""
        tx.execute("DELETE FROM chat_message WHERE seq IN (3, 4)")
        tx.execute("UPDATE chat_conversation SET contiguous = 2 WHERE id = ?", conversation)

    await bob._replica.write(lose)
    await ann.chat.send("5", to=bob.user_id)
    await arrives(bob, ann, list("012345"))

    async def whole() -> bool:
        return not await bob._replica.read(
            lambda view: view.rows("SELECT 1 FROM chat_conversation WHERE contiguous < head")
        )

    await until(whole)


async def test_a_message_that_is_refused_for_good_is_told_and_the_next_one_goes(world: World) -> None:
    ann, bob = await two_people(world)
    events: list[Event] = []
    ann.on_event(events.append)
    lost = await ann.chat.send("anybody there?", to="123456")
    await ann.chat.send("hello", to=bob.user_id)
    await arrives(bob, ann, ["hello"])

    async def refused() -> Message | None:
        [message] = await ann.chat.messages("u:123456")
        return message if message.refusal else None

    assert (await until(refused)).refusal == "user_not_found"
    assert [event.reason for event in events if isinstance(event, Parked)] == ["user_not_found"]
    await ann.chat.discard(lost.client_msg_id)
    assert await ann.chat.messages("u:123456") == []


async def test_who_is_kicked_stays_away_until_he_is_asked_to_come(world: World) -> None:
    ann, bob = await two_people(world)
    events: list[Event] = []
    ann.on_event(events.append)

    async def is_open(app: Holdfast) -> bool:
        return app.chat.state == "open"

    await until(lambda: is_open(ann))
    phone = await world.person("ann", device="2", chat=True)
    await until(lambda: is_open(phone))

    async def kicked() -> bool:
        return ann.chat.state == "kicked"

    await until(kicked)
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["kicked"]
    await bob.chat.send("to the phone", to=ann.user_id)
    await arrives(phone, bob, ["to the phone"])
    assert ann.chat.state == "kicked"
    ann.chat.connect()
    await until(lambda: is_open(ann))
    await arrives(ann, bob, ["to the phone"])


async def test_a_session_that_ended_needs_a_login_and_goes_on_after_it(world: World) -> None:
    ann, bob = await two_people(world)
    await ann.chat.send("before", to=bob.user_id)
    await arrives(bob, ann, ["before"])
    await ann._http.ask("POST", "/auth/logout-all", body=b"{}", at_once=True)

    async def out() -> bool:
        return not ann.logged_in

    await until(out)
    await ann.chat.send("meanwhile", to=bob.user_id)
    await ann.login("ann", "correct horse")
    await arrives(bob, ann, ["before", "meanwhile"])


async def test_the_token_is_renewed_on_a_live_connection(world: World) -> None:
    """Its access tokens last seconds here, and the connection outlives many of them."""
    world.server.kill()
    doors = world.doors
    await world.server.start(
        *(part for door in ("http", "mqtt", "ws") for part in (f"--{door}", doors[door])),
        "--set",
        "auth.access_seconds=125",
    )
    ann = await world.person("ann", chat=True, timing=hurried())
    bob = await world.person("bob", chat=True, timing=hurried())
    events: list[Event] = []
    ann.on_event(events.append)
    tokens = set()
    for number in range(4):
        await ann.chat.send(str(number), to=bob.user_id)
        await arrives(bob, ann, [str(n) for n in range(number + 1)])
        tokens.add(await ann._account.token())
        await asyncio.sleep(2)  # more than the 5 s of 125 that are left before it is renewed, in hurried time
    assert len(tokens) > 1
    assert not [event for event in events if isinstance(event, ChatEnded)]


async def test_a_group_is_read_by_all_its_members_and_by_who_joins_from_then_on(world: World) -> None:
    ann, bob = await two_people(world)
    group = await ann.chat.create_group("Choir", (bob.user_id,))
    await ann.chat.send("one", group=group.group_id)

    async def bodies(app: Holdfast, expected: list[str]) -> bool:
        found = await app.chat.messages(f"g:{group.group_id}")
        return [message.body for message in found if message.is_saved] == expected

    await until(lambda: bodies(bob, ["one"]))
    cyd = await world.person("cyd", chat=True)
    assert group.group_code is not None
    await cyd.chat.join_group(group.group_code)
    await bob.chat.send("two", group=group.group_id)
    for app, expected in ((ann, ["one", "two"]), (bob, ["one", "two"]), (cyd, ["two"])):
        await until(lambda app=app, expected=expected: bodies(app, expected))  # type: ignore[misc]
        assert await app.chat.filling.verify()
    assert {member.user_id for member in await ann.chat.members(group.group_id)} == {
        ann.user_id,
        bob.user_id,
        cyd.user_id,
    }

    async def named() -> bool:
        return [each.name for each in await bob.chat.conversations() if each.id.startswith("g:")] == ["Choir"]

    await until(named)


async def test_a_message_taken_back_is_a_placeholder_for_everybody(world: World) -> None:
    ann, bob = await two_people(world)
    await ann.chat.send("oops", to=bob.user_id)
    await arrives(bob, ann, ["oops"])
    [message] = await ann.chat.messages(f"u:{bob.user_id}")
    await ann.chat.revoke(message.server_msg_id)
    await arrives(bob, ann, [None])
    await arrives(ann, bob, [None])
    assert (await bob.chat.messages(f"u:{ann.user_id}"))[0].is_revoked


async def test_a_new_replica_of_the_same_person_has_the_whole_history(world: World) -> None:
    ann, bob = await two_people(world)
    words: list[str | None] = [f"number {number}" for number in range(30)]
    for word in words:
        await ann.chat.send(str(word), to=bob.user_id)
    await arrives(bob, ann, words)
    await bob.chat.send("thanks", to=ann.user_id)
    await bob.settled()
    again = await world.person("bob", device="2", chat=True)
    await arrives(again, ann, [*words, "thanks"])
    assert await again.chat.filling.verify()


async def test_wrong_messages_are_refused_before_they_are_kept(world: World) -> None:
    ann = await world.opened("ann")
    for how in (
        {"body": "", "to": "7"},
        {"body": "x" * 4097, "to": "7"},
        {"body": "x"},
        {"body": "x", "to": "7", "group": "8"},
        {"body": "a\0b", "to": "7"},
    ):
        with pytest.raises(InvalidValue):
            await ann.chat.send(**how)  # type: ignore[arg-type]
    assert await ann.chat.conversations() == []


async def test_messages_are_told_once_each(world: World) -> None:
    ann, bob = await two_people(world)
    events: list[Event] = []
    bob.on_event(events.append)
    for number in range(20):
        await ann.chat.send(str(number), to=bob.user_id)
    await arrives(bob, ann, [str(number) for number in range(20)])
    await bob.chat.refresh()
    told = [event.server_msg_id for event in events if isinstance(event, MessageArrived)]
    assert len(told) == len(set(told)) == 20
