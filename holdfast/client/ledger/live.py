"""The MQTT connection of the ledger over HTTP: it listens, and pulls whenever it has just begun to listen."""

from __future__ import annotations

import msgspec

from holdfast.broker.packets import Publish
from holdfast.client.account import EARLY_MS, Account
from holdfast.client.backoff import USUAL
from holdfast.client.errors import LoginNeeded, Offline
from holdfast.client.ledger import notify
from holdfast.client.ledger.sync import LedgerSync
from holdfast.client.ledger.wire import MESSAGE
from holdfast.client.mqtt import MqttLink, Place
from holdfast.client.network import Network
from holdfast.client.replica import Replica
from holdfast.client.timing import Timing, first_of

RENEW_BEFORE = EARLY_MS / 1000 / 2
LASTED = 30.0
"""Seconds after which a connection counts as one that worked: the back-off begins anew."""


class Live:
    """Connects when everything has been pulled once; ends a connection before its token does."""

    def __init__(
        self,
        place: Place,
        replica: Replica,
        account: Account,
        network: Network,
        sync: LedgerSync,
        timing: Timing,
        device_id: str,
    ) -> None:
        self._place = place
        self._replica = replica
        self._account = account
        self._network = network
        self._timing = timing
        self._failures = 0
        self.sync = sync
        self.device_id = device_id
        self.link: MqttLink | None = None

    @property
    def connected(self) -> bool:
        return self.link is not None and not self.link.ended.is_set()

    session_expiry = 0

    def client_id(self) -> str:
        return f"{self._account.user_id}-{self.device_id}"

    def filters(self) -> tuple[str, ...]:
        return (f"heji/notify/{self._account.user_id}/#",)

    async def connect_and_listen(self) -> None:
        """One connection, from its first to its last byte."""
        await self.sync.pulled.wait()
        await self._network.when_online()
        await self._timing.sleep(USUAL.delay(self._failures, self._timing.draw()))
        begun = self._timing.monotonic()
        try:
            await self._listen()
            self._failures = 0
        except LoginNeeded:
            # the door for HTTP knows better whether our session has ended; otherwise the token was just too old
            self._failures += 1
            await self._account.renewed(await self._account.token())
        except Offline:
            lasted = self._timing.monotonic() - begun > LASTED
            self._failures = 1 if lasted else self._failures + 1
            raise
        finally:
            self.link = None
            self._replica.tell("live")

    async def _listen(self) -> None:
        token = await self._account.token()
        link = await MqttLink.open(
            self._place,
            client_id=self.client_id(),
            username=self._account.user_id,
            password=token,
            session_expiry=self.session_expiry,
            handler=self.handle,
            timing=self._timing,
        )
        try:
            await link.subscribe(*self.filters())
            self.link = link
            self._replica.tell("live")
            # what was committed between the last pull and this subscription was told to nobody
            self.sync.pull_wanted.call()
            await self.while_connected(link)
        finally:
            await link.close()
        if link.why is not None and not self._ends_soon():
            raise link.why

    async def while_connected(self, link: MqttLink) -> None:
        """Until it ends, or its token is about to."""
        left = (self._account.expires_ms - self._timing.now_ms()) / 1000 - RENEW_BEFORE
        await first_of(link.ended, self._timing.sleep(max(1.0, left)))

    def _ends_soon(self) -> bool:
        return (self._account.expires_ms - self._timing.now_ms()) / 1000 <= RENEW_BEFORE

    async def handle(self, message: Publish) -> None:
        try:
            said = MESSAGE.decode(message.payload)
        except msgspec.DecodeError:
            self.sync.pull_wanted.call()
            return
        if await notify.take(self._replica, said, self._timing.now_ms()):
            self.sync.pull_wanted.call()

    async def disconnect(self) -> None:
        if self.link is not None:
            await self.link.close()
