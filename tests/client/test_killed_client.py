"""SIGKILL at any moment loses nothing that a call had returned, and what was on its way arrives once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from holdfast.client import Holdfast
from tests.client import mortal
from tests.client.world import World, until
from tests.faults.process import ROOT

KILLS = int(os.environ.get("HOLDFAST_CLIENT_KILLS", "6"))
APART = 1_000_000


class Said:
    """What the killed ones had been told."""

    def __init__(self) -> None:
        self.book = ""
        self.bills: dict[str, str] = {}
        self.last: set[str] = set()
        """The bills that each of the killed ones was working on."""
        self.parts: dict[str, str] = {}
        self.messages: dict[str, str] = {}

    def hear(self, line: str) -> None:
        kind, *rest = line.split(" ", 2)
        match kind:
            case "book":
                assert self.book in ("", rest[0])
                self.book = rest[0]
            case "bill":
                self.bills[rest[0]] = rest[1]
            case "part":
                self.parts[rest[0]] = rest[1]
            case "message":
                self.messages[rest[0]] = f"message {rest[1]}"


def killed_after(lines: int, said: Said, *arguments: str) -> None:
    command = [sys.executable, "-m", mortal.__name__, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as child:
        assert child.stdout is not None
        for number, line in enumerate(child.stdout):
            said.hear(line.rstrip("\n"))
            if number == lines:
                child.kill()
    said.last.update(list(said.bills)[-1:])


async def check(app: Holdfast, said: Said, to: str) -> None:
    """Nothing that was said is missing. What the last call did before it could return may be there too."""
    bills = {bill.id: bill for bill in await app.ledger.bills(said.book)}
    for identity, word in said.bills.items():
        if word == "-":
            assert identity not in bills
        elif identity in bills:
            # or a call was killed after its commit, before it could return
            assert bills[identity].category in (word, f"changed {bills[identity].money}")
        else:
            assert identity in said.last
    for part_id, score_id in said.parts.items():
        [part] = await app.library.parts(score_id)
        assert part.id == part_id
        assert (await app.library.pdf(part_id)).read_bytes().startswith(b"%PDF-")
    sent = [message.body for message in await app.chat.messages(f"u:{to}", limit=10**6)]
    assert len(sent) == len(set(sent))
    assert set(said.messages.values()) <= set(sent)


async def test_a_killed_client_has_lost_nothing_that_a_call_had_returned(
    world: World, tmp_path: Path
) -> None:
    source, said = random.Random(5), Said()
    bob = await world.person("bob", chat=True)
    ann = world.replica("ann", chat=True)
    await ann.open()
    await ann.register("ann", "correct horse")
    await ann.close()
    for kill in range(KILLS):
        killed_after(
            source.randrange(1, 250),
            said,
            str(tmp_path / "ann.db"),
            world.doors["http"],
            world.doors["ws"],
            bob.user_id,
            str(kill * APART),
        )
        again = world.replica("ann", chat=True)
        await again.open()
        await check(again, said, bob.user_id)
        await again.close()
    ann = await world.opened("ann", chat=True)

    async def sent() -> bool:
        await ann.settled()
        return not (await ann.status()).pending

    await until(sent)
    await check(ann, said, bob.user_id)
    assert await ann.verify()
    assert (await ann.status()).parked == 0
    remarks = [bill.remark for bill in await ann.ledger.bills(said.book)]
    assert len(remarks) == len(set(remarks))

    async def arrived() -> bool:
        there = [message.body for message in await bob.chat.messages(f"u:{ann.user_id}", limit=10**6)]
        assert len(there) == len(set(there))
        return set(said.messages.values()) <= set(there)

    await until(arrived)
