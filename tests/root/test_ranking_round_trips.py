"""How far a leaf is: what pings say, and nothing else."""

from __future__ import annotations

import pytest

from root.ranking import ROUND_TRIP_START_S, Leaf


def test_round_trips_are_smoothed() -> None:
    """A ping moves the measure towards itself, many bring it there; legs have no say in it."""
    leaf = Leaf("x", 0.0)
    leaf.answered(10.0)
    assert leaf.round_trip_s == ROUND_TRIP_START_S
    leaf.ponged(0.003)
    assert ROUND_TRIP_START_S < leaf.round_trip_s < 0.003
    for _ in range(100):
        leaf.ponged(0.003)
    assert leaf.round_trip_s == pytest.approx(0.003)
