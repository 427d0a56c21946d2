"""How many requests a minute, and of whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.addresses import neighbourhood
from holdfast.clock import ManualClock
from holdfast.errors import TooManyRequests
from holdfast.http import rate
from holdfast.http.rate import RateLimit
from holdfast.settings import Http, Limits
from tests.http.conftest import serving


def test_a_minute_gives_as_many_requests_as_it_says_and_refills_evenly() -> None:
    clock = ManualClock()
    limit = RateLimit(60, clock)
    for _ in range(60):
        limit.spend("ann")
    with pytest.raises(TooManyRequests) as refused:
        limit.spend("ann")
    assert refused.value.retry_after == pytest.approx(1.0)
    limit.spend("bob")
    clock.advance(1.0)
    limit.spend("ann")
    with pytest.raises(TooManyRequests):
        limit.spend("ann")


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 20)), max_size=300), st.integers(1, 30))
def test_nobody_gets_more_than_the_bucket_and_its_refill(
    steps: list[tuple[int, float]], per_minute: int
) -> None:
    clock = ManualClock()
    limit = RateLimit(per_minute, clock)
    granted: dict[int, int] = {}
    for who, wait in steps:
        clock.advance(wait)
        waits = []
        try:
            limit.spend(who)
            granted[who] = granted.get(who, 0) + 1
        except TooManyRequests as error:
            waits.append(error.retry_after or 0)
        assert all(0 < wait <= 60 / per_minute + 0.001 for wait in waits)
    for count in granted.values():
        assert count <= per_minute + clock.monotonic() * per_minute / 60 + 1


def test_the_number_of_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "MOST_BUCKETS", 100)
    limit = RateLimit(10, ManualClock())
    for who in range(10_000):
        limit.spend(who)
    assert len(limit._buckets) <= 100


async def test_users_have_their_own_limits_and_the_library_a_lower_one() -> None:
    async with serving(limits=Limits(requests=5, library_requests=2, anonymous_requests=3)) as served:

        async def get(path: str, token: str = "") -> int:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            return (await served.client.get(path, headers=headers)).status_code

        assert [await get("/me", "ann") for _ in range(6)] == [200] * 5 + [429]
        assert await get("/me", "operator") == 200
        assert [await get("/library/echo", "ann") for _ in range(3)] == [405, 405, 429]
        assert [await get("/address") for _ in range(4)] == [200, 200, 200, 429]
        refused = await served.client.get("/address")
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["reason"] == "too_many_requests"


async def test_a_forwarded_address_counts_only_behind_a_proxy_that_is_trusted() -> None:
    forwarded = {"X-Forwarded-For": "198.51.100.9, 203.0.113.7"}
    async with serving() as served:
        assert (await served.client.get("/address", headers=forwarded)).json()["data"] == "127.0.0.1"
    async with serving(Http(trust_proxy=True)) as served:
        assert (await served.client.get("/address", headers=forwarded)).json()["data"] == "203.0.113.7"


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("no address", "no address"),
    ],
)
def test_an_ipv6_client_is_counted_by_its_network(address: str, counted: str) -> None:
    assert neighbourhood(address) == counted
