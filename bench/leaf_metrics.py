"""What a leaf exports on /metrics, as far as benchmarks of a leaf read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

LAG: str = "hedgerow_leaf_loop_lag_seconds"
SERVICE: str = "hedgerow_leaf_service_seconds"
WASTED: str = "hedgerow_leaf_wasted_seconds"


@dataclass(frozen=True, slots=True)
class LeafMetrics:
    """Work done, work done in vain, and how late the event loop was: since the leaf's start, or
    within a span (`since`). ``lag`` counts by the upper bound of the bucket, in seconds.
    """

    service_s: float = 0.0
    wasted_s: float = 0.0
    lag: Counter[float] = field(default_factory=Counter)

    def since(self, before: LeafMetrics) -> LeafMetrics:
        """Return what has been added after ``before``."""
        return LeafMetrics(
            self.service_s - before.service_s,
            self.wasted_s - before.wasted_s,
            self.lag - before.lag,
        )

    def __add__(self, other: LeafMetrics) -> LeafMetrics:
        return LeafMetrics(
            self.service_s + other.service_s, self.wasted_s + other.wasted_s, self.lag + other.lag
        )

    def loop_lag_ms(self, percentile: float) -> float:
        """Return what the lag did not exceed: the bound of a bucket, so up to twice too much."""
        left = self.lag.total() * (1 - percentile / 100)
        for bound_s in sorted(self.lag, reverse=True):
            left -= self.lag[bound_s]
            if left < 0:
                return bound_s * 1e3
        return 0.0


async def read_leaf(url: str) -> LeafMetrics:
    """Ask a leaf for its metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        return parse_leaf(await response.text())


def parse_leaf(text: str) -> LeafMetrics:
    """Return what stands in a leaf's metrics."""
    lag: Counter[float] = Counter()
    service_s = wasted_s = 0.0
    for family in text_string_to_metric_families(text):
        below = 0.0
        for sample in family.samples:
            if sample.name == f"{LAG}_bucket":
                lag[float(sample.labels["le"])] = int(sample.value - below)
                below = sample.value
            elif sample.name == f"{SERVICE}_sum":
                service_s = sample.value
            elif sample.name == f"{WASTED}_total":
                wasted_s = sample.value
    return LeafMetrics(service_s, wasted_s, +lag)
