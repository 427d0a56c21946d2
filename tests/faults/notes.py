"""Notes: the clients of `notes_server`, and the proof over what it holds.

A note's text follows from its id, so that what must be there is known from the ids alone.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random

import msgspec

from tests.faults.note import PAGE, SHELVES, Kept, Page, Row, seal_of
from tests.faults.operations import Doors, Figures, Lost
from tests.faults.wire import Cut, Wire

COMMAND = (sys.executable, "-m", "tests.faults.notes_server")

SEND_AGAIN = 0.15  # how often a client sends a note that was sent before
AWAY_SECONDS = 0.02
KEPT = msgspec.json.Decoder(Kept)
PAGES = msgspec.json.Decoder(Page)


def text_of(number: int) -> str:
    return f"note {number} " + "ü" * (number * 7919 % 120)


class Notes:
    def __init__(self, seed: int, clients: int = 32) -> None:
        self.figures = Figures()
        self._random = Random(seed)
        self._clients = clients
        self._next = 0
        self._serials: dict[int, int] = {}
        """What was acknowledged: a note's id, and the serial it got."""
        self._acknowledged: list[int] = []
        self._unknown: set[int] = set()

    # -- load

    async def work(self, doors: Doors) -> None:
        async with asyncio.TaskGroup() as clients:
            for _ in range(self._clients):
                clients.create_task(self._client(doors["http"]))

    async def _client(self, address: str) -> None:
        async with Wire(address) as wire:
            while True:
                number = self._choose()
                try:
                    answer = await wire.post("/notes", {"id": number, "text": text_of(number)})
                except (Cut, asyncio.CancelledError) as error:
                    self._not_heard(number)
                    if isinstance(error, asyncio.CancelledError):
                        raise
                    await asyncio.sleep(AWAY_SECONDS)
                    continue
                if answer.status == 503:
                    self._not_heard(number)
                    await asyncio.sleep(AWAY_SECONDS)
                elif answer.status == 201:
                    self._heard(number, KEPT.decode(answer.body))
                else:
                    raise Lost(f"note {number} was answered with {answer.status}: {answer.body!r}")

    def _choose(self) -> int:
        """A new note; or one of unknown fate, or an acknowledged one, once more."""
        if self._random.random() < SEND_AGAIN:
            if self._unknown and self._random.random() < 0.5:
                return self._random.choice(sorted(self._unknown))
            if self._acknowledged:
                return self._random.choice(self._acknowledged)
        self._next += 1
        return self._next

    def _not_heard(self, number: int) -> None:
        if number not in self._serials:
            self._unknown.add(number)
            self.figures.unknown += 1

    def _heard(self, number: int, kept: Kept) -> None:
        first = self._serials.get(number)
        if first is None:
            self._serials[number] = kept.serial
            self._acknowledged.append(number)
            self._unknown.discard(number)
            self.figures.acknowledged += 1
        elif first == kept.serial:
            self.figures.replayed += 1
        else:
            raise Lost(f"note {number} was first kept at {first}, and sent again at {kept.serial}")

    # -- proof

    async def verify(self, doors: Doors) -> None:
        found: set[int] = set()
        async with Wire(doors["http"]) as wire:
            loose = (await wire.get("/loose")).body
            if loose != b"[]":
                raise Lost(f"half a note: seals without notes {loose!r}")
            for shelf in range(SHELVES):
                await self._verify_shelf(wire, shelf, found)
        lost = self._serials.keys() - found
        if lost:
            raise Lost(f"{len(lost)} acknowledged notes are lost, among them {sorted(lost)[:5]}")
        strange = found - self._serials.keys() - self._unknown
        if strange:
            raise Lost(f"{len(strange)} notes nobody sent, among them {sorted(strange)[:5]}")

    async def _verify_shelf(self, wire: Wire, shelf: int, found: set[int]) -> None:
        above = 0
        while True:
            answer = await wire.get(f"/notes/{shelf}?above={above}")
            if answer.status != 200:
                raise Lost(f"shelf {shelf} cannot be read: {answer.status} {answer.body!r}")
            page = PAGES.decode(answer.body)
            for expected, row in enumerate(page.rows, start=above + 1):
                found.add(self._verify_row(row, shelf, expected))
            above += len(page.rows)
            if len(page.rows) < PAGE:
                break
        if above != page.last:
            raise Lost(f"shelf {shelf} has {above} notes and has counted {page.last}")

    def _verify_row(self, row: Row, shelf: int, expected: int) -> int:
        assert row.id is not None
        if row.serial != expected:
            raise Lost(f"shelf {shelf} has no note {expected}, but {row.serial}")
        if row.seal is None:
            raise Lost(f"half a note: {row.id} has no seal")
        if row.text != text_of(row.id) or row.seal != seal_of(row.text) or row.id % SHELVES != shelf:
            raise Lost(f"note {row.id} is not what was sent: {row}")
        acknowledged = self._serials.get(row.id, row.serial)
        if acknowledged != row.serial:
            raise Lost(f"note {row.id} was acknowledged at {acknowledged} and lies at {row.serial}")
        return row.id
