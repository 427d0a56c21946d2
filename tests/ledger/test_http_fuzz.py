"""Malformed requests to `/api/v1/*` of a real server: no 500, every answer in our words, nothing grows.

Two sources: schemathesis, from the OpenAPI document that the server itself gives; paths, queries, bodies and forms from
hypothesis, near enough to good ones to come far. `HOLDFAST_FUZZ` multiplies both.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from tests.faults.process import Server

pytestmark = pytest.mark.slow

TIMES = float(os.environ.get("HOLDFAST_FUZZ", "1"))
FROM_SCHEMA = int(800 * TIMES)
FROM_BODIES = int(2_400 * TIMES)
PATIENCE = 10.0
GROWTH_KIB = 24 * 1024
ANSWERS = {200, 201, 206, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 416}
UNLIMITED = [
    "limits.anonymous_requests=1000000000", "limits.requests=1000000000", "auth.login_tries=1000000000",
    "auth.argon2_memory_kib=8", "auth.argon2_passes=1", "log.level=error", "http.body_timeout=1",
    "ledger.join_tries=1000000000", "limits.json_body=100000",
]  # fmt: skip
QUIET = settings(
    deadline=None, database=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False
)


class Target(NamedTuple):
    address: str
    server: Server
    token: str
    known: dict[str, str]
    """Ids of what is there: a book, its bill, its image."""

    def memory_kib(self) -> int:
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    options = [part for pair in UNLIMITED for part in ("--set", pair)]
    server = Server(tmp_path_factory.mktemp("fuzz") / "data", *options)
    doors = asyncio.run(server.start())
    yield furnished(doors["http"], server)
    healthy = httpx.get(f"http://{doors['http']}/readyz", timeout=PATIENCE).status_code
    server.terminate()
    code = asyncio.run(server.gone())
    assert (healthy, code) == (200, 0), server.last_words()


def furnished(address: str, server: Server) -> Target:
    url = f"http://{address}"
    credentials = {"username": "ann", "password": "correct horse"}
    httpx.post(f"{url}/auth/register", json=credentials)
    token = httpx.post(f"{url}/auth/login", json=credentials).json()["data"]["accessToken"]
    ann = httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"})
    with ann:
        book = ann.post("/books/", json={"name": "Home", "type": "x"}).json()["data"]["_id"]
        lunch = {"book_id": book, "money": 1, "type": 1, "category": "c", "time": "2026-02-18"}
        bill = ann.post("/bills/", json=lunch).json()["data"]["_id"]
        files = {"file": ("x", b"GIF89a photo")}
        image = ann.post("/images/upload", data={"bill_id": bill}, files=files).json()["data"]["_id"]
    return Target(address, server, token, {"book": book, "bill": bill, "image": image})


class Wire:
    """A connection that sends what it is told to."""

    def __init__(self, address: str, token: str) -> None:
        self._connection = HTTPConnection(address, timeout=PATIENCE)
        self._token = token

    def send(self, method: str, path: str, body: bytes, headers: Iterable[tuple[str, bytes]] = ()) -> None:
        """And is answered in our words."""
        self._connection.putrequest(method, path, skip_accept_encoding=True)
        self._connection.putheader("Authorization", f"Bearer {self._token}")
        for name, value in headers:
            self._connection.putheader(name, value)
        self._connection.putheader("Content-Length", str(len(body)))
        try:
            self._connection.endheaders(body)
            said = self._connection.getresponse()
            content = said.read()
        except ConnectionError:
            self.close()  # a body that is refused before it is here; what is wrong otherwise shows in /readyz
            return
        if said.will_close:
            self.close()
        assert said.status in ANSWERS, (method, path, body[:300], said.status, content)
        if said.headers["content-type"] == "application/json":
            answer = json.loads(content)
            assert answer["ok"] is (said.status in (200, 201)), answer
            if not answer["ok"]:
                assert answer["code"] // 100 == said.status
                assert answer["reason"].isidentifier()

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def wire(target: Target) -> Iterator[Wire]:
    opened = Wire(target.address, target.token)
    yield opened
    opened.close()


# -- from the schema


@pytest.mark.parametrize("mode", [GenerationMode.NEGATIVE, GenerationMode.POSITIVE], ids=["wrong", "right"])
def test_what_the_openapi_document_suggests_is_answered_in_our_words(
    target: Target, wire: Wire, mode: GenerationMode
) -> None:
    url = f"http://{target.address}/openapi/json"
    schema: BaseSchema = schemathesis.openapi.from_url(url).include(path_regex="^/api/v1/")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) >= 19
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not len(operation.body) and not len(operation.query):
            continue  # nothing in it can be wrong

        @settings(QUIET, max_examples=max(10, FROM_SCHEMA // len(operations) // 2))
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Case) -> None:  # type: ignore[type-arg]
            body = b"" if case.body is NOT_SET else as_json(case.body)
            query = "&".join(
                f"{quote(str(name), errors='replace')}={quote(str(value), errors='replace')}"
                for name, value in (case.query or {}).items()
            )
            wire.send(case.method, case.formatted_path + (f"?{query}" if query else ""), body)

        answered()


# -- from hypothesis

numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 2**63, -(2**63) - 1, 10**400, 1e308, 123456789012345.6789]),
)
texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            *("BOOK", "BILL", "IMAGE", "\x00", "\ud800", "a" * 5_000, "1e999999999", "NaN", "2026-02-18"),
            *("9999-12-31", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0000-00-00"),
            "2026-02-18T25:00:00Z",
        ]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
FIELDS = [
    "_id", "book_id", "bill_id", "name", "type", "banner", "is_initial", "money", "category", "time", "remark",
    "base_upd_time", "code", "operations", "op", "entity", "id", "data",
]  # fmt: skip
objects = st.dictionaries(st.sampled_from(FIELDS), st.one_of(texts, values), max_size=4)
good = st.sampled_from([
    {"name": "Home", "type": "x"}, {"code": "ABCDEFGH"},
    {"book_id": "BOOK", "money": 1, "type": 1, "category": "c", "time": "2026-02-18"},
    {"operations": [{"op": "create", "entity": "bill", "id": "BILL", "data": {"money": 1}}]},
    {"operations": [{"op": "delete", "entity": "image", "id": "IMAGE"}] * 3},
])  # fmt: skip
nearly_good = st.tuples(good, objects).map(lambda parts: parts[0] | parts[1])
batches = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["create", "update", "delete", "x"]),
            "entity": st.sampled_from(["book", "bill", "image"]),
            "id": st.sampled_from(["BOOK", "BILL", "IMAGE", "9m4e2mr0ui3e8a215n4g", "x"]),
            "data": st.one_of(nearly_good, values),
        }
    ),
    max_size=4,
)
bodies = st.one_of(objects, good, nearly_good, values, batches)
paths = st.sampled_from([
    "books/", "books/BOOK", "books/BOOK/share", "books/join", "books/BOOK/members/1", "books/BOOK/members/x", "bills/",
    "bills/BILL", "images/IMAGE", "images/upload", "sync/batch", "sync/batch", "sync/batch", "sync/changes",
    "sync/checksum", "books/%00", "bills/%FF", "images/..%2f..", "books/BOOK/members/99999999999999999999", "nothing",
])  # fmt: skip
queries = st.dictionaries(
    st.sampled_from(["since", "limit", "epoch", "book_id", "from", "to", "cursor"]),
    st.one_of(texts, numbers.map(str), st.sampled_from(["MTAuOW00ZTJtcjB1aTNlOGEyMTVuNGc", "x.1", ".", "="])),
    max_size=4,
)
HEADERS = st.dictionaries(
    st.sampled_from(["Content-Type", "Content-Encoding", "Idempotency-Key", "Range", "If-None-Match", "X-Device-Id"]),
    st.sampled_from([
        b"application/json", b"multipart/form-data; boundary=b", b"gzip", b"bytes=0-0", b"bytes=-", b"*", b"key",
        b"\xff", b"a" * 300, b"text/plain", b"",
    ]),
    max_size=2,
)  # fmt: skip


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def test_wrong_paths_queries_and_bodies_are_answered_in_our_words_and_nothing_grows(
    target: Target, wire: Wire
) -> None:
    def known(text: str) -> str:
        for name, id_ in target.known.items():
            text = text.replace(name.upper(), id_)
        return text

    @settings(QUIET, max_examples=FROM_BODIES // 2)
    @given(
        path=paths,
        method=st.sampled_from(["POST"] * 5 + ["PUT"] * 3 + ["GET"] * 3 + ["PATCH"]),
        query=queries,
        headers=HEADERS,
        body=bodies.map(as_json),
    )
    def answered(path: str, method: str, query: dict[str, str], headers: dict[str, Any], body: bytes) -> None:
        text = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in query.items())
        body = known(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        wire.send(
            method, known(f"/api/v1/{path}") + (f"?{known(text)}" if text else ""), body, headers.items()
        )

    answered()
    before = target.memory_kib()
    answered()
    grown = target.memory_kib() - before
    assert grown < GROWTH_KIB, f"grown by {grown} KiB"


forms = st.lists(
    st.tuples(
        st.sampled_from([b"file", b"bill_id", b"_id", b"md5", b"other", b"", b"\xff"]),
        st.one_of(st.binary(max_size=60), st.sampled_from([b"BILL", b"GIF89a photo", b"\xff\xd8\xff photo", b"x" * 9_000])),
    ),
    max_size=5,
)  # fmt: skip


def test_wrong_forms_are_answered_in_our_words(target: Target, wire: Wire) -> None:
    @settings(QUIET, max_examples=FROM_BODIES // 6)
    @given(form=forms, cut=st.integers(0, 40), path=st.sampled_from(["images/upload", "image/upload"]))
    def answered(form: list[tuple[bytes, bytes]], cut: int, path: str) -> None:
        parts = [
            b'--b\r\nContent-Disposition: form-data; name="%b"; filename="x"\r\n\r\n%b\r\n'
            % (name, value.replace(b"BILL", target.known["bill"].encode()))
            for name, value in form
        ]
        body = b"".join([*parts, b"--b--\r\n"])
        body = body[: len(body) - cut] if cut > 20 else body
        wire.send("POST", f"/api/v1/{path}", body, [("Content-Type", b"multipart/form-data; boundary=b")])

    answered()
