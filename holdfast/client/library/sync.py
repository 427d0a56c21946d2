"""The library's traffic: files, then pushes, then a pull. There is no push from the server: the client asks.

When: five seconds after a change, at once after a login and when the network is back, and on `refresh()`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from holdfast.client.account import Account
from holdfast.client.errors import Busy, Refused
from holdfast.client.feeds import cursor
from holdfast.client.http import Failure, Http
from holdfast.client.ledger.model import Refusal
from holdfast.client.ledger.wire import Checksum
from holdfast.client.library import push as pushes
from holdfast.client.library.changes import OUTBOX, pending
from holdfast.client.library.files import FileQueue
from holdfast.client.library.merge import FEED, apply_page, start_over
from holdfast.client.library.push import Push
from holdfast.client.library.rules import PushReaction, push_reaction
from holdfast.client.library.verify import own_checksum
from holdfast.client.library.wire import PULL, PUSHED, Pull
from holdfast.client.news import Differs, News, Parked, Synced, Verified
from holdfast.client.replica import Replica
from holdfast.client.timing import Timing, Wakeup, first_of

DEBOUNCE = 5.0
AT_THE_LATEST = 30.0
"""Who goes on editing is not put off for ever."""
PAGE_ROWS = 1_000
CONFLICTS = 50
REPAIR_AGAIN_SECONDS = 3600.0

_checksum = msgspec.json.Decoder(Checksum)


class LibrarySync:
    def __init__(
        self,
        replica: Replica,
        http: Http,
        account: Account,
        files: FileQueue,
        timing: Timing,
        news: News,
        new_id: Callable[[], str],
    ) -> None:
        self._replica = replica
        self._http = http
        self._account = account
        self._files = files
        self._timing = timing
        self._news = news
        self._new_id = new_id
        self._syncing = asyncio.Lock()
        self._most = pushes.MOST
        self._repaired_at = float("-inf")
        self._verified: tuple[int, str] | None = None
        self.wanted = Wakeup(timing)
        """Sync at once: a login, a network that is back."""

    # -- when

    async def sync_when_wanted(self) -> None:
        changed = self._replica.watch((OUTBOX,))
        try:
            if not await self._replica.read(pending):
                await self._either(changed)
            if not self.wanted.called:
                await self._debounced(changed)
            await self.sync()
            # only now: until it has succeeded, it is still wanted
            self.wanted.forget()
        finally:
            self._replica.unwatch(changed)

    async def _either(self, changed: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(self.wanted.heard())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _debounced(self, changed: asyncio.Event) -> None:
        """Until nothing has been changed for a while."""
        latest = self._timing.monotonic() + AT_THE_LATEST
        while not self.wanted.called:
            changed.clear()
            await first_of(changed, self._timing.sleep(DEBOUNCE))
            if not changed.is_set() or self._timing.monotonic() >= latest:
                return

    # -- what

    async def sync(self, *, at_once: bool = False) -> int:
        """Everything up, everything down; how many entities came."""
        async with self._syncing:
            applied = 0
            if not (await self._replica.read(partial(cursor, feed=FEED))).pulled_ms:
                applied += await self._pull(at_once=at_once)
            await self._files.upload_all(at_once=at_once)
            applied += await self._push_all(at_once=at_once)
            applied += await self._pull(at_once=at_once)
            await self._files.drop_unreferred()
        self._news.tell(Synced("library", applied))
        await self.verify(at_once=at_once)
        return applied

    async def _push_all(self, *, at_once: bool) -> int:
        applied = conflicts = 0
        while (push := await self._replica.write(partial(pushes.next_push, most=self._most))) is not None:
            try:
                await self._push(push, at_once=at_once)
                self._most = min(pushes.MOST, self._most * 2)
            except Refused as refused:
                if await self._react(push, refused):
                    conflicts += 1
                    if conflicts > CONFLICTS:
                        raise Busy(412, "other devices keep changing this library", None) from None
                    applied += await self._pull(at_once=at_once)
        return applied

    async def _push(self, push: Push, *, at_once: bool) -> None:
        answer = await self._http.ask(
            "POST",
            "/library/push",
            body=push.body,
            query={"userId": self._account.user_id},
            headers={"Idempotency-Key": push.key},
            at_once=at_once,
        )
        taken = PUSHED.decode(answer.content)
        for identity in await self._replica.apply(partial(pushes.taken, push=push, answer=taken)):
            self._news.tell(Parked("library", identity, "ignored", "the server ignored this"))

    async def _react(self, push: Push, refused: Refused) -> bool:
        """True: pull before the next push."""
        if refused.status in (401, 403, 404, 405):
            raise refused
        failure = refused.data if isinstance(refused.data, Failure) else Failure()
        named = failure.entityId or ""
        refusal = Refusal(refused.code, refused.reason, refused.message)
        write = self._replica.write
        match push_reaction(refused.status, refused.reason, names_one=bool(named), reset=failure.reset):
            case PushReaction.PULL:
                await write(pushes.conflicted)
                return True
            case PushReaction.START_OVER:
                await write(pushes.conflicted)
                await write(start_over)
                return True
            case PushReaction.AGAIN:
                await write(pushes.conflicted)
            case PushReaction.UPLOAD:
                await write(partial(pushes.file_was_missing, push=push, named=named))
                await self._files.upload_all()
            case PushReaction.PARK:
                await self._park(push, named, refusal)
            case PushReaction.HALVE if len(push.rows) > 1:
                await write(pushes.conflicted)
                self._most = max(1, len(push.rows) // 2)
            case PushReaction.HALVE:
                await self._park(push, push.rows[0].id, refusal)
        return False

    async def _park(self, push: Push, named: str, refusal: Refusal) -> None:
        culprit = await self._replica.write(partial(pushes.refused, push=push, named=named, refusal=refusal))
        if culprit is None:
            self._most = max(1, len(push.rows) // 2)
        else:
            self._news.tell(Parked("library", culprit, refusal.reason, refusal.message))

    async def _pull(self, *, at_once: bool) -> int:
        applied = 0
        while True:
            at = await self._replica.read(partial(cursor, feed=FEED))
            page = await self._page(at.since, at.epoch, at_once=at_once)
            apply = partial(
                apply_page, page=page, asked=at.since, now_ms=self._timing.now_ms(), new_id=self._new_id
            )
            if await self._replica.apply(apply):
                applied += len(page)
                if not page.has_more:
                    return applied

    async def _page(self, since: int, epoch: str, *, at_once: bool) -> Pull:
        query: dict[str, str | int] = {
            "userId": self._account.user_id,
            "since": since,
            "limit": PAGE_ROWS,
        }
        if epoch:
            query["epoch"] = epoch
        answer = await self._http.ask("GET", "/library/pull", query=query, at_once=at_once)
        return PULL.decode(answer.content)

    # -- verification

    async def verify(self, *, at_once: bool = False) -> bool | None:
        """None: not comparable at the moment, or the server offers no checksum."""
        own = await self._replica.read(own_checksum)
        if not own.complete:
            return None
        if self._verified == (own.since, own.digest) and not at_once:
            return True
        query = {"userId": self._account.user_id}
        try:
            answer = await self._http.ask("GET", "/library/checksum", query=query, at_once=at_once)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise
        theirs = _checksum.decode(answer.content)
        if theirs.version != own.since:
            return None
        if (theirs.count, theirs.digest) == (own.count, own.digest):
            self._verified = (own.since, own.digest)
            self._news.tell(Verified("library", own.count))
            return True
        self._news.tell(Differs("library", f"{own.count} {own.digest}", f"{theirs.count} {theirs.digest}"))
        now = self._timing.monotonic()
        if at_once or now - self._repaired_at >= REPAIR_AGAIN_SECONDS:
            self._repaired_at = now
            await self._replica.write(start_over)
            self.wanted.call()
        return False
