"""The broker inside `holdfast serve`: its identities are our users, its store is the app's; rooms' `Messenger`."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.accounts.accounts import Accounts
from holdfast.clock import Clock
from holdfast.messenger import Listener, TopicRules
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database


class BrokerRoom(Service):
    def __init__(
        self, db: Database, accounts: Accounts, clock: Clock, settings: Settings, metrics: Metrics
    ) -> None:
        self._rules: list[TopicRules] = []
        self._heard: list[tuple[str, Listener]] = []

    def ask(self, rules: TopicRules) -> None:
        """Before the start: a room that rules over topics of its own. The first that has an answer gives it."""
        self._rules.append(rules)

    def tell(self, topics: Iterable[str], payload: bytes) -> None:
        """`Messenger.tell`."""

    def hear(self, topic_filter: str, listener: Listener) -> None:
        """`Messenger.hear`."""
        self._heard.append((topic_filter, listener))
