"""One request: past the gate, with a token, answered or not. Turns what a server can say into our few errors.

Nothing is tried again in here, but for a token that had run out: who asks knows whether asking again makes sense.
"""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import httpx
import msgspec
from msgspec import Struct

from holdfast.client.errors import Busy, LoginNeeded, Refused, Unanswered
from holdfast.client.network import Network

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
WORTH_PACKING = 4_096
JSON = "application/json"

Body = bytes | Callable[[], AsyncIterator[bytes]]
"""What is sent: all of it, or something that begins to read it (again, when a token had run out)."""


class Failure(Struct):
    """What both styles of the wire say about an error."""

    code: int = 0
    reason: str = ""
    message: str = ""
    errorMessage: str = ""  # noqa: N815 - the wire's word
    data: msgspec.Raw = msgspec.Raw(b"null")
    entityId: str | None = None  # noqa: N815 - the wire's word
    serverLibraryVersion: int | None = None  # noqa: N815 - the wire's word
    reset: bool = False


class Tokens:
    """Where a request gets its token, and what it does when the server does not take it."""

    async def token(self, *, at_once: bool = False) -> str:
        raise LoginNeeded(LoginNeeded.__doc__)

    async def renewed(self, refused: str, *, at_once: bool = False) -> str:
        """Another token than the one that was refused."""
        raise LoginNeeded(LoginNeeded.__doc__)


class Http:
    def __init__(self, address: str, network: Network, device_id: Callable[[], str]) -> None:
        self.address = address if "://" in address else f"http://{address}"
        self._network = network
        self._device_id = device_id
        self._client: httpx.AsyncClient | None = None
        self.tokens = Tokens()
        self.requests = 0
        """How many have been sent; for whoever wants to know what offline work costs."""
        host = httpx.URL(self.address).host
        # on the same machine packing costs more than it saves
        self._packs = host not in ("localhost", "127.0.0.1", "::1")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Body = b"",
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        open_to_all: bool = False,
        at_once: bool = False,
    ) -> httpx.Response:
        """The whole answer of a request that succeeded. `at_once`: a person waits, so it does not wait its turn."""
        sent = dict(headers or {})
        if isinstance(body, bytes) and body:
            sent.setdefault("Content-Type", JSON)
            if self._packs and sent["Content-Type"] == JSON and len(body) >= WORTH_PACKING:
                sent["Content-Encoding"] = "gzip"
                body = gzip.compress(body, 5)

        async def once(token: str | None) -> httpx.Response:
            async with (
                self._network.attempt(at_once=at_once),
                self._sent(method, path, body, query, sent, token) as answer,
            ):
                await answer.aread()
                return answer

        return await self._with_token(once, open_to_all=open_to_all, at_once=at_once)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """An answer to be read in pieces; for a person who waits."""
        token = await self.tokens.token(at_once=True)
        async with (
            self._network.attempt(at_once=True),
            self._sent("GET", path, b"", query, dict(headers or {}), token) as answer,
        ):
            yield answer

    async def _with_token(
        self, once: Callable[[str | None], Awaitable[httpx.Response]], *, open_to_all: bool, at_once: bool
    ) -> httpx.Response:
        if open_to_all:
            return await once(None)
        token = await self.tokens.token(at_once=at_once)
        try:
            return await once(token)
        except Refused as refused:
            if refused.status != 401:
                raise
        return await once(await self.tokens.renewed(token, at_once=at_once))

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        body: Body,
        query: Mapping[str, str | int] | None,
        headers: dict[str, str],
        token: str | None,
    ) -> AsyncIterator[httpx.Response]:
        headers["X-Device-Id"] = self._device_id()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self.requests += 1
        content = body if isinstance(body, bytes) else body()
        try:
            async with self._opened().stream(
                method, path, content=content or None, params=query, headers=headers
            ) as answer:
                if answer.status_code >= 300:
                    raise _said_no(
                        answer.status_code, await answer.aread(), answer.headers.get("Retry-After")
                    )
                yield answer
        except (httpx.TransportError, httpx.DecodingError) as error:
            why = str(error) or type(error).__name__
            raise Unanswered(f"no answer from {self.address} ({why})") from error

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                base_url=self.address,
                timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=8, max_keepalive_connections=4),
                headers={"Accept-Encoding": "gzip" if self._packs else "identity"},
            )
        return self._client


def _said_no(status: int, body: bytes, retry_after: str | None) -> Exception:
    try:
        failure = msgspec.json.decode(body, type=Failure)
    except msgspec.DecodeError:
        failure = Failure(message=f"the server answered {status}")
    message = failure.message or failure.errorMessage or f"the server answered {status}"
    seconds = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    if status in (408, 425, 429) or status >= 500 or 300 <= status < 400:
        return Busy(status, message, seconds)
    refused = Refused(status, failure.code, failure.reason, message, retry_after=seconds)
    refused.data = failure
    return refused
