"""Our plain numbers come out as Prometheus reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from holdfast.metrics import SECONDS, Metrics
from holdfast.store.metrics import StoreMetrics


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


@given(st.lists(st.floats(min_value=0, max_value=100, allow_nan=False)))
def test_a_histogram_counts_each_value_once_and_in_every_bucket_above_it(values: list[float]) -> None:
    metrics = Metrics()
    series = metrics.histogram("wait_seconds", "Waits", "door").series("http")
    for value in values:
        series.observe(value)
    found = samples(metrics)
    for bound in SECONDS:
        expected = sum(value <= bound for value in values)
        assert found["wait_seconds_bucket", (("door", "http"), ("le", str(bound)))] == expected
    assert found["wait_seconds_bucket", (("door", "http"), ("le", "+Inf"))] == len(values)
    assert found["wait_seconds_count", (("door", "http"),)] == len(values)
    assert found["wait_seconds_sum", (("door", "http"),)] == pytest.approx(sum(values))


@given(st.text(max_size=30))
def test_labels_come_back_as_they_were_given(text: str) -> None:
    metrics = Metrics()
    metrics.counter("requests", "Requests", "route").add(text, amount=3)
    assert samples(metrics)["requests_total", (("route", text),)] == 3


def test_a_counter_without_labels_is_there_from_the_start() -> None:
    metrics = Metrics()
    counter = metrics.counter("commits", "Commits")
    assert samples(metrics)["commits_total", ()] == 0
    counter.add()
    assert counter.value() == 1


def test_a_gauge_is_read_when_somebody_asks() -> None:
    metrics, waiting = Metrics(), [0]
    metrics.gauge("waiting", "Waiting", lambda: waiting[0])
    waiting[0] = 5
    assert samples(metrics)["waiting", ()] == 5


def test_a_name_is_given_once() -> None:
    metrics = Metrics()
    metrics.counter("commits", "Commits")
    with pytest.raises(ValueError, match="commits"):
        metrics.gauge("commits", "Commits again", lambda: 0)


def test_the_stores_own_numbers() -> None:
    metrics = Metrics()
    store = StoreMetrics(metrics)
    store.committed(2, 20, 0.004)
    store.waiting(7)
    store.wal(4096)
    found = samples(metrics)
    assert found["holdfast_store_commits_total", ()] == store.commits == 2
    assert found["holdfast_store_commands_total", ()] == 20
    assert found["holdfast_store_waiting", ()] == 7
    assert found["holdfast_store_wal_bytes", ()] == 4096
    assert found["holdfast_store_group_commands_sum", ()] == 10
