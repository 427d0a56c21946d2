"""The load generators and the looks at a process, against small servers of known behaviour."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import apsw
import msgspec
import pytest

from bench import __main__ as command
from bench import memory, tree
from bench.load import mqtt, rows, syncs
from bench.load.paced import Latency, Plan
from bench.load.task import Task
from bench.processes import ROOT, Child, ChildFailed, talker
from bench.scenario import OURS
from bench.servers import Server, free_port, peer

GET = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n"
STALLING = """
import asyncio, sys, time
from bench.load.trivial_server import ANSWER
class Stalling(asyncio.Protocol):
    seen = 0
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        Stalling.seen += 1
        if Stalling.seen == 100:
            time.sleep(0.5)
        self.transport.write(ANSWER)
async def main():
    server = await asyncio.get_running_loop().create_server(Stalling, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def server(folder: Path, *command: str) -> Iterator[Server]:
    port = free_port()
    with peer(Child([sys.executable, *command, str(port)], folder / "server"), port) as running:
        yield running


def paced(folder: Path, plan: Plan) -> Latency:
    with talker("bench.load.paced", folder / "load") as load:
        return load.ask(plan, Latency, 30)


def test_a_server_that_stands_still_is_late_for_all_that_was_due_meanwhile(tmp_path: Path) -> None:
    """Without the correction one request of 400 would have been slow, and p90 would not have seen it."""
    with server(tmp_path, "-c", STALLING) as stalling:
        said = paced(tmp_path, Plan(stalling.http, [GET], per_second=200, seconds=2, connections=4))
    assert said.sent == 400
    assert said.unanswered == said.failed == 0
    assert said.p90 > 150
    assert said.p50 < 150
    assert 400 < said.most < 2_000


def test_the_pace_does_not_wait_for_slow_answers(tmp_path: Path) -> None:
    with server(tmp_path, "-m", "bench.load.trivial_server") as trivial:
        said = paced(tmp_path, Plan(trivial.http, [GET], per_second=500, seconds=1))
    assert (said.sent, said.unanswered, said.failed) == (500, 0, 0)


def test_idle_connections_are_held_and_weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "WORK", tmp_path)
    (tmp_path / "tmp").mkdir()
    with server(tmp_path, "-m", "bench.load.trivial_server") as trivial:
        values = memory.per_connection(trivial.pid, trivial.http, GET.encode(), 200)
    assert 0 < values["kib"] < 100
    assert values["mib"] > 5


def test_memory_and_processor_time_of_a_process_include_its_children() -> None:
    eats = "import time; kept = bytearray(b'x') * 50_000_000; t = time.process_time()\n"
    eats += "while time.process_time() - t < 0.3: pass\nprint('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {eats!r}])"
    before = tree.cpu_seconds(os.getpid())
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert tree.resident_bytes(process.pid) > 50_000_000
        assert tree.cpu_seconds(process.pid) >= 0.3
        assert tree.cpu_seconds(os.getpid()) - before >= 0.3
    finally:
        for pid in reversed(tree.members(process.pid)):
            os.kill(pid, 9)
        process.communicate()


def test_the_counting_vfs_sees_one_fsync_for_each_commit(tmp_path: Path) -> None:
    counting = syncs.CountingVfs()
    connection = apsw.Connection(str(tmp_path / "db"), vfs=syncs.COUNTING)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(rows.TABLE)
    before = counting.syncs
    for number in range(10):
        connection.execute(rows.ADD.sqlite, {"id": number, "owner": 1, "body": "x"})
    assert 10 <= counting.syncs - before <= 12
    connection.close()


def test_our_store_answers_each_kind_of_task(tmp_path: Path) -> None:
    with talker("bench.load.store", tmp_path / "log", "sqlite", str(tmp_path / "db")) as store:

        def ask(task: Task) -> dict[str, float]:
            return store.ask(task, dict[str, float], 30)

        ask(Task("fill", 1))
        written = ask(Task("writes", 0.2, callers=16))
        assert written["rate"] > 0
        assert written["commits"] < 1
        for kind in ("reads", "glances", "pages"):
            assert ask(Task(kind, 0.1, callers=2))["rate"] > 0
        beside = ask(Task("paced writes", 0.5, per_second=100, heavy=True))
        assert 0 < beside["p50"] <= beside["p99"] <= beside["most"]
        assert beside["pushed"] > 0


def test_a_scenario_runs_from_the_command_line_and_keeps_its_figures(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    arguments = ["writes", "--step", "callers-64", "--repeat", "1", "--seconds", "0.3", "--json", str(kept)]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments, "--strict"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "met (" in done.stdout
    result = msgspec.json.decode(kept.read_bytes())
    assert {figure["contender"] for row in result["rows"] for figure in row["figures"]} == {OURS, "plain"}
    assert result["machine"]["fsync"]["p50_ms"] > 0


def test_every_scenario_is_listed_under_the_name_of_its_file_and_stays_small() -> None:
    files = {path.stem: path for path in (ROOT / "bench" / "scenarios").glob("[a-z]*.py")}
    assert {name.replace("-", "_") for name in command.found()} == set(files)
    assert all(len(path.read_text().splitlines()) < 150 for path in files.values())


LOSSY = """
import sys, uvloop
from bench.load import trivial_broker as broker
class Lossy(broker.Trivial):
    def data_received(self, data):
        if data[0] >> 4 == 3:
            data = data[: 2 + data[1]]
        super().data_received(data)
broker.Trivial = Lossy
uvloop.run(broker.serve(int(sys.argv[1])))
"""


@pytest.mark.parametrize("kind", ["fan-out", "pairs"])
def test_the_mqtt_load_counts_what_came(kind: Literal["fan-out", "pairs"], tmp_path: Path) -> None:
    with (
        server(tmp_path, "-m", "bench.load.trivial_broker") as broker,
        talker("bench.load.mqtt", tmp_path / "load") as load,
    ):
        task = mqtt.Task(kind, broker.http, 0.2, 5, qos=0 if kind == "fan-out" else 1, name="a")
        said = load.ask(task, mqtt.Counted, 30)
    assert said.messages >= 100
    assert 0.1 <= said.seconds < 30


def test_a_broker_that_loses_messages_is_not_a_faster_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_BENCH_STALLED_SECONDS", "0.5")
    with (
        server(tmp_path, "-c", LOSSY) as broker,
        talker("bench.load.mqtt", tmp_path / "load") as load,
        pytest.raises(ChildFailed, match=r"only \d+ of \d+ messages came"),
    ):
        load.ask(mqtt.Task("fan-out", broker.http, 0.2, 2, qos=0, name="a"), mqtt.Counted, 30)
