"""Durations in buckets: nothing is lost, nothing is in the wrong one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leaf.durations import BUCKETS, Histogram


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
