"""People for random programs: each keeps what it was sent on any of its phones, as an app would, and comes back.

What must hold is said once, in `Crowd.verify`: after quiet each member has every message it should have, none that
it should not have, each phone was sent each conversation in ascending order, and the cursors say so.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from tests.chat.conftest import House, until
from tests.chat.phone import Phone


class Person:
    def __init__(self, user: int) -> None:
        self.user = user
        self.phone: Phone | None = None
        self.acks = True
        self.stored: dict[str, dict[int, str]] = defaultdict(dict)
        """Conversation (`u…` or `g…`) → msgSeq → serverMsgId."""
        self.unsure: list[tuple[str, str, str, int]] = []
        """Sent, and cut before the answer: (conversation, body, client id, where)."""

    def collect(self) -> None:
        """What the present phone was sent: per conversation ascending, never their own."""
        if self.phone is None:
            return
        last: dict[str, int] = defaultdict(int)
        for message in self.phone.messages:
            where = f"g{message['groupId']}" if "groupId" in message else f"u{message['from']}"
            seq = int(message["msgSeq"])
            assert message["from"] != str(self.user), "their own message came back"
            assert seq > last[where], f"{where}: {seq} after {last[where]}"
            last[where] = seq
            known = self.stored[where].setdefault(seq, message["serverMsgId"])
            assert known == message["serverMsgId"], "one place, two messages"


class Crowd:
    def __init__(self, people: list[Person], groups: list[int]) -> None:
        self.people = people
        self.groups = groups
        self.inside: dict[int, dict[int, int]] = {}
        """Group → user → msgSeq at which they joined."""
        self.spells: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        """(group, user) → the spells that are over: (joined at, left at)."""
        self.said: dict[str, dict[int, tuple[int, str]]] = defaultdict(dict)
        """Conversation → msgSeq → (sender, serverMsgId), as acknowledged. Single: `ulow-high`."""
        self.number = 0

    # -- what they do

    async def come(self, house: House, person: Person) -> None:
        await self.go(person, politely=True)
        person.phone = house.phone(person.user, acks=person.acks)
        await person.phone.log_in()

    async def go(self, person: Person, *, politely: bool) -> None:
        phone = person.phone
        if phone is None:
            return
        if politely:
            await phone.close()
        else:
            phone.cut()
        await phone.until_closed()
        person.collect()
        person.phone = None

    async def say(self, sender: Person, receiver: Person) -> None:
        if sender.phone is None or sender is receiver:
            return
        self.number += 1
        answer = await sender.phone.say(receiver.user, f"m{self.number}")
        self._keep(self.pair(sender, receiver), sender, answer)

    async def say_to_group(self, sender: Person, group: int) -> None:
        if sender.phone is None:
            return
        self.number += 1
        answer = await sender.phone.say_to_group(group, f"m{self.number}")
        if sender.user in self.inside[group]:
            self._keep(f"g{group}", sender, answer)
        else:
            assert answer.get("reason") == "not_group_member", answer

    def _keep(self, where: str, sender: Person, answer: dict[str, Any]) -> None:
        assert answer["type"] == "ACK", answer
        seq = int(answer["msgSeq"])
        assert seq not in self.said[where], "a place was given out twice"
        self.said[where][seq] = (sender.user, answer["serverMsgId"])

    @staticmethod
    def pair(one: Person, other: Person) -> str:
        return f"u{min(one.user, other.user)}-{max(one.user, other.user)}"

    async def join(self, house: House, person: Person, group: int) -> None:
        if person.user not in self.inside[group]:
            await house.join(group, person.user)
            self.inside[group][person.user] = len(self.said[f"g{group}"])

    async def leave(self, house: House, person: Person, group: int) -> None:
        if person is not self.people[0] and person.user in self.inside[group]:  # the first owns them all
            await house.leave(group, person.user)
            spell = (self.inside[group].pop(person.user), len(self.said[f"g{group}"]))
            self.spells[group, person.user].append(spell)

    # -- what must hold

    async def verify(self, house: House) -> None:
        for person in self.people:
            person.acks = True
            await self.come(house, person)
        try:
            await until(lambda: all(self._has_all(person) for person in self.people))
        except TimeoutError:
            raise AssertionError("\n".join(filter(None, map(self._missing, self.people)))) from None
        await asyncio.gather(*(person.phone.settled() for person in self.people if person.phone))
        await house.room.gateway.receipts.flush()
        for person in self.people:
            await self._nothing_else(person)
        await until(lambda: self._cursors(house))
        for where, said in self.said.items():
            assert sorted(said) == list(range(1, len(said) + 1)), f"{where} has gaps"
        assert await house.problems() == []
        for person in self.people:
            await self.go(person, politely=True)

    def _expected(self, person: Person) -> dict[str, set[int]]:
        expected: dict[str, set[int]] = {}
        for other in self.people:
            said = self.said.get(self.pair(person, other), {})
            expected[f"u{other.user}"] = {seq for seq, (sender, _) in said.items() if sender == other.user}
        for group in self.groups:
            joined = self.inside[group].get(person.user)
            if joined is not None:
                said = self.said[f"g{group}"]
                expected[f"g{group}"] = {
                    seq for seq, (sender, _) in said.items() if sender != person.user and seq > joined
                }
        return expected

    def _has_all(self, person: Person) -> bool:
        person.collect()
        return all(seqs <= person.stored[where].keys() for where, seqs in self._expected(person).items())

    def _missing(self, person: Person) -> str:
        missing = {
            where: sorted(seqs - person.stored[where].keys())
            for where, seqs in self._expected(person).items()
        }
        return f"{person.user} misses { {where: seqs for where, seqs in missing.items() if seqs} }"

    async def _nothing_else(self, person: Person) -> None:
        person.collect()
        expected = self._expected(person)
        for where, stored in person.stored.items():
            may = set(expected.get(where, ()))
            if where[0] == "g":
                for joined, left in self.spells[int(where[1:]), person.user]:
                    may |= set(range(joined + 1, left + 1))
            assert stored.keys() <= may, f"{person.user} was sent of {where}: {sorted(stored.keys() - may)}"

    async def _cursors(self, house: House) -> bool:
        for person in self.people:
            for group in self.groups:
                if person.user in self.inside[group]:
                    head = len(self.said[f"g{group}"])
                    if (await house.cursor_in(group, person.user))[0] != head:
                        return False
            for other in self.people:
                head = len(self.said.get(self.pair(person, other), {}))
                if head and (await house.cursor_of(person.user, other.user))[0] != head:
                    return False
        return True
