"""Chat servers that are measured: ours and its peers, each with its own dialect, its users and its lines."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench import tree
from bench.load.crowd import Come, Leave, Say
from bench.load.login import Login
from bench.load.talk import Connect, Run
from bench.peers import ejabberd as ejabberd_server
from bench.peers import synapse as synapse_server
from bench.processes import Talker, talker
from bench.scenario import Values
from bench.servers import Server, call, holdfast
from bench.users import LIFTED as USERS_LIFTED
from bench.users import new_users

PAIRS = 50
WINDOW = 20
IDLE = 1_000
IDLE_FIRST = 50
GROUP = 1_000
BACKLOG = 100
STORM_GROUP = 100
AT_ONCE = 500
"""Members that a group may be made with."""
SECONDS = 180.0
SPARE_FILES = 1_000
LIFTED = {
    **USERS_LIFTED,
    "chat.rate.connection": 10**9,
    "chat.rate.connection_burst": 10**9,
    "chat.rate.user": 10**9,
    "chat.rate.user_burst": 10**9,
    "chat.group.mode": "push",
}


class Chat(Struct):
    server: Server
    dialect: str
    door: str
    new_logins: Callable[[int], list[Login]]
    talk: Talker
    folder: Path
    window: int = WINDOW
    at_least_seconds: float = 0.0
    connected: bool = False
    best: float = 0.0
    """Messages a second that it has reached."""

    @property
    def address(self) -> str:
        return self.server.addresses[self.door]

    def connect(self) -> None:
        if self.connected:
            return
        self.connected = True
        logins = self.new_logins(2 * PAIRS)
        self.talk.ask(Connect(self.address, logins), dict[str, float], SECONDS)

    def pairs(self, seconds: float) -> Values:
        seconds = max(seconds, self.at_least_seconds)
        used = tree.cpu_seconds(self.server.pid)
        said = self.talk.ask(Run(seconds, PAIRS, self.window), dict[str, float], seconds + SECONDS)
        cpu = (tree.cpu_seconds(self.server.pid) - used) / said["done"] * 1e6
        self.best = max(self.best, said["rate"])
        return {**said, "cpu": cpu}

    def find_best(self) -> None:
        """For a run of the next step alone."""
        self.connect()
        if not self.best:
            self.pairs(2.0)

    def at_half(self, seconds: float) -> Values:
        """At half of the best rate that was seen: how long a message takes when the server is not pressed."""
        seconds = max(seconds, 3.0)
        pace = Run(seconds, PAIRS, per_second=self.best / 2)
        return {**self.talk.ask(pace, dict[str, float], seconds + SECONDS), "pace": self.best / 2}

    def idle(self, _seconds: float) -> Values:
        """KiB of resident memory for each authenticated connection."""
        logins = self.new_logins(IDLE_FIRST + IDLE)
        with talker("bench.load.talk", self.folder / "idle", self.dialect) as idle:
            idle.ask(Connect(self.address, logins[:IDLE_FIRST]), dict[str, float], SECONDS)
            before = _settled(self.server.pid)
            said = idle.ask(Connect(self.address, logins[IDLE_FIRST:]), dict[str, float], SECONDS)
            after = _settled(self.server.pid)
        assert said["lines"] == len(logins)
        return {"kib": (after - before) / IDLE / 1024}

    def group(self, seconds: float) -> Values:
        """One talks, the others of a thousand hear it."""
        logins = self.new_logins(GROUP)
        group = new_group(self.server, logins)
        with talker("bench.load.crowd", self.folder / "crowd") as crowd:
            crowd.ask(Come(self.address, logins), dict[str, float], SECONDS)
            used = tree.cpu_seconds(self.server.pid)
            said = crowd.ask(Say(0, group, seconds), dict[str, float], seconds + SECONDS)
            cpu = (tree.cpu_seconds(self.server.pid) - used) / (said["messages"] * (GROUP - 1)) * 1e6
        return {**said, "cpu": cpu}

    def storm(self, _seconds: float) -> Values:
        """All come back at once, each to a backlog; groups of 100, so that it is soon said."""
        count = storm_size()
        logins = self.new_logins(count)
        with talker("bench.load.crowd", self.folder / "storm") as crowd:
            speakers = logins[::STORM_GROUP]
            crowd.ask(Come(self.address, speakers), dict[str, float], SECONDS)
            for number in range(len(speakers)):
                first = number * STORM_GROUP
                group = new_group(self.server, logins[first : first + STORM_GROUP])
                crowd.ask(Say(number, group, 0, count=BACKLOG), dict[str, float], SECONDS)
            crowd.ask(Leave(), dict[str, float], SECONDS)
            absent = [login for number, login in enumerate(logins) if number % STORM_GROUP]
            tree.forget_peak(self.server.pid)
            before = tree.resident_bytes(self.server.pid)
            all_at_once = Come(self.address, absent, BACKLOG, at_once=len(absent), seconds=SECONDS)
            said = crowd.ask(all_at_once, dict[str, float], 2 * SECONDS)
            peak = tree.peak_bytes(self.server.pid)
        grown = (peak - before) / 1024 / 1024
        rate = BACKLOG * len(absent) / said["all_s"]
        return {**said, "grown": grown, "rate": rate, "connections": float(len(absent))}


def storm_size() -> int:
    """10,000, or what this machine's limit of open files lets one process hold."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(10_000, (files - SPARE_FILES) // STORM_GROUP * STORM_GROUP)


def _settled(pid: int) -> int:
    time.sleep(1.0)
    return tree.resident_bytes(pid)


def new_group(server: Server, logins: list[Login]) -> str:
    """A group that the first has made of all of them; whom its making has no room for joins by its code."""
    first, *others = logins
    body = {"name": "bench", "memberUserIds": [login.user for login in others[:AT_ONCE]]}
    said = call(server, "POST", "/group/create", body, _token(first))["data"]
    assert isinstance(said, dict)
    for login in others[AT_ONCE:]:
        call(server, "POST", "/group/join", {"groupCode": said["groupCode"]}, _token(login))
    return str(said["groupId"])


def _token(login: Login) -> dict[str, str]:
    return {"Authorization": f"Bearer {login.secret}"}


@contextmanager
def ours(folder: Path) -> Iterator[Chat]:
    with (
        holdfast(folder, LIFTED) as server,
        talker("bench.load.talk", folder / "talk", "chat") as talk,
    ):
        made = 0

        def new_logins(count: int) -> list[Login]:
            nonlocal made
            made += 1
            return [Login(user.id, user.token) for user in new_users(server, count, f"turn{made}")]

        yield Chat(server, "chat", "ws", new_logins, talk, folder)


@contextmanager
def ejabberd(folder: Path, *, archive: bool) -> Iterator[Chat]:
    start = ejabberd_server.with_archive if archive else ejabberd_server.without_archive
    with start(folder) as server, talker("bench.load.talk", folder / "talk", "xmpp") as talk:
        made = 0

        def new_logins(count: int) -> list[Login]:
            nonlocal made
            made += count
            return ejabberd_server.new_users(server, count, made - count)

        yield Chat(server, "xmpp", "xmpp", new_logins, talk, folder)


@contextmanager
def synapse(folder: Path) -> Iterator[Chat]:
    with (
        synapse_server.synapse(folder) as server,
        talker("bench.load.talk", folder / "talk", "matrix") as talk,
    ):
        yield Chat(
            server,
            "matrix",
            "http",
            lambda count: synapse_server.new_pairs(server, count // 2),
            talk,
            folder,
            window=1,
            at_least_seconds=10.0,
        )
