"""What watching costs: when it is too much."""

from __future__ import annotations

import os

import pytest

from bench.confidence import Estimate
from bench.experiments.watching import Bar, Ratio, cpu_s


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.98, 1.01, "met"),
        (0.95, 0.99, "within the noise"),
        (0.93, 0.96, "missed"),
        (0.93, None, "within the noise"),
    ],
)
def test_a_bar_is_missed_beyond_the_interval_only(
    low: float, high: float | None, verdict: str
) -> None:
    """Met where all of the interval is above, missed where all of it is below."""
    ratio = Ratio(Bar("shipped", "off", 0.97), Estimate(0.955, low, high), Estimate(1.0, 1.0, 1.0))
    assert ratio.verdict == verdict
    assert ratio.missed == (verdict == "missed")


def test_processor_time_is_that_of_the_process() -> None:
    """As the system's own call has it, to the tick."""
    times = os.times()
    before_s = times.user + times.system
    found_s = cpu_s({"this": os.getpid()})
    assert before_s - 0.02 <= found_s <= os.times().user + os.times().system + 0.02
