"""What a store's process is asked: one JSON line in, one JSON line of numbers out (see `processes.Talker`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from bench.scenario import Values

Kind = Literal["writes", "reads", "glances", "pages", "paced writes", "fill"]


class Task(Struct, frozen=True):
    kind: Kind
    seconds: float
    callers: int = 1
    per_second: float = 0.0
    heavy: bool = False
    """Beside it, a heavy push after the other."""


def serve(answer: Callable[[Task], Values]) -> None:
    for line in sys.stdin.buffer:
        values = answer(msgspec.json.decode(line, type=Task))
        sys.stdout.buffer.write(msgspec.json.encode(values) + b"\n")
        sys.stdout.buffer.flush()
