"""What the app asks of a room with doors of its own (broker, ledger, library, chat), and when it asks.

    bind     its sockets are ours, or one sentence says why not        (nothing else has happened yet)
    start    it reads what it needs from the store; nobody can reach it
    open     its doors let clients in
    close    its doors take nothing new, and clients are told to go
    stop     it finishes what it began; the store is still there

`close` and `stop` come in this order for every room that was bound or started, also when a later room could not
start: each is harmless after whatever came before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from litestar import Router

from holdfast.chores import Chore
from holdfast.messenger import TopicRules


class Service:
    """A room that needs none of these does nothing in them."""

    def routers(self) -> Sequence[Router]:
        """Its part of the HTTP door."""
        return ()

    def chores(self) -> Sequence[Chore]:
        """What it does every now and then: sweeps."""
        return ()

    def topic_rules(self) -> Sequence[TopicRules]:
        """What users may do on the MQTT topics that are this room's."""
        return ()

    @property
    def addresses(self) -> Mapping[str, str]:
        """The real address of each of its own doors, once bound."""
        return {}

    def bind(self) -> None:
        """Raises `CannotStart`."""

    async def start(self) -> None: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def stop(self) -> None: ...

    def read_again(self) -> None:
        """The operator has changed a file that is read at the start (SIGHUP). A mistake in it is logged, and changes
        nothing."""
