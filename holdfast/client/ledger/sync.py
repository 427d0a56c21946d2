"""The ledger's traffic over HTTP: pulls, the outbox, the comparison with the server. One pull at a time.

start: pull all → outbox → MQTT; at each (re)connection of MQTT, when the network returns, on refresh(): pull
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec

from holdfast.client.errors import Refused
from holdfast.client.http import Failure, Http
from holdfast.client.ledger.apply import apply_page, at_cursor, start_over
from holdfast.client.ledger.changes import OUTBOX
from holdfast.client.ledger.outbox import MOST, Op, next_batch
from holdfast.client.ledger.settle import refusal_of, settle
from holdfast.client.ledger.verify import own_checksum
from holdfast.client.ledger.wire import OUTCOMES, PAGE, Checksum, Envelope, Outcome, Page
from holdfast.client.news import Differs, News, Parked, Synced, Verified
from holdfast.client.replica import Replica
from holdfast.client.timing import Timing, Wakeup, first_of

PAGE_ROWS = 1_000
PUT_OFF_SECONDS = 30.0
REPAIR_AGAIN_SECONDS = 3600.0

_checksum = msgspec.json.Decoder(Envelope[Checksum])


class LedgerSync:
    def __init__(self, replica: Replica, http: Http, timing: Timing, news: News) -> None:
        self._replica = replica
        self._http = http
        self._timing = timing
        self._news = news
        self._pulling = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._put_off: dict[str, float] = {}
        self._repaired_at = float("-inf")
        self._verified: tuple[int, str] | None = None
        self.pull_wanted = Wakeup(timing)
        self.pulled = asyncio.Event()
        """Set when everything was here once since the start."""

    # -- pulls

    async def pull_when_wanted(self) -> None:
        await self.pull_wanted.wait()
        try:
            await self.pull()
        except BaseException:
            self.pull_wanted.call()  # still wanted
            raise

    async def pull(self, *, at_once: bool = False) -> int:
        """Everything that the server has above our cursor; how many entities came."""
        async with self._pulling:
            applied = await self._pull_pages(at_once=at_once)
        self.pulled.set()
        self._news.tell(Synced("ledger", applied))
        return applied

    async def _pull_pages(self, *, at_once: bool) -> int:
        at = await self._replica.read(at_cursor)
        asked, applied, began_anew = at.since, 0, False
        page = await self._page(at.since, at.epoch, at_once=at_once)
        while True:
            # the next page is on its way while this one is written
            following = self._following(page, at_once=at_once)
            try:
                kept = await self._replica.apply(
                    partial(apply_page, page=page, asked=asked, now_ms=self._timing.now_ms())
                )
            except BaseException:
                if following is not None:
                    following.cancel()
                raise
            applied += len(page)
            began_anew = began_anew or page.reset
            if following is None:
                # a message that came while the reset's first page was on its way may have been swept with the old rows
                return applied + (await self._pull_pages(at_once=at_once) if began_anew else 0)
            if not kept:  # another process on this replica pulls too: on from where it stands
                following.cancel()
                return applied + await self._pull_pages(at_once=at_once)
            asked, page = page.next_since, await following

    def _following(self, page: Page, *, at_once: bool) -> asyncio.Task[Page] | None:
        if not page.has_more:
            return None
        return asyncio.create_task(self._page(page.next_since, page.epoch, at_once=at_once))

    async def _page(self, since: int, epoch: str, *, at_once: bool) -> Page:
        query: dict[str, str | int] = {"since": since, "limit": PAGE_ROWS}
        if epoch:
            query["epoch"] = epoch
        answer = await self._http.ask("GET", "/api/v1/sync/changes", query=query, at_once=at_once)
        return PAGE.decode(answer.content).data

    # -- verification

    async def verify(self, *, at_once: bool = False) -> bool | None:
        """Compares our rows with the server's. None: not comparable at the moment (changes are on their way)."""
        # ours first: what the server has at our cursor then cannot be older than what we counted
        own = await self._replica.read(own_checksum)
        if not own.complete:
            return None
        if self._verified == (own.since, own.digest) and not at_once:
            return True
        answer = await self._http.ask("GET", "/api/v1/sync/checksum", at_once=at_once)
        theirs = _checksum.decode(answer.content).data
        if theirs.version != own.since:
            return None
        if (theirs.count, theirs.digest) == (own.count, own.digest):
            self._verified = (own.since, own.digest)
            self._news.tell(Verified("ledger", own.count))
            return True
        self._news.tell(Differs("ledger", f"{own.count} {own.digest}", f"{theirs.count} {theirs.digest}"))
        now = self._timing.monotonic()
        if at_once or now - self._repaired_at >= REPAIR_AGAIN_SECONDS:
            self._repaired_at = now
            await self.repair()
        return False

    async def repair(self) -> None:
        """Everything is pulled again; what the server does not have goes, what is not synced stays."""
        async with self._pulling:
            await self._replica.apply(start_over)
        self.pull_wanted.call()

    # -- the outbox

    async def send_when_there_is_something(self) -> None:
        """Drains, then rests until something is written here or a row that was put off is due."""
        changed = self._replica.watch((OUTBOX,))
        try:
            await self.drain()
            due = min(self._put_off.values(), default=None)
            if due is None:
                await changed.wait()
            else:
                await first_of(changed, self._timing.sleep(max(0.1, due - self._timing.monotonic())))
        finally:
            self._replica.unwatch(changed)

    async def drain(self, *, at_once: bool = False) -> None:
        """Until nothing is left that can go now."""
        async with self._sending:
            most = MOST
            while ops := await self._replica.write(
                partial(next_batch, most=most, putting_off=self.putting_off())
            ):
                most = await self._send(ops, most, at_once=at_once)

    def putting_off(self) -> list[str]:
        now = self._timing.monotonic()
        self._put_off = {identity: due for identity, due in self._put_off.items() if due > now}
        return list(self._put_off)

    async def _send(self, ops: list[Op], most: int, *, at_once: bool) -> int:
        """How many the next batch may have: one that is refused as a whole is halved until the culprit is alone."""
        body = b'{"operations":[%s]}' % b",".join([op.encoded() for op in ops])
        try:
            answer = await self._http.ask("POST", "/api/v1/sync/batch", body=body, at_once=at_once)
            outcomes = OUTCOMES.decode(answer.content).data
        except Refused as refused:
            if refused.status in (401, 403, 404, 405):
                raise
            if len(ops) > 1:
                return max(1, len(ops) // 2)
            outcomes = [_outcome_of(refused)]
        await self.settle(ops, outcomes)
        return min(MOST, most * 2)

    async def settle(self, ops: list[Op], outcomes: list[Outcome]) -> None:
        settled = await self._replica.apply(
            partial(settle, ops=ops, outcomes=outcomes, now_ms=self._timing.now_ms())
        )
        due = self._timing.monotonic() + PUT_OFF_SECONDS
        self._put_off.update(dict.fromkeys(settled.put_off, due))
        said = {op.id: outcome for op, outcome in zip(ops, outcomes, strict=True)}
        for op in settled.parked:
            why = refusal_of(said[op.id])
            self._news.tell(Parked("ledger", op.id, why.reason, why.message))


def _outcome_of(refused: Refused) -> Outcome:
    data = refused.data.data if isinstance(refused.data, Failure) else msgspec.Raw(b"null")
    return Outcome(refused.status, refused.code, refused.reason, refused.message, data)
