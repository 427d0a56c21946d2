"""10,000 malformed requests to `/auth/*` of a real server: no 500, no hang, no growth.

Three sources: schemathesis, from the OpenAPI document that the server itself gives; bodies and headers from
hypothesis; bytes on a socket that may not be HTTP at all. `HOLDFAST_FUZZ` multiplies all three.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from holdfast.settings.fields import MIB
from tests.faults.process import Server

pytestmark = pytest.mark.slow

TIMES = float(os.environ.get("HOLDFAST_FUZZ", "1"))
FROM_SCHEMA = int(1_500 * TIMES)
FROM_BODIES = int(8_000 * TIMES)
FROM_BYTES = int(1_500 * TIMES)
PATIENCE = 5.0
GROWTH_KIB = 16 * 1024

ANSWERS = {200, 400, 401, 403, 404, 405, 409, 413, 415, 429}
NOT_HTTP = {400, 413, 414, 431}  # the HTTP server's own, with no body: this never came as far as us
ROUTES = ["register", "login", "refresh", "verify", "logout", "logout-all", "password"]
PATHS = [*ROUTES, *ROUTES, "me", "", "nothing", "%00", "a/b"]
FIELDS = ["username", "password", "refreshToken", "accessToken", "currentPassword", "newPassword", "x"]
UNLIMITED = [
    "limits.anonymous_requests=1000000000", "limits.requests=1000000000", "auth.login_tries=1000000000",
    "auth.argon2_memory_kib=8", "auth.argon2_passes=1", "log.level=error", "http.body_timeout=1",
]  # fmt: skip
QUIET = settings(
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    report_multiple_bugs=False,
)


class Target:
    def __init__(self, address: str, server: Server) -> None:
        self.address = address
        self.url = f"http://{address}"
        self.server = server

    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def tokens(self) -> dict[str, str]:
        body = {"username": "ann", "password": "correct horse"}
        httpx.post(f"{self.url}/auth/register", json=body)
        found: dict[str, str] = httpx.post(f"{self.url}/auth/login", json=body).json()["data"]
        return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    options = [part for pair in UNLIMITED for part in ("--set", pair)]
    server = Server(tmp_path_factory.mktemp("fuzz") / "data", *options)
    doors = asyncio.run(server.start())
    yield Target(doors["http"], server)
    healthy = httpx.get(f"http://{doors['http']}/readyz", timeout=PATIENCE).status_code
    server.terminate()
    code = asyncio.run(server.gone())
    assert (healthy, code) == (200, 0), server.last_words()


class Answer(NamedTuple):
    status: int
    request_id: str | None
    body: bytes


class Wire:
    """A connection that sends what it is told to: a proper client would refuse half of it."""

    def __init__(self, address: str) -> None:
        self._connection = HTTPConnection(address, timeout=PATIENCE)

    def send(self, method: str, path: str, headers: Iterable[tuple[str, bytes]], body: bytes) -> Answer:
        try:
            return self._send(method, path, headers, body)
        except ConnectionError:
            # kept alive, and closed by the server in the meantime: as any client, once more on a new connection
            self.close()
        try:
            return self._send(method, path, headers, body)
        except ConnectionError:
            self.close()
            assert len(body) > MIB, "only a body that is too large may be met by a closed door"
            return Answer(413, None, b"")

    def _send(self, method: str, path: str, headers: Iterable[tuple[str, bytes]], body: bytes) -> Answer:
        self._connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            self._connection.putheader(name, value)
        self._connection.putheader("Content-Length", str(len(body)))
        with suppress(BrokenPipeError):  # the answer may be there before all of the body is
            self._connection.endheaders(body)
        said = self._connection.getresponse()
        answer = Answer(said.status, said.headers["x-request-id"], said.read())
        if said.will_close:
            self.close()
        return answer

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def wire(target: Target) -> Iterator[Wire]:
    opened = Wire(target.address)
    yield opened
    opened.close()


def in_our_words(answer: Answer) -> None:
    if answer.request_id is None and not answer.body:
        assert answer.status in NOT_HTTP, answer
        return
    assert answer.status in ANSWERS, answer
    assert answer.request_id
    said = json.loads(answer.body)
    assert said["ok"] is (answer.status == 200)
    if answer.status != 200:
        assert said["code"] // 100 == answer.status
        assert said["reason"].isidentifier()


# -- from the schema


@pytest.mark.parametrize("mode", [GenerationMode.NEGATIVE, GenerationMode.POSITIVE], ids=["wrong", "right"])
def test_what_the_openapi_document_suggests_is_answered_in_our_words(
    target: Target, wire: Wire, mode: GenerationMode
) -> None:
    schema: BaseSchema = schemathesis.openapi.from_url(f"{target.url}/openapi/json").include(
        path_regex="^/auth/"
    )
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) >= 7
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not len(operation.body):
            continue  # nothing in it can be wrong

        @settings(QUIET, max_examples=max(10, FROM_SCHEMA // len(operations) // 2))
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Case) -> None:  # type: ignore[type-arg]
            body = b"" if case.body is NOT_SET else as_json(case.body)
            headers = [
                (name, value.encode("latin-1", "replace")) for name, value in (case.headers or {}).items()
            ]
            in_our_words(wire.send(case.method, case.formatted_path, headers, body))

        answered()


# -- from hypothesis: whole requests with wrong insides

numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, -(2**63) - 1, 10**400, 1e308]))
texts = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["ann", "correct horse", "a" * 5_000, "\x00", "\ud800", "e\u0301" * 200]),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(FIELDS), st.one_of(texts, texts, values), max_size=4)
good = st.fixed_dictionaries({
    "username": st.sampled_from(["ann", "bob", "ANN", "zoe\u0308"]), "password": st.just("correct horse"),
    "currentPassword": st.just("correct horse"), "newPassword": st.sampled_from(["correct horse", "battery staple"]),
    "refreshToken": st.just("x"), "accessToken": st.just("x"),
})  # fmt: skip
nearly_good = st.tuples(good, objects).map(lambda parts: parts[0] | parts[1])
spoiled = st.tuples(objects, st.integers(0, 300), st.binary(max_size=3))
HEADERS = st.dictionaries(
    st.sampled_from([
        "Authorization", "Content-Type", "Content-Encoding", "Idempotency-Key", "X-Request-Id", "X-Forwarded-For",
        "Accept-Encoding", "Cookie",
    ]),
    st.one_of(
        st.sampled_from([
            "Bearer", "Bearer ", "bearer x", "Bearer a.b.c", "Bearer " + "A" * 5_000, "Basic YTpi", "gzip", "zstd",
            "br", "application/json", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded",
            "application/json; charset=utf-16", "1", "a=b", "multipart/form-data; boundary=x", "application/msgpack",
        ]),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
        st.binary(max_size=20).map(lambda raw: raw.translate(None, b"\r\n\x00").decode("latin-1")),
    ).map(lambda text: text.encode("latin-1")),
    max_size=3,
)  # fmt: skip


class Long(bytes):
    """Bytes that a failing test does not print in full."""

    def __repr__(self) -> str:
        return f"Long({self[:20]!r}… {len(self)} bytes)"


def as_json(value: object) -> bytes:
    """JSON as a careless client writes it: NaN and lone surrogates included."""
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


BODIES = st.one_of(
    objects.map(as_json),
    good.map(as_json),
    nearly_good.map(as_json),
    values.map(as_json),
    spoiled.map(lambda parts: (body := as_json(parts[0]))[: parts[1]] + parts[2] + body[parts[1] + 1 :]),
    st.binary(max_size=100),
    st.sampled_from(
        [
            b"",
            Long(b"[" * 100_000),
            Long(b'{"a":' * 50_000),
            Long(b" " * 100_000),
            b"{" + b"\xff" * 100,
            Long(b"a" * 2_000_000),
        ]
    ),
)


def test_wrong_bodies_and_headers_are_answered_in_our_words_and_nothing_grows(
    target: Target, wire: Wire
) -> None:
    tokens = target.tokens()
    known = [tokens["accessToken"], tokens["refreshToken"], "", "x"]
    seen: dict[int, int] = {}

    @settings(QUIET, max_examples=FROM_BODIES // 3)
    @given(
        path=st.sampled_from(PATHS),
        method=st.sampled_from(["POST"] * 20 + ["GET", "PUT", "DELETE", "PATCH"]),
        headers=HEADERS,
        body=BODIES,
        token=st.sampled_from([None, None, *known]),
    )
    def answered(path: str, method: str, headers: dict[str, bytes], body: bytes, token: str | None) -> None:
        if token is not None:
            headers = headers | {"Authorization": f"Bearer {token}".encode()}
            body = body.replace(b'"x"', f'"{token}"'.encode())
        answer = wire.send(method, f"/auth/{path}", headers.items(), body)
        in_our_words(answer)
        seen[answer.status] = seen.get(answer.status, 0) + 1

    answered()
    before = target.memory_kib()
    answered()
    answered()
    grown = target.memory_kib() - before
    print(f"answers {seen}, grown by {grown} KiB")
    assert grown < GROWTH_KIB
    assert {200, 400, 401} <= seen.keys()


# -- from hypothesis: bytes that may not be a request

LINES = st.one_of(
    st.sampled_from([
        b"POST /auth/login HTTP/1.1\r\n", b"POST /auth/login HTTP/1.0\r\n", b"GET /auth/me HTTP/1.1\r\n",
        b"POST /auth/login HTTP/9.9\r\n", b"POST  /auth/login\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /auth/\xff HTTP/1.1\r\n", b"POST http://x/auth/login HTTP/1.1\r\n", b"\r\n\r\n", b"\x16\x03\x01",
        Long(b"POST /auth/login?" + b"a" * 70_000 + b" HTTP/1.1\r\n"), b"OPTIONS * HTTP/1.1\r\n",
    ]),
    st.binary(max_size=60),
)  # fmt: skip
FIELD_LINES = st.lists(
    st.one_of(
        st.sampled_from([
            b"Host: x\r\n", b"Content-Length: 5\r\n", b"Content-Length: 50\r\n", b"Content-Length: -1\r\n",
            b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n",
            b"Transfer-Encoding: gzip, chunked\r\n", b"Expect: 100-continue\r\n", b"Content-Type: application/json\r\n",
            b"Authorization: Bearer \xff\xfe\r\n", Long(b"X: " + b"y" * 20_000 + b"\r\n"), b": no name\r\n", b"folded:\r\n x\r\n",
            b"Content-Encoding: gzip\r\n", b"Upgrade: websocket\r\n",
        ]),
        st.binary(max_size=30).map(lambda raw: raw + b"\r\n"),
    ),
    max_size=5,
).map(b"".join).map(Long)  # fmt: skip
TAILS = st.sampled_from([
    b"\r\n", b"\r\n{}", b'\r\n{"username":', b"\r\n5\r\n{\"a\":\r\n0\r\n\r\n", b"\r\nffffffffffffffff\r\n", b"\r\n-1\r\n",
    b"\r\n5\r\nab", b"\r\n\x1f\x8b\x08\x00", b"\r\n0\r\n\r\nGET /auth/me HTTP/1.1\r\nHost: x\r\n\r\n", b"",
])  # fmt: skip


def test_bytes_that_are_no_request_hang_nothing_and_are_never_a_500(target: Target) -> None:
    host, _, port = target.address.rpartition(":")

    @settings(QUIET, max_examples=FROM_BYTES)
    @given(line=LINES, fields=FIELD_LINES, tail=TAILS)
    def answered(line: bytes, fields: bytes, tail: bytes) -> None:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as wire:
            try:
                wire.sendall(line + fields + tail)
                wire.shutdown(socket.SHUT_WR)
                said = b""
                while piece := wire.recv(65_536):
                    said += piece
            except TimeoutError:
                raise
            except OSError:
                return  # closed in the middle of what it did not want
        assert b"HTTP/1.1 5" not in said, (line[:99] + fields[:300] + tail, said, target.server.last_words())

    answered()
    target.tokens()
