"""One person's library on two devices against a real server."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import (
    AlreadyHere,
    Differs,
    Event,
    Holdfast,
    InvalidValue,
    NotHere,
    Offline,
    Parked,
    Transfer,
)
from holdfast.client.library.model import CHANGED, SYNCED
from holdfast.client.replica import Transaction
from tests.client.test_library_storm import a_pdf, holds
from tests.client.times import MovedTiming
from tests.client.world import SHORT_NAMES, World, until

PDF = b"%PDF-1.4\nmusic\n%%EOF\n"


async def two_devices(world: World) -> tuple[Holdfast, Holdfast]:
    """Quiet: what each does at once after its login is over."""
    desk, phone = await world.person("ann"), await world.person("ann", device="2")
    for device in (desk, phone):
        await device.library.refresh()
    return desk, phone


async def both_ways(*devices: Holdfast) -> None:
    for device in (*devices, *devices):
        await device.library.refresh()


async def test_a_library_made_offline_is_on_the_other_device_after_the_login(world: World) -> None:
    desk = await world.opened("ann")
    score = await desk.library.add_score("Nocturne", composer="Chopin", bpm=60)
    part = await desk.library.add_part(score.id, "Piano", pdf=PDF, annotations="[1]")
    friday = await desk.library.add_setlist("Friday", description="at eight")
    await desk.library.add_to_setlist(friday.id, score.id, order=1)
    await desk.register("ann", "correct horse")
    await desk.library.refresh()
    phone = await world.person("ann", device="2")
    await phone.library.refresh()
    assert await holds(phone) == await holds(desk)
    [seen] = await phone.library.scores()
    [here] = await phone.library.parts(seen.id)
    assert here.annotations == "[1]"
    assert (await phone.library.pdf(here.id)).read_bytes() == PDF
    assert part.pdf == here.pdf
    assert await phone.library.sync.verify(at_once=True) is True
    assert await desk.library.sync.verify(at_once=True) is True


async def test_two_devices_that_make_the_same_score_have_one(world: World) -> None:
    desk, phone = await two_devices(world)
    for device, bpm, instrument in ((desk, 60, "Piano"), (phone, 66, "Violin")):
        score = await device.library.add_score("Nocturne", composer="Chopin", bpm=bpm)
        await device.library.add_part(score.id, instrument)
    await both_ways(desk, phone)
    [one] = await desk.library.scores()
    assert one.bpm == 66  # what was pending on the second device won
    assert [part.instrument for part in await desk.library.parts(one.id)] == ["Piano", "Violin"]
    assert await holds(desk) == await holds(phone)


async def test_a_change_pending_here_wins_over_one_that_was_made_elsewhere(world: World) -> None:
    desk, phone = await two_devices(world)
    score = await desk.library.add_score("Nocturne", bpm=60)
    other = await desk.library.add_score("Etude", bpm=60)
    await both_ways(desk, phone)
    theirs = {each.title: each.id for each in await phone.library.scores()}
    await desk.library.change_score(score.id, bpm=61)
    await desk.library.change_score(other.id, bpm=71)
    await desk.library.refresh()
    await phone.library.change_score(theirs["Nocturne"], bpm=62)
    await both_ways(phone, desk)
    for device in (desk, phone):
        assert {each.title: each.bpm for each in await device.library.scores()} == {
            "Nocturne": 62,
            "Etude": 71,
        }


async def test_a_part_changed_here_brings_back_the_score_that_was_deleted_there(world: World) -> None:
    desk, phone = await two_devices(world)
    score = await desk.library.add_score("Nocturne")
    await desk.library.add_part(score.id, "Piano", annotations="old")
    await both_ways(desk, phone)
    [theirs] = await phone.library.scores()
    [part] = await phone.library.parts(theirs.id)
    await desk.library.delete_score(score.id)
    await desk.library.refresh()
    await phone.library.change_part(part.id, annotations="new")
    await both_ways(phone, desk)
    for device in (desk, phone):
        [back] = await device.library.scores()
        assert [each.annotations for each in await device.library.parts(back.id)] == ["new"]
        assert await device.library.sync.verify(at_once=True) is True


async def test_a_score_deleted_and_made_anew_elsewhere_is_the_one_that_was_changed_here(world: World) -> None:
    desk, phone = await two_devices(world)
    score = await desk.library.add_score("Nocturne", bpm=60)
    await both_ways(desk, phone)
    [theirs] = await phone.library.scores()
    await phone.library.change_score(theirs.id, bpm=99)
    await phone.library.add_part(theirs.id, "Flute")
    await desk.library.delete_score(score.id)
    await desk.library.add_score("Nocturne", bpm=61)
    await desk.library.refresh()
    await both_ways(phone, desk)
    for device in (desk, phone):
        assert await device.library.parked() == []
        [one] = await device.library.scores()
        assert one.bpm == 99
        assert [part.instrument for part in await device.library.parts(one.id)] == ["Flute"]


async def test_a_key_that_is_taken_is_refused_here_before_anything_is_written(world: World) -> None:
    ann = await world.opened("ann")
    await ann.library.add_score("Nocturne", composer="Chopin")
    other = await ann.library.add_score("Nocturne")
    for call in (
        ann.library.add_score("Nocturne", composer="Chopin"),
        ann.library.add_score("Nocturne", composer=""),
        ann.library.change_score(other.id, composer="Chopin"),
    ):
        with pytest.raises(AlreadyHere):
            await call
    assert len(await ann.library.scores()) == 2


async def test_two_devices_that_rename_to_one_key_park_the_later_one_and_go_on(world: World) -> None:
    desk, phone = await two_devices(world)
    first = await desk.library.add_score("First")
    await desk.library.add_score("Second")
    await both_ways(desk, phone)
    theirs = {each.title: each.id for each in await phone.library.scores()}
    await desk.library.change_score(first.id, title="Nocturne")
    await desk.library.refresh()
    await phone.library.change_score(theirs["Second"], title="Nocturne")
    await phone.library.add_score("Third")
    await phone.library.refresh()
    [parked] = await phone.library.parked()
    assert parked.refusal is not None
    assert parked.refusal.reason == "key_taken"
    assert "Third" in [score.title for score in await phone.library.scores()]
    await phone.library.change_score(parked.id, title="Nocturne II")
    await both_ways(phone, desk)
    assert {score.title for score in await desk.library.scores()} == {"Nocturne", "Nocturne II", "Third"}
    assert await holds(desk) == await holds(phone)


async def test_a_refused_change_is_parked_and_blocks_nobody(world: World) -> None:
    ann = await world.person("ann")
    events: list[Event] = []
    ann.on_event(events.append)
    bad = await ann.library.add_score("x" * (SHORT_NAMES + 1))
    child = await ann.library.add_part(bad.id, "Piano")
    for number in range(20):
        await ann.library.add_score(f"Good {number}")
    await ann.library.refresh()
    assert [row.id for row in await ann.library.parked()] == [bad.id]
    assert [event.id for event in events if isinstance(event, Parked)] == [bad.id]
    assert sum(score.state == SYNCED for score in await ann.library.scores()) == 20
    assert (await ann.library.parts(bad.id))[0].refusal is None  # it waits for its score
    await ann.library.change_score(bad.id, title="Short")
    await ann.library.refresh()
    assert (await ann.library.parts(bad.id))[0].id == child.id
    assert (await ann.library.waiting()).pending == 0


async def test_a_push_whose_answer_was_lost_is_sent_again_as_it_was(world: World) -> None:
    ann = await world.person("ann")
    await ann.library.refresh()
    ask, lost = ann._http.ask, 0
    pushes: list[tuple[object, object]] = []

    async def lose_the_first_answer(method: str, path: str, **how: Any) -> object:
        nonlocal lost
        if path == "/library/push":
            pushes.append((how["headers"]["Idempotency-Key"], how["body"]))
        answer = await ask(method, path, **how)
        if path == "/library/push" and not lost:
            lost += 1
            raise Offline
        return answer

    ann._http.ask = lose_the_first_answer  # type: ignore[method-assign,assignment]
    score = await ann.library.add_score("Nocturne", bpm=60)
    with pytest.raises(Offline):
        await ann.library.refresh()
    await ann.library.change_score(score.id, bpm=61)  # meanwhile
    assert (await ann.library.score(score.id)).state == CHANGED or lost
    await ann.library.refresh()
    assert len(pushes) == 3  # the first one, the same once more, and the edit
    assert pushes[0] == pushes[1]
    other = await world.person("ann", device="2")
    await other.library.refresh()
    assert [each.bpm for each in await other.library.scores()] == [61]
    assert await ann.library.sync.verify(at_once=True) is True


async def test_changes_wait_five_seconds_for_more_and_go_together(world: World) -> None:
    timing = MovedTiming()
    ann = world.replica("ann", timing=timing)
    await ann.open()
    await ann.register("ann", "correct horse")

    async def at_rest() -> bool:
        await timing.pass_by(0.01)
        return bool((await ann.status()).online and not ann.library.sync.wanted.called)

    await until(at_rest)
    pushes = 0
    ask = ann._http.ask

    async def count(method: str, path: str, **how: object) -> object:
        nonlocal pushes
        pushes += path == "/library/push"
        return await ask(method, path, **how)  # type: ignore[arg-type]

    ann._http.ask = count  # type: ignore[method-assign,assignment]
    for number in range(3):
        await ann.library.add_score(f"Score {number}")
        await asyncio.sleep(0.05)  # the watcher has seen it
        await timing.pass_by(4)
    assert pushes == 0

    async def sent() -> bool:
        await timing.pass_by(1)
        return not (await ann.library.waiting()).pending

    await until(sent)
    assert pushes == 1
    await ann.close()


async def test_a_large_pdf_goes_in_pieces_and_goes_on_after_a_restart(world: World) -> None:
    big = a_pdf(random.Random(1), 10_000_000)
    ann = world.replica("ann")
    await ann.open()
    await ann.register("ann", "correct horse")
    await ann.library.refresh()
    sent: list[int] = []
    ask = ann._http.ask

    async def cut_after_one_piece(method: str, path: str, **how: object) -> object:
        if method == "PATCH" and sent:
            raise Offline
        if method == "PATCH":
            sent.append(1)
        return await ask(method, path, **how)  # type: ignore[arg-type]

    ann._http.ask = cut_after_one_piece  # type: ignore[method-assign,assignment]
    score = await ann.library.add_score("Symphony")
    part = await ann.library.add_part(score.id, "Full score", pdf=big)
    with pytest.raises(Offline):
        await ann.library.refresh()
    await ann.close()
    again = await world.opened("ann")
    transfers: list[Transfer] = []
    again.on_event(lambda event: transfers.append(event) if isinstance(event, Transfer) else None)
    await again.library.refresh()
    assert min(event.done for event in transfers) > 0
    other = await world.person("ann", device="2")
    await other.library.refresh()
    [seen] = await other.library.scores()
    [there] = await other.library.parts(seen.id)
    assert there.pdf == part.pdf
    assert (await other.library.pdf(there.id)).read_bytes() == big


async def test_a_pdf_that_the_server_knows_is_claimed_and_not_sent(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    pdf = a_pdf(random.Random(2), 3_000_000)
    score = await ann.library.add_score("Etude")
    await ann.library.add_part(score.id, "Piano", pdf=pdf)
    await ann.library.refresh()
    asked: list[tuple[str, str]] = []
    ask = bob._http.ask

    async def record(method: str, path: str, **how: object) -> object:
        asked.append((method, path))
        return await ask(method, path, **how)  # type: ignore[arg-type]

    bob._http.ask = record  # type: ignore[method-assign,assignment]
    score = await bob.library.add_score("Etude")
    await bob.library.add_part(score.id, "Piano", pdf=pdf)
    await bob.library.refresh()
    paths = [path for _, path in asked]
    assert "/file/claim" in paths
    assert "/file/tus" not in paths
    assert "/file/upload" not in paths
    assert (await bob.library.waiting()).pending == 0


async def test_a_content_goes_when_nothing_here_refers_to_it(world: World) -> None:
    ann = await world.person("ann")
    score = await ann.library.add_score("Etude")
    one = await ann.library.add_part(score.id, "Piano", pdf=PDF)
    two = await ann.library.add_part(score.id, "Organ", pdf=PDF)
    await ann.library.refresh()
    await ann.library.delete_part(one.id)
    await ann.library.refresh()
    assert ann._contents.has(str(two.pdf))
    await ann.library.delete_part(two.id)
    await ann.library.refresh()
    assert not ann._contents.has(str(two.pdf))


async def test_what_is_not_a_pdf_is_refused_and_changes_nothing(world: World, tmp_path: Path) -> None:
    ann = await world.opened("ann")
    score = await ann.library.add_score("Etude")
    with pytest.raises(InvalidValue):
        await ann.library.add_part(score.id, "Piano", pdf=b"hello")
    assert await ann.library.parts(score.id) == []
    part = await ann.library.add_part(score.id, "Piano")
    with pytest.raises(NotHere):
        await ann.library.pdf(part.id)


async def test_a_difference_is_found_by_the_checksum_and_repaired(world: World) -> None:
    ann = await world.person("ann")
    for number in range(10):
        score = await ann.library.add_score(f"Score {number}")
        await ann.library.add_part(score.id, "Piano")
    await ann.library.refresh()
    before = await holds(ann)

    def damage(tx: Transaction) -> None:
        found = tx.rows("SELECT id FROM library_row ORDER BY version")
        tx.execute("DELETE FROM library_row WHERE id = ?", found[3][0])
        tx.execute(
            'UPDATE library_row SET data = \'{"title":"wrong"}\', version = version - 1 WHERE id = ?',
            found[6][0],
        )

    await ann._replica.write(damage)
    events: list[Event] = []
    ann.on_event(events.append)
    assert await ann.library.sync.verify(at_once=True) is False
    assert any(isinstance(event, Differs) and event.room == "library" for event in events)
    await ann.library.refresh()
    assert await holds(ann) == before
    assert await ann.library.sync.verify(at_once=True) is True
