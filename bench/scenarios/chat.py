"""Durable messages between two, a group that is online, idle connections, and everybody coming back at once."""

from __future__ import annotations

from functools import partial

from bench import chats
from bench.chats import BACKLOG, GROUP, IDLE, PAIRS, WINDOW, Chat
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target

CPU = Measure("cpu", "µs", "server's processor time each", more_is_better=False)
P50 = Measure("p50", "ms", "sent → saved and delivered, p50", more_is_better=False)
P99 = Measure("p99", "ms", "sent → saved and delivered, p99", more_is_better=False)
ALONE = frozenset((OURS,))

SCENARIO = Scenario(
    "chat",
    "messages: saved, and delivered to whoever is online",
    (
        Contender(OURS, chats.ours),
        Contender("ejabberd-archive", partial(chats.ejabberd, archive=True)),
        Contender("ejabberd", partial(chats.ejabberd, archive=False)),
        Contender("synapse", chats.synapse),
    ),
    (
        Step(
            "idle",
            f"{IDLE:,} idle authenticated connections",
            (Measure("kib", "KiB", "memory of each", more_is_better=False),),
            Chat.idle,
            only=frozenset((OURS, "ejabberd")),
            warm_up=False,
            repeat=1,  # and first: memory that others left behind would be used again
        ),
        Step(
            "pairs",
            f"{PAIRS} pairs, {WINDOW} messages of each under way",
            (Measure("rate", "messages/s"), CPU, P50, P99),
            Chat.pairs,
            prepare=Chat.connect,
        ),
        Step(
            "half",
            "the same pairs at half of the best rate",
            (Measure("pace", "messages/s", "paced at"), P50, P99),
            Chat.at_half,
            prepare=Chat.find_best,
            warm_up=False,
            only=frozenset((OURS, "ejabberd-archive", "ejabberd")),
        ),
        Step(
            "group",
            f"a group of {GROUP:,}, all online",
            (Measure("rate", "deliveries/s"), CPU),
            Chat.group,
            only=ALONE,
            warm_up=False,
        ),
        Step(
            "storm",
            f"all reconnect at once, {BACKLOG} messages waiting for each",
            (
                Measure("connections", "", "connections"),
                Measure("ready_s", "s", "all authenticated after", more_is_better=False),
                Measure("all_s", "s", "all caught up after", more_is_better=False),
                Measure("rate", "messages/s"),
                Measure("again", "", "tries that the server had no time for", more_is_better=False),
                Measure("lacking", "", "who lack a message", more_is_better=False),
                Measure("grown", "MiB", "memory at its peak above what it was", more_is_better=False),
            ),
            Chat.storm,
            only=ALONE,
            warm_up=False,
            repeat=1,
        ),
    ),
    (
        Target("pairs", "rate", at_least=3, beside="ejabberd-archive"),
        Target("pairs", "rate", at_least=0.5, beside="ejabberd"),
        Target("pairs", "rate", at_least=100, beside="synapse"),
        Target("half", "p99", at_most=15),
        Target("group", "rate", at_least=100_000),
        Target("idle", "kib", at_most=12),
        Target("storm", "lacking", at_most=0),
    ),
    (
        f"limits lifted: {' '.join(f'--set {name}={value}' for name, value in chats.LIFTED.items())}",
        "ejabberd-archive: mod_mam in PostgreSQL, synced; ejabberd: no archive at all, nothing is kept; no shapers in either",
        "ejabberd's saved: stream management's acknowledgement, asked for with each message",
        "synapse: on PostgreSQL, one message of each pair under way, turns of at least 10 s; saved: the answer to PUT",
        "our receivers acknowledge what was delivered; ejabberd's and synapse's do not",
    ),
)
