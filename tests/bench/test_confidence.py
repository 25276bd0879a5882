"""Confidence intervals of percentiles, against what is known of them."""

from __future__ import annotations

import math
import random

import pytest

from bench import confidence
from bench.confidence import Estimate, curve, estimate, rank, ranks, share, tail_percentiles


@pytest.mark.parametrize(
    ("count", "percentile", "expected"),
    [
        (10, 50.0, (2, 9)),  # tabulated: David and Nagaraja; Conover, table A3
        (100, 50.0, (40, 61)),
        (20, 50.0, (6, 15)),
        (100, 99.0, (97, None)),
        (1, 50.0, (1, None)),
    ],
)
def test_the_ranks_are_those_of_tables(
    count: int, percentile: float, expected: tuple[int, int | None]
) -> None:
    """The middle 95 % of the binomial, one rank further up; open where that ends past the last."""
    assert ranks(count, percentile) == expected


@pytest.mark.parametrize(("count", "percentile"), [(50, 50.0), (200, 95.0), (2000, 99.0)])
def test_an_interval_covers_the_true_percentile_as_often_as_it_says(
    count: int, percentile: float
) -> None:
    """Of many samples of a known law, nearly 95 % or more have the truth inside."""
    rng = random.Random(1)
    truth = -math.log(1.0 - percentile / 100.0)
    inside = 0
    for _ in range(300):
        one = estimate([rng.expovariate(1.0) for _ in range(count)], percentile)
        inside += one.low <= truth and (one.high is None or truth <= one.high)
    assert inside / 300 >= 0.92


def test_more_values_say_more() -> None:
    """A hundred times as many values give an interval about ten times as narrow."""
    low, high = ranks(1_000, 95.0)
    many_low, many_high = ranks(100_000, 95.0)
    assert high is not None
    assert many_high is not None
    assert (high - low) / 1_000 == pytest.approx(10 * (many_high - many_low) / 100_000, rel=0.1)


def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed() -> None:
    """Of 1 to 1000 the 99th percentile is 990, and its interval lies around it."""
    one = estimate(list(range(1000, 0, -1)), 99.0)
    assert one.value == 990
    assert one.low < 990 < (one.high or 0)
    assert estimate(range(1, 1001), 99.0, ordered=True) == one
    assert [rank(1000, p) for p in (0.01, 50.0, 99.9)] == [1, 500, 999]


def test_an_estimate_reads_as_a_sentence() -> None:
    """The value, and from where to where; open where that is not known."""
    assert str(Estimate(12.0, 11.0, 13.5)) == "12 (11-13.5)"
    assert str(Estimate(12.0, 11.0, None).times(1000.0)) == "1.2e+04 (1.1e+04-)"
    assert Estimate(1.0, 0.5, 2.0).times(10.0) == Estimate(10.0, 5.0, 20.0)


@pytest.mark.parametrize(
    ("count", "percentile", "level"), [(0, 50, 0.95), (9, 100, 0.95), (9, 50, 1)]
)
def test_an_interval_of_nothing_is_refused(count: int, percentile: float, level: float) -> None:
    """No values, a percentile that is none, a certainty that cannot be had."""
    with pytest.raises(ValueError, match="no such interval"):
        ranks(count, percentile, level)


def test_a_share_has_an_interval_inside_0_and_1() -> None:
    """Wilson's: also for none of some, and all of them."""
    none, half, every = share(0, 100), share(50, 100), share(100, 100)
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    assert none.high == pytest.approx(0.037, abs=0.0005)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=0.0005)
    with pytest.raises(ValueError, match="no such share"):
        share(2, 1)


def test_a_curve_ascends_to_the_last_value_but_one() -> None:
    """Every step of the tail axis has its value; no values, no curve."""
    points = curve(list(range(1, 10_001)))
    assert points[0] == (0.0, 1)
    assert dict(points)[99.0] == 9900
    assert points[-1][0] == pytest.approx(99.99)
    assert list(points) == sorted(points)
    assert curve([]) == []
    assert len(tail_percentiles(1000)) == 3 * confidence.STEPS_A_DECADE + 1
