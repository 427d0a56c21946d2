"""MQTT beside Mosquitto, with aedes and amqtt for orientation: fan-out, pairs, retained, idle, latency, a long queue."""

from __future__ import annotations

from functools import partial

from bench import brokers, memory, tree
from bench.brokers import Broker
from bench.load.mqtt import Task
from bench.load.mqtt_paced import Plan
from bench.load.mqtt_wire import connect
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values

RATE = Measure("rate", "messages/s")
CPU = Measure("cpu", "µs", "broker's processor time each", more_is_better=False)
QUICK = frozenset({OURS, "mosquitto", "aedes"})
BESIDE = frozenset({OURS, "mosquitto"})
RETAINED = 100_000
QUEUED = 1_000_000
IDLE = 1_000
PACE = 1_000
AT_LEAST_SECONDS = 5.0  # five thousand messages: a p99 of fewer says nothing


def load(broker: Broker, seconds: float, *, task: Task) -> Values:
    return broker.rate(Task(task.kind, "", seconds, task.count, task.window, task.qos, task.clean))


def replay(broker: Broker, _seconds: float, *, qos: int) -> Values:
    return broker.rate(Task("replay", "", count=RETAINED, qos=qos))


def retain(broker: Broker) -> None:
    broker.do(Task("retain", "", count=RETAINED))


def idle(broker: Broker, _seconds: float) -> Values:
    return memory.per_connection(broker.pid, broker.address, connect("idle-000000"), IDLE)


def paced(broker: Broker, seconds: float, *, qos: int) -> Values:
    told = broker.latency(Plan("", PACE, max(seconds, AT_LEAST_SECONDS), qos=qos))
    return {"p50": told.p50, "p99": told.p99, "late": told.late_p99}


def long_queue(broker: Broker, _seconds: float) -> Values:
    """Fill, look at the memory, start again, take everything."""
    task = Task("queue", "", count=QUEUED, window=100, clean=False, name="away")
    before = tree.resident_bytes(broker.pid)
    filled = broker.do(task)
    grown = tree.peak_bytes(broker.pid) - before
    broker.restart()
    before = tree.resident_bytes(broker.pid)
    drained = broker.do(Task("drain", "", count=QUEUED, clean=False, name="away"))
    return {
        "filled": filled.messages / filled.seconds,
        "grown": grown / 2**20,
        "drained": drained.messages / drained.seconds,
        "draining": (tree.peak_bytes(broker.pid) - before) / 2**20,
    }


def step(key: str, title: str, task: Task, only: frozenset[str] = frozenset()) -> Step[Broker]:
    return Step(key, title, (RATE, CPU), partial(load, task=task), only=only)


def latency_step(qos: int) -> Step[Broker]:
    measures = [Measure(at, "ms", at, more_is_better=False) for at in ("p50", "p99")]
    late = Measure("late", "ms", "p99 of our own lateness", more_is_better=False)
    run = partial(paced, qos=qos)
    title = f"{PACE:,} messages/s over 10 pairs, QoS {qos}"
    return Step(f"paced-{qos}", title, (*measures, late), run, only=QUICK)


SCENARIO = Scenario(
    "mqtt",
    "an MQTT broker: messages of 64 bytes, MQTT 3.1.1",
    tuple(
        Contender(name, brokers.starter(begin), ceiling=name == brokers.TRIVIAL)
        for name, begin in brokers.ALL.items()
    ),
    (
        Step(
            "idle",
            f"{IDLE:,} idle connections",
            (
                Measure("kib", "KiB", "memory of each", more_is_better=False),
                Measure("mib", "MiB", "the whole broker with them", more_is_better=False),
            ),
            idle,
            only=QUICK | {"amqtt"},
            warm_up=False,
            repeat=1,  # first of all: memory that other steps left behind would be used again
        ),
        step("fan-out", "QoS 0, one to 50", Task("fan-out", "", count=50, window=1_000)),
        step("pairs", "QoS 1, 20 pairs, window 20, clean sessions", Task("pairs", "", count=20)),
        step(
            "durable",
            "QoS 1, 20 pairs, window 20, to persistent sessions (only ours is durable)",
            Task("pairs", "", count=20, clean=False),
            QUICK,
        ),
        latency_step(0),
        latency_step(1),
        *(
            Step(
                f"replay-{qos}",
                f"{RETAINED:,} retained messages to a new subscription, QoS {qos}",
                (RATE, CPU),
                partial(replay, qos=qos),
                prepare=None if qos else retain,
                only=BESIDE,
            )
            for qos in (0, 1)
        ),
        Step(
            "queue",
            f"{QUEUED:,} messages for an offline session, a restart, and the session back",
            (
                Measure("filled", "messages/s", "queued"),
                Measure("grown", "MiB", "memory grown while they queued", more_is_better=False),
                Measure("drained", "messages/s", "drained after the restart"),
                Measure("draining", "MiB", "memory grown while they drained", more_is_better=False),
            ),
            long_queue,
            only=frozenset({OURS}),
            warm_up=False,
            repeat=1,
        ),
    ),
    (
        Target("fan-out", "rate", at_least=10, beside="mosquitto"),
        Target("pairs", "rate", at_least=2.5, beside="mosquitto"),
        Target("durable", "rate", at_least=1, beside="mosquitto"),
        *(Target(f"paced-{qos}", "p99", at_most=1.5, beside="mosquitto") for qos in (0, 1)),
        *(Target(f"replay-{qos}", "rate", at_least=1, beside="mosquitto") for qos in (0, 1)),
        Target("queue", "grown", at_most=64),
        Target("queue", "drained", at_least=50_000),
        Target("queue", "draining", at_most=64),
    ),
    (
        "ours is durable throughout; the others keep everything in memory (Mosquitto: persistence false)",
        "trivial: hands bytes on without reading them",
        f"for the long queue: {' '.join(f'--set {name}={value}' for name, value in brokers.OUR_SETTINGS.items())}",
    ),
)
