"""What a run measured: latencies in a histogram that keeps its tail, and every fate counted.

A request that failed or came back incomplete is in the histogram too: somebody waited.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal, Protocol

import msgspec
from hdrh.histogram import HdrHistogram

from bench import confidence
from bench.confidence import Curve, Estimate

Fate = Literal["complete", "partial", "timeout", "refused", "error"]
"""complete: every shard answered; partial: some did not; refused: told to come back later."""

VALUE_US_MAX: Final = 600 * 1_000_000
"""Ten minutes: no run waits longer for one answer. Slower ones count as this."""

SIGNIFICANT_DIGITS: Final = 3
"""A percentile is off by a thousandth at most, far below the noise of a run."""

LAG_MS_MAX: Final = 2.0
"""A generator that is later than this with one request in a hundred measures itself."""

PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in figures. Latencies in milliseconds; ``intervals_ms`` has the confidence interval
    of each percentile as ``p99.9``: (low, high), high None where there were too few requests.

    ``lag_ms_p99`` is the generator's own lateness. A run in which it fell behind is not
    ``valid``: then the latencies are not those of the system.
    """

    requests: int
    unsent: int
    fates: dict[str, int]
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    p99_9_ms: float = msgspec.field(name="p99.9_ms")
    max_ms: float
    intervals_ms: dict[str, tuple[float, float | None]]
    lag_ms_p99: float
    valid: bool


class Recorder:
    """Collects one run; of constant size however long it is."""

    def __init__(self) -> None:
        self._latency = HdrHistogram(1, VALUE_US_MAX, SIGNIFICANT_DIGITS)
        self._lag = HdrHistogram(1, VALUE_US_MAX, SIGNIFICANT_DIGITS)
        self._fates: Counter[Fate] = Counter()
        self._unsent = 0

    def at(self, _offset_s: float) -> Recorder:
        """Itself: a run without phases has one recorder throughout."""
        return self

    def record(self, fate: Fate, latency_s: float) -> None:
        """A request ended so, ``latency_s`` after it was meant to be sent."""
        self._fates[fate] += 1
        self._latency.record_value(_us(latency_s))

    def record_lag(self, lag_s: float) -> None:
        """The generator sent a request this much later than it was meant to."""
        self._lag.record_value(_us(lag_s))

    def record_unsent(self) -> None:
        """A request was not sent, because too many were under way."""
        self._unsent += 1

    def add(self, other: Recorder) -> None:
        """Take in what another one has recorded."""
        self._latency.add(other._latency)
        self._lag.add(other._lag)
        self._fates.update(other._fates)
        self._unsent += other._unsent

    def latency_ms(self, percentile: float) -> float:
        """Latency in milliseconds at a percentile between 0 and 100; 0 without requests."""
        return float(self._latency.get_value_at_percentile(percentile)) / 1000

    def mean_ms(self) -> float:
        """Mean latency in milliseconds; 0 without requests."""
        return float(self._latency.get_mean_value()) / 1000 if self._fates else 0.0

    def estimate_ms(self, percentile: float) -> Estimate:
        """Latency in milliseconds at a percentile below 100, with its confidence interval.

        Raises ValueError where no request has ended yet.
        """
        count = self._fates.total()
        low, high = confidence.ranks(count, percentile)
        return Estimate(
            self.latency_ms(percentile),
            self._at_rank_ms(low),
            None if high is None else self._at_rank_ms(high),
        )

    def curve_ms(self) -> Curve:
        """The distribution, for a plot."""
        percentiles = confidence.tail_percentiles(self._fates.total())
        return [(p, self.latency_ms(p)) for p in percentiles]

    def _at_rank_ms(self, rank: int) -> float:
        return self.latency_ms(100.0 * rank / self._fates.total())

    def summary(self) -> Summary:
        """The run so far, in figures."""
        lag_ms = float(self._lag.get_value_at_percentile(99)) / 1000
        requests = self._fates.total()
        estimates = {f"p{p:g}": self.estimate_ms(p) for p in PERCENTILES if requests}
        return Summary(
            requests=requests,
            unsent=self._unsent,
            fates=dict(sorted(self._fates.items())),
            p50_ms=self.latency_ms(50),
            p90_ms=self.latency_ms(90),
            p95_ms=self.latency_ms(95),
            p99_ms=self.latency_ms(99),
            p99_9_ms=self.latency_ms(99.9),
            max_ms=self.latency_ms(100),
            intervals_ms={name: (one.low, one.high) for name, one in estimates.items()},
            lag_ms_p99=lag_ms,
            valid=lag_ms < LAG_MS_MAX,
        )


class Recording(Protocol):
    """Which recorder a request belongs to, by its intended send time in seconds."""

    def at(self, offset_s: float, /) -> Recorder:
        """Return the recorder for a request sent ``offset_s`` after the start of the run."""


class Phases:
    """A run in parts: ``names`` and when each begins, in seconds, ascending from 0."""

    def __init__(self, begins_s: Mapping[str, float]) -> None:
        """``begins_s`` gives each phase's begin, the first at 0."""
        self._names = list(begins_s)
        self._begins_s = list(begins_s.values())
        if not self._begins_s or self._begins_s[0] != 0 or sorted(self._begins_s) != self._begins_s:
            raise ValueError(f"phases must begin at 0 and ascend: {self._begins_s}")
        self.recorders = {name: Recorder() for name in self._names}

    def at(self, offset_s: float, /) -> Recorder:
        """Return the recorder of the phase in which ``offset_s`` lies."""
        return self.recorders[self._names[bisect_right(self._begins_s, offset_s) - 1]]


def _us(value_s: float) -> int:
    """Microseconds the histogram takes: at least 1, at most VALUE_US_MAX."""
    return min(max(round(value_s * 1e6), 1), VALUE_US_MAX)
