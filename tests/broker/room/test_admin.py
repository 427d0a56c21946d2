"""`/admin/broker/…`: what an administrator sees and does, and that nobody else does."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import Reason
from holdfast.settings import Broker
from tests.broker.room.conftest import Home, OpenHome

ROUTES = [
    ("GET", ""),
    ("GET", "/sessions"),
    ("GET", "/session"),
    ("DELETE", "/session"),
    ("POST", "/kick"),
    ("GET", "/subscriptions"),
    ("GET", "/retained"),
    ("DELETE", "/retained"),
    ("GET", "/queue"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_route_is_an_administrators(home: Home, method: str, path: str) -> None:
    ann = await home.user("ann")
    query = {"client_id": "c1", "topic": "t"}
    assert (await home.asks(None, method, path, **query)).status_code == 401
    assert (await home.asks(ann, method, path, **query)).status_code == 403


async def test_sessions_are_told_in_pages(home: Home) -> None:
    root, ann = await home.user("root", is_admin=True), await home.user("ann")
    for number in range(5):
        client = await home.client(ann, f"c{number}", clean=False, session_expiry=3600)
        await client.subscribed(f"user/{ann.id}/{number}", f"user/{ann.id}/all", qos=1)
        if number:
            await client.leave(session_expiry=3600)
    page = (await home.asks(root, "GET", "/sessions", limit=2)).json()["data"]
    assert [one["client_id"] for one in page["items"]] == ["c0", "c1"]
    assert page["next"] == "c1"
    last = (await home.asks(root, "GET", "/sessions", after="c3", limit=2)).json()["data"]
    assert ([one["client_id"] for one in last["items"]], last["next"]) == (["c4"], None)
    here, away = page["items"]
    assert (here["connected"], here["address"], here["user"]) == (True, "127.0.0.1", str(ann.id))
    assert (here["expires_ms"], here["subscriptions"], here["version"]) == (None, 2, 5)
    assert (away["connected"], away["address"]) == (False, None)
    assert away["expires_ms"] == away["since_ms"] + 3_600_000
    subscriptions = (await home.asks(root, "GET", "/subscriptions", limit=3)).json()["data"]
    assert [one["client_id"] for one in subscriptions["items"]] == ["c0", "c0", "c1", "c1"]
    rest = (await home.asks(root, "GET", "/subscriptions", after=subscriptions["next"])).json()["data"]
    assert [one["client_id"] for one in rest["items"]] == ["c2", "c2", "c3", "c3", "c4", "c4"]
    assert rest["next"] is None


async def test_a_session_is_looked_at_kicked_and_deleted(home: Home) -> None:
    root, ann = await home.user("root", is_admin=True), await home.user("ann")
    name = "a/b?c=ü&%00"
    client = await home.client(ann, name, clean=False, session_expiry=3600)
    await client.subscribed(f"user/{ann.id}/x", qos=1)
    assert (await home.asks(root, "GET", "/session", client_id=name)).json()["data"]["connected"] is True
    assert (await home.asks(root, "POST", "/kick", client_id=name)).status_code == 200
    await client.expect_end(Reason.ADMINISTRATIVE_ACTION)
    assert (await home.asks(root, "POST", "/kick", client_id=name)).status_code == 404
    for number in range(3):
        home.app.broker.tell([f"user/{ann.id}/x"], f"{number}".encode())
    queue = (await home.asks(root, "GET", "/queue", client_id=name, limit=2)).json()["data"]
    assert [(one["topic"], one["size"], one["qos"], one["state"]) for one in queue["items"]] == [
        (f"user/{ann.id}/x", 1, 1, "queued")
    ] * 2
    assert queue["next"] is not None
    assert "payload" not in queue["items"][0]
    assert (await home.asks(root, "DELETE", "/session", client_id=name)).status_code == 200
    for method, path in (("GET", "/session"), ("DELETE", "/session"), ("GET", "/queue")):
        assert (await home.asks(root, method, path, client_id=name)).status_code == 404
    again = await home.client(ann, name, clean=False)
    assert not again.connack.session_present


async def test_retained_messages_are_listed_and_cleared(home: Home) -> None:
    root, ann = await home.user("root", is_admin=True), await home.user("ann")
    client = await home.client(ann, "phone")
    for number in range(3):
        await client.publish(f"user/{ann.id}/{number}", b"kept", 1, retain=True)
    found = (await home.asks(root, "GET", "/retained", filter=f"user/{ann.id}/+", limit=2)).json()["data"]
    assert len(found["items"]) == 2
    assert found["next"] is not None
    assert {one["size"] for one in found["items"]} == {4}
    topic = f"user/{ann.id}/1"
    assert (await home.asks(root, "DELETE", "/retained", topic=topic)).status_code == 200
    assert (await home.asks(root, "DELETE", "/retained", topic=topic)).status_code == 404
    left = (await home.asks(root, "GET", "/retained")).json()["data"]["items"]
    assert {one["topic"] for one in left} == {f"user/{ann.id}/0", f"user/{ann.id}/2"}


async def test_the_overview_counts(open_home: OpenHome) -> None:
    async with open_home(broker=Broker(sys_interval=0)) as home:
        root, ann = await home.user("root", is_admin=True), await home.user("ann")
        client = await home.client(ann, "phone")
        await client.publish(f"user/{ann.id}/x", b"kept", 1, retain=True)
        told = (await home.asks(root, "GET", "")).json()["data"]
        assert (told["connected"], told["sessions"], told["retained"]) == (1, 1, 1)
        assert told["messages_received"] == 1
        metrics = (await home.http.get("/metrics")).text
        assert "holdfast_broker_connections 1.0" in metrics
        assert "holdfast_mqtt_connections 1.0" in metrics


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/sessions", {"limit": 0}),
        ("GET", "/sessions", {"limit": 10_001}),
        ("GET", "/sessions", {"limit": "many"}),
        ("GET", "/session", {}),
        ("GET", "/session", {"client_id": ""}),
        ("GET", "/retained", {"filter": "a/#/b"}),
        ("DELETE", "/retained", {}),
        ("GET", "/queue", {"client_id": "x", "limit": -1}),
    ],
)
async def test_a_wrong_question_is_a_400(
    home: Home, method: str, path: str, query: dict[str, object]
) -> None:
    root = await home.user("root", is_admin=True)
    answered = await home.asks(root, method, path, **query)
    assert answered.status_code == 400, answered.text


async def test_administrators_read_sys_and_others_do_not(home: Home) -> None:
    root, ann = await home.user("root", is_admin=True), await home.user("ann")
    admin = await home.client(root, "console")
    await admin.subscribed("$SYS/broker/version")
    await admin.receive("$SYS/broker/version", b"holdfast version 0.1.0", retain=True)
    client = await home.client(ann, "phone")
    assert await client.subscribe("$SYS/broker/version") == (Reason.NOT_AUTHORIZED,)
    assert await admin.publish("$SYS/broker/version", b"x", 1) == Reason.NOT_AUTHORIZED
