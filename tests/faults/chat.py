"""Chat under the storm: pairs who send each other messages, acknowledge what they receive, and come back when cut.

A message's words follow from its client id, so that what must be there is known from the ids alone. What was heard
as saved must lie at that place for ever, with that id; what was received must be in the log; a cursor must not be
beyond what its reader has received; and sending again must give the first answer.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.faults.operations import Doors, Figures, Lost
from tests.faults.wire import Cut, Wire

PASSWORD = "correct horse"
PAIRS = 4
WINDOW = 8
SEND_AGAIN = 0.15
AWAY_SECONDS = 0.05
PAGE = 200


class Place(msgspec.Struct, frozen=True):
    seq: int
    message: str


class Half:
    """One of a pair."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.user = ""
        self.token = ""
        self.sent: dict[str, Place] = {}
        """Client id → where it was acknowledged."""
        self.unknown: set[str] = set()
        self.received: dict[int, str] = {}
        self.number = 0

    def words(self, key: str) -> str:
        return f"{self.name} says {key} " + "ü" * (len(key) * 7 % 40)


class Chat:
    def __init__(self, seed: int) -> None:
        self.figures = Figures()
        self._random = Random(seed)
        self._pairs = [(Half(f"pair{n}-left"), Half(f"pair{n}-right")) for n in range(PAIRS)]

    # -- load

    async def work(self, doors: Doors) -> None:
        async with asyncio.TaskGroup() as clients:
            for left, right in self._pairs:
                clients.create_task(self._live(left, right, doors))
                clients.create_task(self._live(right, left, doors))

    async def _live(self, here: Half, there: Half, doors: Doors) -> None:
        while True:
            try:
                await self._enter(here, doors["http"])
                if there.user:
                    async with connect(f"ws://{doors['ws']}/ws", ping_interval=None, open_timeout=20) as line:
                        await self._talk(here, there, line)
            except (OSError, EOFError, Cut, WebSocketException):
                pass
            await asyncio.sleep(AWAY_SECONDS)

    async def _enter(self, here: Half, address: str) -> None:
        """Registers and logs in, as often as it takes; a token outlives a restart."""
        if here.token:
            return
        async with Wire(address) as wire:
            body = {"username": here.name, "password": PASSWORD}
            await wire.post("/auth/register", body)
            answer = await wire.post("/auth/login", body)
            if answer.status == 200:
                data = json.loads(answer.body)["data"]
                here.user, here.token = data["userId"], data["accessToken"]

    async def _talk(self, here: Half, there: Half, line: ClientConnection) -> None:
        await line.send(json.dumps({"type": "AUTH", "token": here.token}))
        waiting: dict[str, None] = {}
        try:
            async for text in line:
                frame = json.loads(text)
                match frame["type"]:
                    case "SINGLE_CHAT":
                        await self._receive(here, there, line, frame)
                    case "ACK" if frame["ackType"] == "saved":
                        waiting.pop(frame["clientMsgId"], None)
                        self._heard(here, frame)
                    case "ERROR":
                        if frame["reason"] not in ("server_busy", "kicked"):
                            raise Lost(f"{here.name} was answered with {frame}")
                        waiting.pop(frame.get("clientMsgId", ""), None)
                        await asyncio.sleep(AWAY_SECONDS)
                while len(waiting) < WINDOW:
                    key = self._choose(here)
                    if key in waiting:
                        break
                    waiting[key] = None
                    self._not_heard(here, key)
                    said = {
                        "type": "SINGLE_CHAT",
                        "to": there.user,
                        "clientMsgId": key,
                        "body": here.words(key),
                    }
                    await line.send(json.dumps(said))
        except Lost:
            raise
        except (OSError, WebSocketException) as error:
            raise Cut from error

    async def _receive(self, here: Half, there: Half, line: ClientConnection, frame: dict[str, Any]) -> None:
        seq, key = int(frame["msgSeq"]), frame["clientMsgId"]
        if frame["body"] != there.words(key):
            raise Lost(f"{here.name} received other words than were said: {frame}")
        if here.received.setdefault(seq, key) != key:
            raise Lost(f"{here.name} received two messages at {seq}: {here.received[seq]} and {key}")
        await line.send(
            json.dumps({"type": "ACK", "ackType": "delivered", "serverMsgId": frame["serverMsgId"]})
        )

    def _choose(self, here: Half) -> str:
        if self._random.random() < SEND_AGAIN:
            if here.unknown and self._random.random() < 0.7:
                return self._random.choice(sorted(here.unknown))
            if here.sent:
                return self._random.choice(list(here.sent))
        here.number += 1
        return f"{here.name}-{here.number}"

    def _not_heard(self, here: Half, key: str) -> None:
        if key not in here.sent and key not in here.unknown:
            here.unknown.add(key)
            self.figures.unknown += 1

    def _heard(self, here: Half, frame: dict[str, Any]) -> None:
        key, place = frame["clientMsgId"], Place(int(frame["msgSeq"]), frame["serverMsgId"])
        first = here.sent.get(key)
        if first is None:
            here.sent[key] = place
            here.unknown.discard(key)
            self.figures.acknowledged += 1
            self.figures.unknown -= 1
        elif first == place:
            self.figures.replayed += 1
        else:
            raise Lost(f"{key} was saved at {first}, and then at {place}")

    # -- proof

    async def verify(self, doors: Doors) -> None:
        for left, right in self._pairs:
            if left.token and right.token:
                async with Wire(doors["http"], left.token) as wire:
                    log = await self._log(wire, right.user)
                    state = await self._asked(wire, f"/single-chat/member/state?peerUserId={right.user}")
                self._verify_pair(left, right, log)
                self._verify_cursor(left, right, log, int(state["myLastDeliveredMsgSeq"]))
                self._verify_cursor(right, left, log, int(state["peerLastDeliveredMsgSeq"]))

    async def _log(self, wire: Wire, peer: str) -> dict[int, dict[str, Any]]:
        log: dict[int, dict[str, Any]] = {}
        while True:
            page = await self._asked(
                wire, f"/single-chat/message/since?peerUserId={peer}&limit={PAGE}&sinceSeq={len(log)}"
            )
            for message in page["items"]:
                seq = int(message["msgSeq"])
                if seq != len(log) + 1:
                    raise Lost(f"after {len(log)} comes {seq}")
                log[seq] = message
            if not page["hasMore"]:
                return log

    async def _asked(self, wire: Wire, path: str) -> Any:
        answer = await wire.get(path)
        if answer.status != 200:
            raise Lost(f"{path} cannot be read: {answer.status} {answer.body!r}")
        return json.loads(answer.body)["data"]

    def _verify_pair(self, left: Half, right: Half, log: dict[int, dict[str, Any]]) -> None:
        by_user = {left.user: left, right.user: right}
        seen: set[str] = set()
        for seq, message in log.items():
            sender, key = by_user[message["from"]], message["clientMsgId"]
            if key in seen:
                raise Lost(f"{key} is there twice")
            seen.add(key)
            if message["body"] != sender.words(key):
                raise Lost(f"message {seq} is not what was said: {message}")
            if key not in sender.sent and key not in sender.unknown:
                raise Lost(f"message {seq} was said by nobody: {key}")
        for half in (left, right):
            for key, place in half.sent.items():
                found = log.get(place.seq)
                if found is None or found["clientMsgId"] != key or found["serverMsgId"] != place.message:
                    raise Lost(f"{key} was saved at {place}, and there is {found}")

    def _verify_cursor(self, here: Half, there: Half, log: dict[int, dict[str, Any]], cursor: int) -> None:
        if cursor > len(log):
            raise Lost(f"{here.name}'s cursor is at {cursor}, beyond the log's {len(log)}")
        for seq in range(1, cursor + 1):
            if log[seq]["from"] == there.user and seq not in here.received:
                raise Lost(f"{here.name}'s cursor is at {cursor}, and {seq} was never received")
        for seq, key in here.received.items():
            if seq not in log or log[seq]["clientMsgId"] != key:
                raise Lost(f"{here.name} received {key} at {seq}, and the log does not have it there")
