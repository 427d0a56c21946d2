"""Brokers that are measured: ours as anybody starts it, Mosquitto, aedes and amqtt, each volatile where it can be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import tree
from bench.load.mqtt import Counted, Task
from bench.load.mqtt_paced import Plan
from bench.load.paced import Latency
from bench.peers import install
from bench.processes import ROOT, Child, Talker, running, talker
from bench.scenario import OURS, Values
from bench.servers import HOST, accepts, free_port

SLACK_SECONDS = 300.0
TRIVIAL = "trivial"
Begin = Callable[[], tuple[Child, Callable[[], str | None]]]
"""Starts the process; the function says its address as soon as it is there."""

OUR_SETTINGS = {
    "broker.queue_count": 1_100_000,
    "broker.queue_bytes": 1 << 30,
}
"""The caps that the queue of a million has to be raised over; everything else is as anybody starts it."""


class Broker(Struct):
    """A running broker, and the load that is ready for it."""

    begin: Begin
    load: Talker
    pace: Talker
    folder: Path
    stack: ExitStack = msgspec.field(default_factory=ExitStack)
    pid: int = 0
    address: str = ""
    turn: int = 0

    def start(self) -> None:
        child, address = self.begin()
        self.stack.enter_context(running(child))
        self.address = child.wait_until(address)
        self.pid = child.pid

    def restart(self) -> None:
        self.stack.close()
        self.start()

    def do(self, task: Task) -> Counted:
        """A task without a name gets a new one, so that no session of an earlier turn is met."""
        self.turn += 1
        named = msgspec.structs.replace(task, address=self.address, name=task.name or f"load{self.turn}")
        return self.load.ask(named, Counted, task.seconds + SLACK_SECONDS)

    def rate(self, task: Task) -> Values:
        """Messages a second, and what one costs the broker in processor time."""
        before = tree.cpu_seconds(self.pid)
        done = self.do(task)
        spent = tree.cpu_seconds(self.pid) - before
        return {"rate": done.messages / done.seconds, "cpu": spent / done.messages * 1e6}

    def latency(self, plan: Plan) -> Latency:
        self.turn += 1
        named = msgspec.structs.replace(plan, address=self.address, name=f"paced{self.turn}")
        return self.pace.ask(named, Latency, plan.seconds + SLACK_SECONDS)


def starter(begin_in: Callable[[Path], Begin]) -> Callable[[Path], AbstractContextManager[Broker]]:
    return partial(_started, begin_in)


@contextmanager
def _started(begin_in: Callable[[Path], Begin], folder: Path) -> Iterator[Broker]:
    with (
        talker("bench.load.mqtt", folder / "load") as load,
        talker("bench.load.mqtt_paced", folder / "paced") as pace,
        ExitStack() as stack,
    ):
        made = Broker(begin_in(folder), load, pace, folder, stack)
        made.start()
        yield made


def ours(folder: Path) -> Begin:
    ready = folder / "ready.json"
    command: list[str | Path] = [sys.executable, "-m", "holdfast", "broker", "--anonymous"]
    command += ["--data", folder / "data", "--mqtt", f"{HOST}:0", "--ready-file", ready]
    for name, value in OUR_SETTINGS.items():
        command += ["--set", f"{name}={value}"]

    def address() -> str | None:
        if not ready.exists():
            return None
        return msgspec.json.decode(ready.read_bytes(), type=dict[str, str])["mqtt"]

    def begin() -> tuple[Child, Callable[[], str | None]]:
        ready.unlink(missing_ok=True)
        return Child(command, folder / "log"), address

    return begin


def _on_a_port(command: Callable[[int], list[str | Path]], folder: Path) -> Begin:
    def begin() -> tuple[Child, Callable[[], str | None]]:
        port = free_port()
        child = Child(command(port), folder / "log")
        return child, lambda: f"{HOST}:{port}" if accepts(port) else None

    return begin


def mosquitto(folder: Path) -> Begin:
    """Volatile; its queues as long as ours."""
    program = install.debian("mosquitto", "mosquitto")

    def command(port: int) -> list[str | Path]:
        lines = (
            f"listener {port} {HOST}",
            "allow_anonymous true",
            "persistence false",
            "max_queued_messages 0",
            "set_tcp_nodelay true",
            "log_type error",
        )
        settings = folder / "mosquitto.conf"
        settings.write_text("\n".join(lines) + "\n")
        return [program, "-c", settings]

    return _on_a_port(command, folder)


def aedes(folder: Path) -> Begin:
    modules = install.npm("aedes", "aedes@1.2.0")
    return _on_a_port(
        lambda port: ["node", ROOT / "bench" / "peers" / "aedes.mjs", modules, str(port)], folder
    )


def amqtt(folder: Path) -> Begin:
    program = install.pypi("amqtt", "amqtt==0.11.4") / "amqtt"

    def command(port: int) -> list[str | Path]:
        settings = folder / "amqtt.yaml"
        settings.write_text(
            f"listeners:\n  default:\n    type: tcp\n    bind: {HOST}:{port}\n    max_connections: 5000\n"
            "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin:\n    allow_anonymous: true\n"
        )
        return [program, "-c", settings]

    return _on_a_port(command, folder)


def trivial(folder: Path) -> Begin:
    return _on_a_port(lambda port: [sys.executable, "-m", "bench.load.trivial_broker", str(port)], folder)


ALL = {OURS: ours, "mosquitto": mosquitto, "aedes": aedes, "amqtt": amqtt, TRIVIAL: trivial}
