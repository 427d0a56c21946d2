"""The MQTT broker, alone or inside another program.

    from holdfast.broker import Broker, BrokerAlone, Hooks

Packets, topics and sessions are pure (`packets`, `topics`, `session`); doors, peers and the journal are not. What is
named here is what a program that embeds the broker needs, and will find under the same name tomorrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.broker.alone import BrokerAlone
    from holdfast.broker.broker import Broker, Listening, Received
    from holdfast.broker.entry.by_file import FileHooks
    from holdfast.broker.hooks import Access, Challenge, Client, Hooks, Identity, Login, Refused, Verdict
    from holdfast.broker.packets.message import MessageProperties
    from holdfast.broker.packets.reason import Reason
    from holdfast.settings import Settings

__all__ = [
    "Access",
    "Broker",
    "BrokerAlone",
    "Challenge",
    "Client",
    "FileHooks",
    "Hooks",
    "Identity",
    "Listening",
    "Login",
    "MessageProperties",
    "Reason",
    "Received",
    "Refused",
    "Settings",
    "Verdict",
]

# looked up when they are asked for: our client reads `packets` where no server is installed
_PLACES: Final = {
    "BrokerAlone": "holdfast.broker.alone",
    "Broker": "holdfast.broker.broker",
    "Listening": "holdfast.broker.broker",
    "Received": "holdfast.broker.broker",
    "FileHooks": "holdfast.broker.entry.by_file",
    "MessageProperties": "holdfast.broker.packets.message",
    "Reason": "holdfast.broker.packets.reason",
    "Settings": "holdfast.settings",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"holdfast.broker has no {name}")
    return getattr(import_module(_PLACES.get(name, "holdfast.broker.hooks")), name)
