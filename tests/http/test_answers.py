"""Envelopes, errors, ids of requests."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.http.conftest import Served


def assert_refused(response: httpx.Response, code: int, reason: str) -> None:
    said = response.json()
    assert (response.status_code, said["code"], said["reason"]) == (code // 100, code, reason)
    assert said["ok"] is False
    assert said["message"]
    assert response.headers["x-request-id"]


async def test_an_answer_comes_in_the_envelope(served: Served) -> None:
    response = await served.client.post("/echo", json={"text": "milk", "unknown": 1})
    said = response.json()
    assert list(said) == ["ok", "code", "message", "data", "ts"]
    assert (said["ok"], said["code"], said["message"]) == (True, 0, "ok")
    assert said["data"] == {"text": "milk", "stars": 0, "price": 0.0}


async def test_every_answer_names_its_request(served: Served) -> None:
    first, second = [await served.client.get(path) for path in ("/me", "/nowhere")]
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    named = await served.client.get("/me", headers={"X-Request-Id": "client.7-a"})
    assert named.headers["x-request-id"] == "client.7-a"
    forged = await served.client.get("/me", headers={"X-Request-Id": 'a" evil="1'})
    assert forged.headers["x-request-id"] != 'a" evil="1'


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"text": 1}', "text"),
        (b'{"text": "a", "stars": "1"}', "stars"),
        (b'{"text": "a", "stars": true}', "stars"),
        (b'{"text": "a", "stars": 9223372036854775808}', "stars"),
        (b'{"text": "a", "stars": -1}', "stars"),
        (b'{"text": "aaaaaaaaaaaaaaaaaaaaa"}', "text"),
        (b"[]", "body"),
        (b"null", "body"),
        (b"{}", "body"),
    ],
)
async def test_a_wrong_field_is_named(served: Served, body: bytes, field: str) -> None:
    response = await served.client.post("/echo", content=body)
    assert_refused(response, 40002, "invalid_field")
    assert response.json()["data"] == {"field": field}


@pytest.mark.parametrize(
    "body",
    [b'{"text": "a', b'{"text": NaN}', b'{"text": "\xff"}', b"[" * 100_000, b'{"price": Infinity}', b"\x00"],
)
async def test_what_is_no_json_is_malformed(served: Served, body: bytes) -> None:
    response = await served.client.post("/echo", content=body)
    assert response.status_code == 400
    assert response.json()["reason"] in ("malformed", "invalid_field")


async def test_a_missing_body_is_a_400(served: Served) -> None:
    assert (await served.client.post("/echo")).status_code == 400


async def test_a_body_over_the_limit_is_a_413(served: Served) -> None:
    response = await served.client.post("/echo", content=b'{"text": "' + b"a" * 1_100_000 + b'"}')
    assert_refused(response, 41300, "too_large")


async def test_paths_and_methods_that_are_not_there(served: Served) -> None:
    assert_refused(await served.client.get("/nowhere"), 40400, "not_found")
    wrong = await served.client.delete("/echo")
    assert_refused(wrong, 40500, "method_not_allowed")
    assert "POST" in wrong.headers["allow"]
    assert (await served.client.get("/number/abc")).status_code in (400, 404)


@pytest.mark.parametrize("path", ["/mistake", "/known-mistake"])
async def test_a_mistake_of_ours_tells_its_id_and_nothing_of_our_insides(served: Served, path: str) -> None:
    response = await served.client.get(path)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "told to nobody" not in response.text
    assert response.json()["data"]["request_id"] == response.headers["x-request-id"]


async def test_the_library_has_its_own_words_for_errors(served: Served) -> None:
    response = await served.client.post("/library/echo", content=b'{"text": 1}')
    said = response.json()
    assert said["success"] is False
    assert said["conflict"] is False
    assert said["code"] == 40002
    assert "text" in said["errorMessage"]
    assert "ok" not in said


async def test_callers_are_known_by_their_token(served: Served) -> None:
    async def get(path: str, token: str | None) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await served.client.get(path, headers=headers)

    assert (await get("/me", "ann")).json()["data"] == "1"
    nobody = await get("/me", None)
    assert_refused(nobody, 40100, "not_logged_in")
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    assert_refused(await get("/me", "forged"), 40101, "invalid_token")
    away = await get("/me", "broken")
    assert_refused(away, 50302, "store_unavailable")
    assert int(away.headers["retry-after"]) >= 1
    assert_refused(await get("/admin", "ann"), 40300, "forbidden")
    assert (await get("/admin", "operator")).json()["data"] == "2"


async def test_requests_are_counted_by_route_and_not_by_path(served: Served) -> None:
    for number in range(3):
        await served.client.get(f"/number/{number}")
    text = served.metrics.exposition().decode()
    assert 'route="/number/{number:int}",method="GET"' in text.replace(", ", ",") or "/number/{" in text
    assert "/number/1" not in text


async def test_connections_and_the_bytes_of_bodies_are_counted(served: Served) -> None:
    def lines() -> dict[str, str]:
        return dict(line.rsplit(" ", 1) for line in served.metrics.exposition().decode().splitlines())

    answered = await served.client.post("/echo", content=b'{"text": "hi", "stars": 3}')
    assert lines()["holdfast_http_connections"] == "1.0"
    async with asyncio.timeout(20):
        # the answer may be here before the handler's task has ended
        while 'holdfast_http_bytes_total{way="out"}' not in lines():  # noqa: ASYNC110 - counts are read
            await asyncio.sleep(0)
    assert lines()['holdfast_http_bytes_total{way="in"}'] == "26.0"
    assert float(lines()['holdfast_http_bytes_total{way="out"}']) == len(answered.content)


async def test_every_route_is_in_the_document_and_the_page_is_served(served: Served) -> None:
    document = (await served.client.get("/openapi/json")).json()
    assert {"/echo", "/me", "/number/{number}"} <= set(document["paths"])
    page = await served.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text  # nothing is loaded from elsewhere
    assert "https://" not in page.text
