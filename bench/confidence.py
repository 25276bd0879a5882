"""How sure a percentile is: confidence intervals from order statistics.

Of n independent values, the number that lie below the true q-quantile is binomial (n, q),
whatever their distribution. So the order statistics between which its middle 95 % fall
enclose the quantile with at least that probability (H. A. David, H. N. Nagaraja, Order
Statistics, 3rd ed., section 7.1). Values that follow each other closely in time are not
independent, and their interval is then too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

LEVEL: Final = 0.95
"""How sure."""

REACH: Final = 10.0
"""Standard deviations from the mean past which a binomial is as good as zero."""

Curve = Sequence[tuple[float, float]]
"""A distribution as (percentile, value), both ascending."""

STEPS_A_DECADE: Final = 40
"""Points of a curve between the 90th and the 99th percentile, and so on: smooth in a plot."""


class Estimate(msgspec.Struct, frozen=True):
    """A percentile of what was measured, and between which values the true one lies.

    ``high`` is None where too few values were measured to say how high it may be.
    """

    value: float
    low: float
    high: float | None

    def times(self, factor: float) -> Estimate:
        """The same in another unit."""
        high = None if self.high is None else self.high * factor
        return Estimate(self.value * factor, self.low * factor, high)

    def __str__(self) -> str:
        high = "" if self.high is None else f"{self.high:.3g}"
        return f"{self.value:.3g} ({self.low:.3g}-{high})"


def rank(count: int, percentile: float) -> int:
    """Which of ``count`` values in order, from 1, so many per cent do not exceed."""
    return min(count, max(1, math.ceil(count * percentile / 100.0 - 1e-9)))


@lru_cache(maxsize=1000)
def ranks(count: int, percentile: float, level: float = LEVEL) -> tuple[int, int | None]:
    """Which of ``count`` values in order, from 1, enclose a percentile.

    The lower one is 1 where there are too few to say more, for latencies are never below what
    was the least; the upper one is then None.
    """
    if count < 1 or not 0.0 < percentile < 100.0 or not 0.0 < level < 1.0:
        raise ValueError(f"no such interval: {count} values, p{percentile:g}, level {level:g}")
    tail = (1.0 - level) / 2.0
    low, high = 0, count + 1
    for below, share in _cumulative(count, percentile / 100.0):
        if share <= tail:
            low = below + 1
        if share >= 1.0 - tail:
            high = below + 1
            break
    return max(low, 1), high if high <= count else None


def _cumulative(count: int, q: float) -> Sequence[tuple[int, float]]:
    """The binomial's distribution function where it is neither 0 nor 1: (k, P(at most k))."""
    mean, deviation = count * q, math.sqrt(count * q * (1.0 - q))
    first = max(0, math.floor(mean - REACH * deviation - REACH))
    last = min(count, math.ceil(mean + REACH * deviation + REACH))
    log_share = (
        (math.lgamma(count + 1) - math.lgamma(first + 1) - math.lgamma(count - first + 1))
        + first * math.log(q)
        + (count - first) * math.log1p(-q)
    )
    odds = q / (1.0 - q)
    share = math.exp(log_share)
    found, total = [], 0.0
    for k in range(first, last + 1):
        total += share
        found.append((k, total))
        share *= (count - k) / (k + 1) * odds
    return found


def estimate(values: Sequence[float], percentile: float, *, ordered: bool = False) -> Estimate:
    """A percentile of values with its interval; ``ordered`` where they ascend already."""
    in_order = values if ordered else sorted(values)
    low, high = ranks(len(in_order), percentile)
    return Estimate(
        in_order[rank(len(in_order), percentile) - 1],
        in_order[low - 1],
        None if high is None else in_order[high - 1],
    )


Z: Final = 1.959964
"""How many standard deviations enclose the middle LEVEL of a normal law."""


def share(count: int, of: int) -> Estimate:
    """A share of independent trials with its interval by E. B. Wilson (JASA 22, 1927)."""
    if not 0 <= count <= of or of < 1:
        raise ValueError(f"no such share: {count} of {of}")
    p = count / of
    middle = (p + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z / (1 + Z * Z / of) * math.sqrt(p * (1 - p) / of + Z * Z / (4 * of * of))
    return Estimate(p, max(0.0, middle - half), min(1.0, middle + half))


def tail_percentiles(count: int) -> list[float]:
    """The percentiles that so many values can tell, evenly spaced on a tail axis:
    from the least to the last but one, 90 as far from 99 as 99 from 99.9.
    """
    if count < 1:
        return []
    last = math.log10(count)
    steps = range(math.floor(last * STEPS_A_DECADE) + 1)
    return [100.0 * (1.0 - 10.0 ** (-step / STEPS_A_DECADE)) for step in steps]


def curve(values: Sequence[float]) -> Curve:
    """The distribution of values, for a plot."""
    in_order = sorted(values)
    count = len(in_order)
    return [(p, in_order[rank(count, p) - 1]) for p in tail_percentiles(count)]
