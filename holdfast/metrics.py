"""Metrics in Prometheus' format: one registry per running server, filled by the rooms.

Rooms count on hot paths, so the two kinds here are plain Python numbers that are turned into samples only when
somebody asks. Labels are few and known (a door, a route, a reason): never a user, an id or anything secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
COUNTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

Labels = tuple[str, ...]


class Series:
    """One line of a histogram: its buckets, its sum."""

    __slots__ = ("_bounds", "buckets", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self._bounds, value)] += 1
        self.total += value


class Histogram:
    def __init__(self, name: str, help_text: str, labels: Labels, bounds: tuple[float, ...]) -> None:
        self._name, self._help, self._labels, self._bounds = name, help_text, labels, bounds
        self._series: dict[Labels, Series] = {}

    def series(self, *values: str) -> Series:
        """The line with these label values, to be kept by whoever observes often."""
        found = self._series.get(values)
        if found is None:
            found = self._series[values] = Series(self._bounds)
        return found

    def collect(self) -> Metric:
        family = HistogramMetricFamily(self._name, self._help, labels=self._labels)
        for values, line in list(self._series.items()):
            running, buckets = 0, []
            for bound, count in zip((*map(str, self._bounds), "+Inf"), line.buckets, strict=True):
                running += count
                buckets.append((bound, running))
            family.add_metric(values, buckets, line.total)
        return family


class Counter:
    def __init__(self, name: str, help_text: str, labels: Labels) -> None:
        self._name, self._help, self._labels = name, help_text, labels
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1) -> None:
        self._values[values] = self._values.get(values, 0.0) + amount

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def collect(self) -> Metric:
        family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        for values, number in list(self._values.items()):
            family.add_metric(values, number)
        return family


class Gauge:
    """A number that is read when somebody asks."""

    def __init__(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self._name, self._help, self._read = name, help_text, read

    def collect(self) -> Metric:
        return GaugeMetricFamily(self._name, self._help, value=self._read())


class Tally(Gauge):
    """A number that only grows and is counted elsewhere, read when somebody asks."""

    def collect(self) -> Metric:
        return CounterMetricFamily(self._name, self._help, value=self._read())


class Metrics(Collector):
    def __init__(self) -> None:
        self._kept: dict[str, Histogram | Counter | Gauge] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def histogram(
        self, name: str, help_text: str, *labels: str, bounds: tuple[float, ...] = SECONDS
    ) -> Histogram:
        made = Histogram(name, help_text, labels, bounds)
        self._keep(name, made)
        return made

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        made = Counter(name, help_text, labels)
        self._keep(name, made)
        return made

    def gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self._keep(name, Gauge(name, help_text, read))

    def tally(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self._keep(name, Tally(name, help_text, read))

    def _keep(self, name: str, metric: Histogram | Counter | Gauge) -> None:
        if name in self._kept:
            raise ValueError(f"the metric {name} is there already")
        self._kept[name] = metric

    def collect(self) -> Iterator[Metric]:
        for metric in self._kept.values():
            yield metric.collect()

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
