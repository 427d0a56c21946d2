"""`holdfast broker` that breaks one promise, to show that the harness sees it.

| mutant | what it does |
|---|---|
| forgetful | keeps no identifier of a QoS 2 message that it has received |
| haunted | an unsubscription is not written down |
| restless | a will that was published is not crossed out |
| unsettled | a discarded session is not deleted from the store |

    python -m tests.faults.broker_mutant MUTANT [options of holdfast broker]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from holdfast.broker.journal import Journal
from holdfast.cli.main import main

MUTANTS: dict[str, tuple[str, Callable[..., bool]]] = {
    "forgetful": ("received_id", lambda *_args: True),
    "haunted": ("subscribed", lambda _session, _name, grant: grant is None),
    "restless": ("will", lambda _client_id, will: will is None),
    "unsettled": ("ended", lambda *_args: True),
}
"""A change that the journal is told of, and whether it is left out."""


def break_promise(mutant: str) -> None:
    name, left_out = MUTANTS[mutant]
    note = getattr(Journal, name)

    def noted(journal: Journal, *args: Any) -> None:
        if not left_out(*args):
            note(journal, *args)

    setattr(Journal, name, noted)


if __name__ == "__main__":
    break_promise(sys.argv.pop(1))
    sys.argv.insert(1, "broker")
    main()
