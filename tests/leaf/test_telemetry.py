"""What a leaf counts: every leg once, under one outcome."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leaf.telemetry import BLOCKED_S, BUCKETS, Histogram, Ledger


@given(took=st.lists(st.integers(0, 2**40)))
def test_a_duration_is_below_the_bound_of_its_bucket(took: list[int]) -> None:
    """Cumulated counts are what counting by hand gives, to the last bucket."""
    histogram = Histogram()
    for took_us in took:
        histogram.add(took_us)
    exported = histogram.exported()
    for exponent, (_, count) in enumerate(exported["buckets"][:-1]):
        assert count == sum(took_us < 2**exponent for took_us in took)
    assert exported["buckets"][-1] == ("+Inf", len(took))
    assert len(exported["buckets"]) == BUCKETS
    assert exported["sum_value"] == sum(took) / 1e6


def test_answers_and_refusals_are_told_apart() -> None:
    """A cancelled leg that was begun is wasted work, one that waited is not."""
    ledger = Ledger()
    ledger.answered("search", [(0, 5, 10, 1, [1.0], [1])], heard=True)
    ledger.answered("fetch", [(1, 5, 100, [])], heard=False)
    ledger.refused("search", [(2, 5, 0, "cancelled"), (3, 5, 1000, "cancelled"), (4, 5, 0, "busy")])
    ledger.abandoned("lookup", 3)
    assert ledger.legs == {
        ("search", "answered"): 1,
        ("fetch", "abandoned_running"): 1,
        ("search", "cancelled"): 1,
        ("search", "cancelled_running"): 1,
        ("search", "busy"): 1,
        ("lookup", "abandoned_queued"): 3,
    }
    assert ledger.wasted_us == 1100
    assert sum(ledger.queue.counts) == 5
    assert sum(ledger.service.counts) == 3


def test_a_blocked_loop_is_counted() -> None:
    """Lateness is always measured; only from the stated length on does it count as blocked."""
    ledger = Ledger()
    for late_s in (-0.001, 0.001, BLOCKED_S, 0.5):
        ledger.beat(late_s)
    assert ledger.blocked_s == 0.5
    assert sum(ledger.lag.counts) == 4
