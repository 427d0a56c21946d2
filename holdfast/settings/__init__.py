"""Every setting: its name, its default, what it means. There is no other place where one is defined.

A setting's name is its path (`store.queue_limit`); its environment variable is that path in capitals
(`HOLDFAST_STORE_QUEUE_LIMIT`); in a TOML file it stands in the table of its section. Flags win over the
environment, that over the file, that over the default. `settings_sources` reads them; this module only knows
what there is.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from holdfast.settings.auth import Auth
from holdfast.settings.broker import Broker
from holdfast.settings.chat import Chat, Redis
from holdfast.settings.doors import Http, Limits, Listen, Log, Tls
from holdfast.settings.fields import means
from holdfast.settings.files import Files
from holdfast.settings.ledger import Ledger
from holdfast.settings.storage import Blobs, Feed, Store

__all__ = [
    "Auth",
    "Blobs",
    "Broker",
    "Chat",
    "Feed",
    "Files",
    "Http",
    "Ledger",
    "Limits",
    "Listen",
    "Log",
    "Redis",
    "Settings",
    "Store",
    "Tls",
]


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    data: Annotated[str, means("the data folder; one `serve` at a time")] = "./holdfast-data"
    listen: Listen = Listen()
    tls: Tls = Tls()
    http: Http = Http()
    store: Store = Store()
    feed: Feed = Feed()
    blobs: Blobs = Blobs()
    auth: Auth = Auth()
    broker: Broker = Broker()
    ledger: Ledger = Ledger()
    files: Files = Files()
    chat: Chat = Chat()
    redis: Redis = Redis()
    limits: Limits = Limits()
    log: Log = Log()
