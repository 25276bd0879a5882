"""The estimator of attempt times: right within a bin, honest about losers, forgetful."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.hedging import MIN_SAMPLES
from root.latency import (
    BIN_GROWTH,
    BINS,
    EDGES_S,
    IDLE_S,
    LARGEST_S,
    REFRESH_S,
    SMALLEST_S,
    WINDOW_S,
    WINDOW_SAMPLES_MIN,
    WINDOWS,
    Latency,
)

Sample = tuple[float, bool]
"""Seconds, and whether the attempt was answered then (or given up)."""

GRID_S = [1e-4 * 1.1**i for i in range(100)]
"""Times that never share a bin, from 0.1 ms to 1.3 s."""


def recorded(samples: list[Sample]) -> Latency:
    latency = Latency(0.0)
    for seconds, answered in samples:
        (latency.finished if answered else latency.at_least)(seconds)
    return latency


def product_limit(samples: list[Sample]) -> list[tuple[float, float]]:
    """(share finished, seconds) by the textbook, from raw samples."""
    surviving, curve = 1.0, []
    for at_s in sorted({seconds for seconds, answered in samples if answered}):
        at_risk = sum(seconds >= at_s for seconds, _ in samples)
        died = sum(seconds == at_s and answered for seconds, answered in samples)
        surviving *= 1.0 - died / at_risk
        curve.append((1.0 - surviving, at_s))
    return curve


def within_a_bin(estimate: float | None, true_s: float) -> bool:
    return estimate is not None and true_s * 0.999999 <= estimate <= true_s * BIN_GROWTH * 1.000001


@given(
    samples=st.lists(st.tuples(st.sampled_from(GRID_S), st.booleans()), min_size=1, max_size=80),
    q=st.floats(0.01, 0.99),
)
def test_quantiles_are_those_of_kaplan_and_meier(samples: list[Sample], q: float) -> None:
    """With any mixture of finished and given-up attempts, within the width of a bin."""
    curve = product_limit(samples)
    estimate = recorded(samples).quantile(q)
    if not curve:
        assert estimate is None
        return
    reached = [seconds for share, seconds in curve if share >= q - 1e-9]
    surely = [seconds for share, seconds in curve if share >= q + 1e-9]
    longest_s = curve[-1][1]
    candidates = {reached[0] if reached else longest_s, surely[0] if surely else longest_s}
    assert any(within_a_bin(estimate, true_s) for true_s in candidates)


@given(times=st.lists(st.floats(2e-5, 4000.0), min_size=1, max_size=60), data=st.data())
def test_without_losers_it_is_the_plain_quantile(times: list[float], data: st.DataObject) -> None:
    """The (r + 1/2)/n quantile of n finished attempts is the r-th smallest time."""
    rank = data.draw(st.integers(0, len(times) - 1))
    latency = recorded([(seconds, True) for seconds in times])
    assert within_a_bin(latency.quantile((rank + 0.5) / len(times)), sorted(times)[rank])


def test_without_a_history_there_is_no_quantile() -> None:
    """Nothing recorded, or nothing but given-up attempts, gives None, not a guess."""
    latency = Latency(0.0)
    assert latency.quantile(0.5) is None
    latency.at_least(1.0)
    assert latency.samples == 1
    assert latency.quantile(0.5) is None


def test_a_share_never_seen_to_finish_gives_the_longest_that_was() -> None:
    """Nine of ten were given up: the median is at least the one time that is known."""
    latency = recorded([(0.010, True)] + [(0.020, False)] * 9)
    assert within_a_bin(latency.quantile(0.5), 0.010)


@pytest.mark.parametrize(
    ("seconds", "upper_s"),
    [
        (0.0, EDGES_S[1]),
        (-1.0, EDGES_S[1]),
        (SMALLEST_S, EDGES_S[1]),
        (2 * LARGEST_S, EDGES_S[BINS]),
        (1e300, EDGES_S[BINS]),
    ],
)
def test_times_off_the_scale_fall_into_the_outer_bins(seconds: float, upper_s: float) -> None:
    """No time is too short or too long to be recorded, finished or given up."""
    latency = recorded([(seconds, True), (seconds, False)])
    assert latency.samples == 2
    assert latency.quantile(0.5) == upper_s


# --- why losers are censored samples -----------------------------------------------------

HEDGE_AFTER_S = 0.020


def took_s(random: Random) -> float:
    """A few milliseconds; one attempt in twenty stalls for 80 to 400 ms."""
    base_s = random.lognormvariate(math.log(0.005), 0.4)
    return base_s + (random.uniform(0.08, 0.4) if random.random() < 0.05 else 0.0)


def hedged_legs(count: int) -> tuple[list[float], list[Sample]]:
    """True times of the attempts that were made, and what a root that hedges sees of them."""
    random = Random("hedged legs")
    true: list[float] = []
    seen: list[Sample] = []
    for _ in range(count):
        primary_s, hedge_s = took_s(random), took_s(random)
        true.append(primary_s)
        if primary_s <= HEDGE_AFTER_S:
            seen.append((primary_s, True))
        elif HEDGE_AFTER_S + hedge_s < primary_s:
            seen += [(HEDGE_AFTER_S + hedge_s, False), (hedge_s, True)]
        else:
            seen += [(primary_s, True), (primary_s - HEDGE_AFTER_S, False)]
    return sorted(true), seen


def test_only_censored_losers_leave_the_quantile_where_it_is() -> None:
    """A hedging root sees few slow answers, and still knows how slow its leaves are.

    Leaving the losers out, or recording them at the time they were given up, would put the
    97th percentile at a tenth or a fifth of what it is.
    """
    true, seen = hedged_legs(40_000)
    true_s = true[int(0.97 * len(true))]
    censored = recorded(seen).quantile(0.97)
    left_out = recorded([sample for sample in seen if sample[1]]).quantile(0.97)
    as_finished = recorded([(seconds, True) for seconds, _ in seen]).quantile(0.97)
    assert censored is not None
    assert left_out is not None
    assert as_finished is not None
    assert censored == pytest.approx(true_s, rel=0.2)
    assert left_out < 0.2 * true_s
    assert as_finished < 0.3 * true_s


def test_a_hedged_leg_recorded_at_its_total_pushes_the_quantile_up() -> None:
    """The delay before a hedge is no part of how long the hedge took."""
    random = Random("totals")
    own, totals = Latency(0.0), Latency(0.0)
    for _ in range(10_000):
        own.finished(seconds := took_s(random))
        totals.finished(seconds + (HEDGE_AFTER_S if random.random() < 0.2 else 0.0))
    assert (totals.quantile(0.9) or 0.0) > 2 * (own.quantile(0.9) or math.inf)


# --- windows -----------------------------------------------------------------------------


def test_the_curve_is_fresh_within_a_tenth_of_a_second() -> None:
    """A quantile is cached, and follows what is recorded after the next refresh."""
    latency = recorded([(0.001, True)])
    assert within_a_bin(latency.quantile(0.99), 0.001)
    for _ in range(1000):
        latency.finished(1.0)
    latency.rotate(REFRESH_S / 2)
    assert within_a_bin(latency.quantile(0.99), 0.001)
    latency.rotate(REFRESH_S)
    assert within_a_bin(latency.quantile(0.99), 1.0)


def test_a_bad_spell_is_forgotten_after_the_last_window() -> None:
    """What happened counts for WINDOWS windows and then not at all."""
    latency = recorded([(1.0, True)] * WINDOW_SAMPLES_MIN)
    for turn in range(1, WINDOWS):
        latency.rotate(turn * WINDOW_S)
        for _ in range(WINDOW_SAMPLES_MIN):
            latency.finished(0.001)
        assert latency.samples == (1 + turn) * WINDOW_SAMPLES_MIN
    assert within_a_bin(latency.quantile(0.99), 1.0)
    latency.rotate(WINDOWS * WINDOW_S)
    assert latency.samples == (WINDOWS - 1) * WINDOW_SAMPLES_MIN
    assert within_a_bin(latency.quantile(0.99), 0.001)


@pytest.mark.parametrize("every_s", [1.0, 10.0, 0.9 * IDLE_S])
def test_a_quiet_class_has_a_history_too(every_s: float) -> None:
    """However far apart its legs are, once there were enough there always are, and no more than
    the windows hold; what is older than those is forgotten.
    """
    latency = Latency(0.0)
    for leg in range(1000):
        latency.rotate(leg * every_s)
        latency.finished(1.0 if leg < 500 else 0.001)
        windows = WINDOWS * max(WINDOW_SAMPLES_MIN, WINDOW_S / every_s)
        assert min(leg + 1, MIN_SAMPLES) <= latency.samples <= windows
    assert within_a_bin(latency.quantile(0.99), 0.001)


def test_after_a_long_silence_nothing_is_known() -> None:
    """A history from before the last window does not speak for now."""
    latency = recorded([(1.0, True)])
    latency.rotate(1000 * WINDOW_S)
    assert latency.samples == 0
    assert latency.quantile(0.5) is None


def test_memory_is_constant() -> None:
    """Neither samples nor time add anything but numbers in the same bins."""
    latency = Latency(0.0)
    random = Random("memory")
    for second in range(600):
        latency.rotate(float(second))
        for _ in range(20):
            latency.finished(random.expovariate(100.0))
            latency.at_least(random.expovariate(10.0))
    assert len(latency._windows) == WINDOWS
    assert {len(w.finished) for w in latency._windows} == {BINS}
    assert {len(w.censored) for w in latency._windows} == {BINS}
    assert len(latency._distribution()) <= BINS


def test_time_that_goes_back_forgets_nothing() -> None:
    """An earlier instant than the last rotates no window."""
    latency = recorded([(1.0, True)])
    latency.rotate(-100.0)
    assert latency.samples == 1
