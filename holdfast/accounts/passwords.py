"""argon2id on a few threads of its own: a hash costs tens of milliseconds, and the loop never waits for one.

Few threads and a bounded queue are also the last dam against guessing: what does not fit is answered with 503.
A password for nobody is checked against a hash of nothing, so that it takes as long as one for somebody.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import HashingError, InvalidHashError, VerificationError, VerifyMismatchError
from msgspec import Struct

from holdfast.errors import Unavailable
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Auth

T = TypeVar("T")

log = get_logger("accounts")


class Verdict(Struct, frozen=True):
    right: bool
    renewed_hash: str | None = None
    """The same password hashed anew, when the settings have changed since it was hashed."""


class Passwords:
    def __init__(self, settings: Auth, metrics: Metrics | None = None) -> None:
        self._hasher = PasswordHasher(
            time_cost=settings.argon2_passes, memory_cost=settings.argon2_memory_kib, parallelism=1
        )
        self._nobody = self._hasher.hash(secrets.token_urlsafe(16))
        self._limit = settings.hash_threads + settings.hash_queue
        self._waiting = 0
        self._threads = ThreadPoolExecutor(settings.hash_threads, thread_name_prefix="holdfast-hash")
        metrics = metrics or Metrics()
        self._done = metrics.counter("holdfast_password_hashes", "Passwords hashed or verified", "what")
        metrics.gauge("holdfast_password_waiting", "Passwords that wait for a thread", lambda: self._waiting)

    @property
    def verifications(self) -> float:
        return self._done.value("verify")

    async def hash(self, password: str) -> str:
        return await self._run("hash", lambda: self._hasher.hash(password))

    async def verify(self, stored: str | None, password: str) -> Verdict:
        """Whether `password` is the one that was stored; with None, the same work for the answer no."""
        return await self._run("verify", lambda: self._verify(stored, password))

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _run(self, what: str, work: Callable[[], T]) -> T:
        if self._waiting >= self._limit:
            raise Unavailable("Too many logins at the moment; try again.")
        self._waiting += 1
        job = self._threads.submit(work)
        loop = asyncio.get_running_loop()
        # counted down when the thread is done with it, not when the caller has gone away
        job.add_done_callback(lambda _job: _on_loop(loop, self._one_less))
        try:
            return await asyncio.wrap_future(job)
        except HashingError as error:
            raise Unavailable from error  # out of memory
        finally:
            self._done.add(what)

    def _one_less(self) -> None:
        self._waiting -= 1

    def _verify(self, stored: str | None, password: str) -> Verdict:
        try:
            self._hasher.verify(stored or self._nobody, password)
        except VerifyMismatchError:
            return Verdict(False)
        except InvalidHashError:
            log.error("password_hash_damaged")
            return self._verify(None, password)
        except VerificationError as error:
            raise Unavailable from error  # out of memory
        if stored is None:
            return Verdict(False)
        renewed = self._hasher.hash(password) if self._hasher.check_needs_rehash(stored) else None
        return Verdict(True, renewed)


def _on_loop(loop: asyncio.AbstractEventLoop, step: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(step)
    except RuntimeError:
        return  # the loop has ended, and nobody counts any more
