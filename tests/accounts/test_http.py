"""`/auth/*` as clients see it: shapes, statuses, headers, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import cast

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from httpx._types import HeaderTypes

from holdfast.accounts import Accounts
from holdfast.accounts import http as accounts_http
from holdfast.clock import ManualClock
from holdfast.http.door import Door
from holdfast.http.idempotency import FIND
from holdfast.http.routes import application
from holdfast.metrics import Metrics
from holdfast.settings import Auth, Http, Limits
from holdfast.store import Database, Snapshot
from tests.accounts.conftest import CHEAP, MIGRATIONS, OpenAccounts, with_settings
from tests.accounts.test_tokens import private_pem
from tests.conftest import OpenStore

ANN = {"username": "ann", "password": "correct horse"}
JsonObject = dict[str, object]


class Client:
    """One device."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def post(
        self, path: str, body: object = None, headers: HeaderTypes | None = None
    ) -> httpx.Response:
        return await self._http.post(path, json=body, headers=headers)

    async def get(self, path: str, headers: HeaderTypes | None = None) -> httpx.Response:
        return await self._http.get(path, headers=headers)

    async def ok(self, path: str, body: object = None, headers: HeaderTypes | None = None) -> JsonObject:
        said = await self.post(path, body, headers)
        assert said.status_code == 200, said.text
        envelope = said.json()
        assert (envelope["ok"], envelope["code"], envelope["message"]) == (True, 0, "ok")
        assert isinstance(envelope["ts"], int)
        return cast("JsonObject", envelope["data"] or {})

    async def refused(
        self, status: int, reason: str, path: str, body: object = None, headers: HeaderTypes | None = None
    ) -> httpx.Response:
        said = await self.post(path, body, headers)
        assert (said.status_code, said.json()["reason"]) == (status, reason), said.text
        assert said.json()["ok"] is False
        assert said.json()["code"] // 100 == status
        return said


def client_of(db: Database, accounts: Accounts, clock: ManualClock) -> Client:
    routes = application([accounts_http.router(accounts, db, clock)], Limits())
    door = Door(routes, accounts.sessions, clock, Metrics(), Http(), Limits())
    transport = httpx.ASGITransport(door)  # type: ignore[arg-type]
    return Client(httpx.AsyncClient(transport=transport, base_url="http://holdfast"))


@pytest.fixture
async def client(open_store: OpenStore, open_accounts: OpenAccounts) -> AsyncIterator[Client]:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        yield client_of(db, accounts, open_accounts.clock)


def fingerprint(view: Snapshot, key: str) -> bytes | None:
    row = view.row(FIND, owner=0, key=key)
    return None if row is None else row[0]


def bearer(login: JsonObject) -> dict[str, str]:
    return {"Authorization": f"Bearer {login['accessToken']}"}


async def test_register_login_and_refresh_answer_in_the_words_of_the_wire(client: Client) -> None:
    registered = await client.ok("/auth/register", ANN)
    login = await client.ok("/auth/login", ANN)
    again = await client.ok("/auth/refresh", {"refreshToken": login["refreshToken"]})
    for answer in (login, again):
        assert set(answer) == {
            "userId", "accessToken", "refreshToken", "accessTokenExpiresInSeconds", "refreshTokenExpiresInSeconds"
        }  # fmt: skip
        assert answer["userId"] == registered["userId"]
        assert (answer["accessTokenExpiresInSeconds"], answer["refreshTokenExpiresInSeconds"]) == (
            1800,
            2592000,
        )
    assert isinstance(login["userId"], str)
    assert login["userId"].isdigit()
    assert registered == {"userId": login["userId"], "username": "ann"}


async def test_verify_says_whose_token_it_is(client: Client, clock: ManualClock) -> None:
    await client.ok("/auth/register", ANN)
    login = await client.ok("/auth/login", ANN)
    clock.advance(800)
    assert await client.ok("/auth/verify", {"accessToken": login["accessToken"]}) == {
        "userId": login["userId"], "username": "ann", "isAdmin": False, "accessTokenExpiresInSeconds": 1000
    }  # fmt: skip
    await client.refused(401, "invalid_token", "/auth/verify", {"accessToken": "x"})
    clock.advance(1000)
    said = await client.refused(401, "token_expired", "/auth/verify", {"accessToken": login["accessToken"]})
    assert said.headers["WWW-Authenticate"].startswith("Bearer")


async def test_logout_takes_the_refresh_token_alone(client: Client) -> None:
    await client.ok("/auth/register", ANN)
    login = await client.ok("/auth/login", ANN)
    for _ in range(2):
        await client.ok("/auth/logout", {"refreshToken": login["refreshToken"]})
    await client.refused(401, "session_invalid", "/auth/refresh", {"refreshToken": login["refreshToken"]})
    await client.refused(401, "invalid_token", "/auth/refresh", {"refreshToken": "never given"})


async def test_logout_all_and_password_need_a_token_and_end_every_session(client: Client) -> None:
    await client.ok("/auth/register", ANN)
    phone, tablet = await client.ok("/auth/login", ANN), await client.ok("/auth/login", ANN)
    await client.refused(401, "not_logged_in", "/auth/logout-all")
    await client.refused(401, "invalid_token", "/auth/logout-all", headers={"Authorization": "Bearer x"})
    await client.ok("/auth/logout-all", headers=bearer(phone))
    for login in (phone, tablet):
        await client.refused(401, "session_invalid", "/auth/logout-all", headers=bearer(login))
        await client.refused(401, "session_invalid", "/auth/verify", {"accessToken": login["accessToken"]})

    login = await client.ok("/auth/login", ANN)
    change = {"currentPassword": "correct horse", "newPassword": "battery staple"}
    await client.refused(401, "not_logged_in", "/auth/password", change)
    wrong = change | {"currentPassword": "wrong"}
    await client.refused(401, "wrong_credentials", "/auth/password", wrong, bearer(login))
    short = change | {"newPassword": "short"}
    said = await client.refused(400, "invalid_field", "/auth/password", short, bearer(login))
    assert said.json()["data"] == {"field": "newPassword"}
    changed = await client.ok("/auth/password", change, bearer(login))
    await client.refused(401, "session_invalid", "/auth/password", change, bearer(login))
    await client.ok("/auth/refresh", {"refreshToken": changed["refreshToken"]})
    await client.refused(401, "wrong_credentials", "/auth/login", ANN)


async def test_wrong_unknown_and_disabled_get_the_same_bytes(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        client = client_of(db, accounts, open_accounts.clock)
        await client.ok("/auth/register", ANN)
        await client.ok("/auth/register", ANN | {"username": "bob"})
        await accounts.set_disabled(await accounts.user_named("bob"), disabled=True)
        said = [
            await client.refused(
                401, "wrong_credentials", "/auth/login", {"username": name, "password": password}
            )
            for name, password in (
                ("ann", "wrong"),
                ("nobody", "wrong"),
                ("bob", ANN["password"]),
                ("b\x00b", "x"),
            )
        ]
        answers = {tuple(sorted((k, str(v)) for k, v in each.json().items() if k != "ts")) for each in said}
        assert len(answers) == 1
        names = {tuple(name for name in each.headers if name != "x-request-id") for each in said}
        assert len(names) == 1


async def test_the_sixth_failure_is_429_with_retry_after_whatever_the_name(client: Client) -> None:
    await client.ok("/auth/register", ANN)
    for name in ("ann", "nobody"):
        for _ in range(5):
            await client.refused(401, "wrong_credentials", "/auth/login", {"username": name, "password": "x"})
        said = await client.refused(
            429, "too_many_logins", "/auth/login", {"username": name, "password": "x"}
        )
        assert said.headers["Retry-After"] == "60"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": "ab", "password": "correct horse"}, "username"),
        ({"username": "12345", "password": "correct horse"}, "username"),
        ({"username": "a\nbc", "password": "correct horse"}, "username"),
        ({"username": "a" * 300, "password": "correct horse"}, "username"),
        ({"username": "ann", "password": "short"}, "password"),
        ({"username": "ann", "password": "x" * 1025}, "password"),
        ({"username": 5, "password": "correct horse"}, "username"),
        ({"username": "ann", "password": None}, "password"),
        ({"username": "ann"}, "body"),
        ([], "body"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_body_that_is_wrong_is_400_and_names_the_field(
    client: Client, body: object, field: str
) -> None:
    said = await client.refused(400, "invalid_field", "/auth/register", body)
    assert said.json()["data"] == {"field": field}


async def test_unknown_fields_are_ignored(client: Client) -> None:
    await client.ok("/auth/register", ANN | {"colour": "green"})


async def test_a_register_sent_twice_with_one_key_is_one_user_also_at_once(client: Client) -> None:
    key = {"Idempotency-Key": "7e3a"}
    said = await asyncio.gather(*[client.ok("/auth/register", ANN, key) for _ in range(4)])
    assert len({str(each) for each in said}) == 1
    await client.refused(409, "name_taken", "/auth/register", ANN)
    await client.refused(
        409, "idempotency_key_reused", "/auth/register", ANN | {"password": "another one"}, key
    )
    await client.refused(409, "idempotency_key_reused", "/auth/register", ANN | {"username": "bob"}, key)


async def test_an_idempotency_key_stores_nothing_that_was_made_from_the_password(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    """Its fingerprint is a plain SHA-256: whoever has the store could try passwords against it by the billion."""
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        client = client_of(db, accounts, open_accounts.clock)
        await client.ok("/auth/register", ANN, {"Idempotency-Key": "1"})
        assert await db.read(fingerprint, "1") == sha256(b"POST /auth/register\nann").digest()


async def test_registration_closed_is_403_whoever_asks(open_store: OpenStore) -> None:
    async with open_store(MIGRATIONS) as db:
        clock = ManualClock()
        accounts = Accounts(db, CHEAP, clock)
        await accounts.start()
        await client_of(db, accounts, clock).refused(403, "registration_closed", "/auth/register", ANN)
        await accounts.stop()


@pytest.mark.parametrize("by_key", [False, True])
async def test_the_public_keys_are_shown_and_the_secret_is_not(
    open_store: OpenStore, open_accounts: OpenAccounts, tmp_path: Path, by_key: bool
) -> None:
    settings: Auth = CHEAP
    if by_key:
        (tmp_path / "key.pem").write_bytes(private_pem(Ed25519PrivateKey.generate()))
        settings = with_settings(private_key_file=str(tmp_path / "key.pem"))
    async with open_store(MIGRATIONS) as db, open_accounts.on(db, settings) as accounts:
        said = await client_of(db, accounts, open_accounts.clock).get("/.well-known/jwks.json")
        assert said.status_code == 200
        shown = said.json()["keys"]
        assert [sorted(key) for key in shown] == [["alg", "crv", "kid", "kty", "use", "x"]] * by_key
        assert "max-age" in said.headers["Cache-Control"]
