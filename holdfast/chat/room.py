"""Wires the room: message delivery."""

from __future__ import annotations

from holdfast.accounts.accounts import Accounts
from holdfast.clock import Clock
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database


class ChatRoom(Service):
    def __init__(
        self, db: Database, accounts: Accounts, clock: Clock, settings: Settings, metrics: Metrics
    ) -> None: ...
