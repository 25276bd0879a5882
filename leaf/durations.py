"""Durations counted in buckets of powers of two microseconds, in plain integers."""

from __future__ import annotations

from typing import Final, TypedDict

BUCKETS: Final = 25
"""Exported histogram buckets: bucket i ends at 2**i µs, so the last but one at 8 s."""

LARGEST_US: Final = 2**62
"""No duration is longer: a hundred thousand years."""


class Exported(TypedDict):
    """A histogram as HistogramMetricFamily takes it: buckets are (upper bound, count up to it)."""

    buckets: list[tuple[str, float]]
    sum_value: float


class Histogram:
    """Durations in buckets: finding one is a ``bit_length``, and no lock is taken."""

    __slots__ = ("counts", "sum_us")

    def __init__(self) -> None:
        self.counts = [0] * (LARGEST_US.bit_length() + 1)
        self.sum_us = 0

    def add(self, took_us: int) -> None:
        """Count one duration in whole microseconds, 0 or more."""
        self.counts[took_us.bit_length()] += 1
        self.sum_us += took_us

    def exported(self) -> Exported:
        """Return it in the form that Prometheus wants: seconds, counts cumulated."""
        return {"buckets": self._buckets(), "sum_value": self.sum_us / 1e6}

    def _buckets(self) -> list[tuple[str, float]]:
        cumulated: list[tuple[str, float]] = []
        count = 0
        for exponent in range(BUCKETS - 1):
            count += self.counts[exponent]
            cumulated.append((f"{2**exponent / 1e6:g}", float(count)))
        cumulated.append(("+Inf", float(sum(self.counts))))
        return cumulated
