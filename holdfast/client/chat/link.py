"""The chat's WebSocket: one connection after another, and what each frame leads to.

| state | leaves it | to |
|---|---|---|
| waiting | the network is there, the back-off is over | connecting |
| connecting | `AUTH_OK` | open |
| | `AUTH_FAIL`, closed, no answer | waiting (another token, if that was it) |
| open | an `ERROR` that closes, silence, a message that nobody acknowledges | waiting, or stopped (`kicked`) |
| stopped | the app says connect | waiting |
"""

from __future__ import annotations

import asyncio
from functools import partial

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from holdfast.client.account import Account
from holdfast.client.backoff import USUAL
from holdfast.client.chat import stored
from holdfast.client.chat.filling import Filling
from holdfast.client.chat.rules import ENDINGS, Ending, Pace
from holdfast.client.chat.session import Ended, Session, next_frame
from holdfast.client.chat.wire import Frame, encode
from holdfast.client.errors import Offline, Unanswered
from holdfast.client.network import Network
from holdfast.client.news import ChatEnded, News
from holdfast.client.replica import Replica
from holdfast.client.timing import Timing, within

ANSWER_SECONDS = 20.0
SLOWER_SECONDS = 60.0
LASTED = 30.0
LARGEST = 1024 * 1024


class ChatLink:
    def __init__(
        self,
        address: str,
        replica: Replica,
        account: Account,
        network: Network,
        filling: Filling,
        timing: Timing,
        news: News,
        device_id: str,
    ) -> None:
        self._address = address
        self.replica = replica
        self.account = account
        self.network = network
        self.filling = filling
        self.timing = timing
        self.news = news
        self.device_id = device_id
        self._failures = 0
        self.pace = Pace()
        self.state = "connecting"
        self.wanted = asyncio.Event()
        self.wanted.set()
        self.opened = asyncio.Event()

    async def connect_and_talk(self) -> None:
        """One connection, from its first to its last frame."""
        await self.wanted.wait()
        self.state = "connecting"
        await self.network.when_online()
        await self.timing.sleep(USUAL.delay(self._failures, self.timing.draw()))
        begun = self.timing.monotonic()
        try:
            await self._talk()
        except Ended as ended:
            await self._react(ended.reason)
        except (OSError, WebSocketException, TimeoutError) as error:
            self._failures += 1
            raise Unanswered(f"chat: {error}") from error
        except Offline:
            self._failures += 1
            raise
        finally:
            if self.timing.monotonic() - begun > LASTED:
                self._failures = min(self._failures, 1)
            self.opened.clear()
            if self.state == "open":
                self.state = "connecting"

    async def _react(self, reason: str) -> None:
        self._failures += 1
        match ENDINGS.get(reason, Ending.AGAIN):
            case Ending.STOP:
                self.state = reason
                self.wanted.clear()
                self.news.tell(ChatEnded(reason))
            case Ending.REFRESH:
                await self.account.renewed(await self.account.token())
            case Ending.SLOWER:
                await self.timing.sleep(SLOWER_SECONDS * (1 + self.timing.draw()))
            case Ending.AGAIN:
                return

    async def _talk(self) -> None:
        token = await self.account.token()
        async with connect(
            self._address,
            open_timeout=ANSWER_SECONDS,
            close_timeout=1,
            ping_interval=None,
            max_size=LARGEST,
            compression=None,
            proxy=None,
        ) as socket:
            await socket.send(encode(Frame(type="AUTH", token=token, device_id=self.device_id)).decode())
            hello = await within(self.timing, ANSWER_SECONDS, next_frame(socket))
            if hello.type in ("AUTH_FAIL", "ERROR"):
                raise Ended(hello.reason)
            if hello.type != "AUTH_OK":
                raise Unanswered(f"chat: {hello.type} came for AUTH_OK")
            await self.replica.write(partial(stored.follow_epoch, epoch=hello.epoch))
            self.state = "open"
            self.opened.set()
            await Session(self, socket).run()
