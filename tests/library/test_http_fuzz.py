"""Thousands of malformed requests to `/library/*` and `/file/*` of a real server: no 500, no hang, and what was taken
can be pulled and is sound. `HOLDFAST_FUZZ` multiplies them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NOT_SET
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from tests.acceptance.serving import PASSWORD, holdfast
from tests.accounts.test_http_fuzz import HEADERS, NOT_HTTP, QUIET, Answer, Wire, as_json
from tests.faults.process import Server
from tests.faults.test_libraries import UNLIMITED
from tests.library.pdfs import md5, pdf

pytestmark = pytest.mark.slow

TIMES = float(os.environ.get("HOLDFAST_FUZZ", "1"))
FROM_SCHEMA = int(500 * TIMES)
FROM_PUSHES = int(1_000 * TIMES)
FROM_FILES = int(800 * TIMES)
PATIENCE = 20.0
ANSWERS = {200, 201, 204, 206, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 416, 460}
CONTENT = pdf(1)


class Target:
    def __init__(self, address: str) -> None:
        self.address = address
        self.url = f"http://{address}"
        account = {"username": "ann", "password": PASSWORD}
        httpx.post(f"{self.url}/auth/register", json=account)
        login = httpx.post(f"{self.url}/auth/login", json=account).json()["data"]
        self.token = f"Bearer {login['accessToken']}"
        self.user = login["userId"]
        self.version = 0

    def pull(self) -> dict[str, object]:
        said = httpx.get(f"{self.url}/library/pull", headers={"Authorization": self.token}, timeout=PATIENCE)
        assert said.status_code == 200, said.text
        found: dict[str, object] = json.loads(said.content)
        return found


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("fuzz") / "data"
    server = Server(folder, *UNLIMITED, "--set", "http.body_timeout=1")
    doors = asyncio.run(server.start())
    made = Target(doors["http"])
    yield made
    made.pull()
    server.terminate()
    assert asyncio.run(server.gone()) == 0, server.last_words()
    checked = holdfast("check", "--deep", "--data", folder)
    assert checked.code == 0, checked.out + checked.err


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
    if answer.status >= 400 and answer.body:
        said = json.loads(answer.body)
        assert said["success"] is False
        assert said["code"] // 100 == answer.status
        assert said["reason"].isidentifier()


@pytest.mark.parametrize("mode", [GenerationMode.NEGATIVE, GenerationMode.POSITIVE], ids=["wrong", "right"])
def test_what_the_openapi_document_suggests_is_answered_in_our_words(
    target: Target, wire: Wire, mode: GenerationMode
) -> None:
    schema: BaseSchema = schemathesis.openapi.from_url(f"{target.url}/openapi/json").include(
        path_regex="^/(library|file)/"
    )
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) >= 11
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not (len(operation.body) or len(operation.query)):
            continue  # nothing in it can be wrong

        @settings(QUIET, max_examples=max(10, FROM_SCHEMA // len(operations) // 2))
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered(case: Case) -> None:  # type: ignore[type-arg]
            body = b"" if case.body is NOT_SET else as_json(case.body)
            headers = [("Authorization", target.token.encode())]
            path = str(httpx.URL(case.formatted_path, params=case.query or {}))
            in_our_words(wire.send(case.method, path, headers, body))

        answered()


# -- pushes that are nearly right

texts = st.one_of(st.text(max_size=20), st.sampled_from(["\x00", "\ud800", "a" * 201]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.sampled_from([0, 2**63, -(2**63) - 1, 2**70]), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
NAMES = st.one_of(st.sampled_from(["A", "B", "C", "D"]), st.sampled_from(["A", "B", "C", "D"]), texts)
IDS = st.one_of(
    st.integers(1, 60), st.integers(1, 60), st.sampled_from([0, -1, 2**63, 2**53, "7", None, True])
)
FIELDS = {
    "title": texts, "composer": texts, "bpm": st.integers(-5, 300), "name": texts, "description": texts,
    "instrumentName": texts, "orderIndex": st.integers(-1, 5), "annotationsJson": texts,
    "scoreId": st.one_of(NAMES, IDS), "setlistId": st.one_of(NAMES, IDS),
    "pdfHash": st.sampled_from([md5(CONTENT), "0" * 32, "", None, "x", md5(CONTENT).upper()]),
}  # fmt: skip
_DATA = st.fixed_dictionaries(
    {"title": NAMES, "name": NAMES, "instrumentName": NAMES, "scoreId": NAMES, "setlistId": NAMES},
    optional={"other": values},
)
_WRONG = st.fixed_dictionaries({}, optional=FIELDS)


@st.composite
def some_data(draw: st.DrawFn) -> dict[str, object]:
    """Good, and in one of eight cases with something wrong put over it."""
    return draw(_DATA) | (draw(_WRONG) if draw(st.integers(0, 7)) == 0 else {})


DATA = some_data()
_CHANGE = st.fixed_dictionaries(
    {"entityId": NAMES, "operation": st.sampled_from(["create", "create", "update", "delete"])},
    optional={
        "serverId": IDS,
        "data": st.one_of(DATA, DATA, DATA.map(lambda data: json.dumps(data, default=str)), values),
        "version": st.integers(-1, 9),
        "entityType": st.sampled_from(["score", "setlist", "book", None]),
        "localUpdatedAt": values,
        "more": values,
    },
)
_GOOD_CHANGE = st.fixed_dictionaries(
    {
        "entityId": st.sampled_from("ABCDEFGH"),
        "operation": st.sampled_from(["create", "create", "update", "delete"]),
        "data": DATA,
    },
    optional={"serverId": st.integers(1, 60)},
)  # fmt: skip


@st.composite
def changes(draw: st.DrawFn) -> list[object]:
    return draw(st.lists(st.one_of(*[_GOOD_CHANGE] * 9, _CHANGE), max_size=3))


CHANGES = changes()
PUSH = st.fixed_dictionaries(
    {},
    optional={
        "scores": CHANGES,
        "instrumentScores": CHANGES,
        "setlists": CHANGES,
        "setlistScores": CHANGES,
        "deletes": st.lists(st.one_of(st.integers(1, 60).map(lambda n: f"score:{n}"), texts), max_size=2),
        "epoch": st.one_of(st.none(), texts),
        "scores ": values,
    },
)


def test_pushes_that_are_nearly_right_are_taken_whole_or_refused_and_poison_no_pull(
    target: Target, wire: Wire
) -> None:
    seen: dict[int, int] = {}

    @settings(QUIET, max_examples=FROM_PUSHES)
    @given(
        push=PUSH,
        key=st.one_of(st.none(), st.none(), st.sampled_from(["k1", "k2", "k" * 300, "\x7f"])),
        wrong=st.integers(0, 9),
    )
    def answered(push: dict[str, object], key: str | None, wrong: int) -> None:
        body = as_json({"clientLibraryVersion": target.version - (wrong == 0), **push})
        headers = [("Authorization", target.token.encode())]
        if key is not None:
            headers.append(("Idempotency-Key", key.encode()))
        answer = wire.send("POST", f"/library/push?userId={target.user}", headers, body)
        in_our_words(answer)
        seen[answer.status] = seen.get(answer.status, 0) + 1
        if answer.status in (200, 412):
            said = json.loads(answer.body)
            now = said["newLibraryVersion" if answer.status == 200 else "serverLibraryVersion"]
            target.version = max(target.version, now)

    answered()
    print(f"answers {seen}")
    assert {200, 400, 409, 412} <= seen.keys()
    assert target.pull()["libraryVersion"] == target.version


# -- files

PATHS = st.one_of(
    st.sampled_from([
        "/file/upload", "/file/claim", "/file/checkHash", "/file/download", "/file/tus", "/file/tus/x", "/file/", "/library/",
        f"/file/download?hash={md5(CONTENT)}", f"/file/checkHash?hash={md5(CONTENT)}", "/file/checkHash?hash=%00",
        "/library/pull?since=0&limit=3", "/library/pull?epoch=%ff", "/library/pull?since=1&since=2", "/library/checksum",
    ]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=10).map(lambda text: f"/file/{text}"),
)  # fmt: skip
MORE_HEADERS = st.dictionaries(
    st.sampled_from([
        "Range", "If-Range", "If-None-Match", "Upload-Offset", "Upload-Length", "Upload-Defer-Length", "Upload-Metadata",
        "Upload-Checksum", "Tus-Resumable", "X-HTTP-Method-Override", "Content-Type",
    ]),
    st.one_of(
        st.sampled_from([
            b"bytes=0-", b"bytes=-1", b"bytes=5-2", b"bytes=99999999-", b"bytes=0-1,3-4", b"*", b"0", b"5", b"-1", b"1.0.0",
            b"1", b"sha1 AAAA", b"application/offset+octet-stream", b"multipart/form-data; boundary=x", b"PATCH",
            b"multipart/form-data", b"99999999999999999999", b"\xff",
        ]),
        st.binary(max_size=20).map(lambda raw: raw.translate(None, b"\r\n\x00")),
    ),
    max_size=5,
)  # fmt: skip
FILE_BODIES = st.one_of(
    st.sampled_from([
        b"", CONTENT, CONTENT[:100], b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\n%PDF-1\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data; name=file; filename=a\r\n\r\n%PDF-1", b"--x--", b"{}",
        b'{"hash": "' + md5(CONTENT).encode() + b'"}', b'{"claimId": "", "sha256": ""}', b'{"claimId": "AAAA", "sha256": "x"}',
        b'{"hash": 5}', b'{"claimId": "\\u00ff", "sha256": "\\ud800"}',
    ]),
    st.binary(max_size=200),
    st.binary(max_size=60).map(lambda raw: b"--x\r\n" + raw + b"\r\n--x--\r\n"),
)  # fmt: skip


def test_files_are_asked_for_in_every_wrong_way(target: Target, wire: Wire) -> None:
    seen: dict[int, int] = {}

    @settings(QUIET, max_examples=FROM_FILES)
    @given(
        path=PATHS,
        method=st.sampled_from(["GET", "POST", "POST", "PATCH", "DELETE", "PUT", "OPTIONS"]),
        headers=HEADERS,
        more=MORE_HEADERS,
        body=FILE_BODIES,
        logged_in=st.integers(0, 9),
    )
    def answered(
        path: str, method: str, headers: dict[str, bytes], more: dict[str, bytes], body: bytes, logged_in: int
    ) -> None:
        headers = headers | more
        if logged_in:
            headers["Authorization"] = target.token.encode()
        answer = wire.send(method, path, headers.items(), body)
        in_our_words(answer)
        seen[answer.status] = seen.get(answer.status, 0) + 1

    answered()
    print(f"answers {seen}")
    assert {200, 400, 401, 404, 405, 415} <= seen.keys()
