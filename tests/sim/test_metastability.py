"""Hedging makes no overload last longer."""

from __future__ import annotations

from functools import cache
from typing import Final

import pytest

from bench.simulation.overload import WINDOW_S, Course, Recovery, overload
from root.config import Settings
from root.hedging import Together

COURSE: Final = Course(before_s=5.0, trouble_s=5.0, after_s=5.0, leaves=20)

HEDGING = pytest.mark.parametrize("policy", ["quantile", "adaptive"])


@cache
def recovery(policy: str) -> Recovery:
    """One run; the one without hedging is what all others are compared with."""
    return overload("load", Settings().policy(policy), COURSE)


def test_the_scenario_is_an_overload_from_which_a_fleet_without_hedging_recovers() -> None:
    """Queries are many times slower meanwhile, some too late; afterwards all is as before."""
    off = recovery("off")
    assert off.trouble_p95_ms > 5.0 * off.before_p95_ms
    assert 0.5 < off.trouble_complete < 0.99
    assert off.recovered_s is not None
    assert off.recovered_s <= 3.0


@HEDGING
def test_a_fleet_that_hedges_recovers_from_too_much_load_as_fast(policy: str) -> None:
    """Within a second of the fleet that does not, and for good: the last second is as before."""
    off, hedged = recovery("off"), recovery(policy)
    assert off.recovered_s is not None
    assert hedged.recovered_s is not None
    assert hedged.recovered_s <= off.recovered_s + WINDOW_S
    assert hedged.p95_ms[-1] <= 1.5 * hedged.before_p95_ms


@HEDGING
def test_hedging_costs_a_full_fleet_no_more_than_its_budget(policy: str) -> None:
    """Of the queries sent meanwhile, hardly fewer get all they asked for in time."""
    off, hedged = recovery("off"), recovery(policy)
    assert hedged.trouble_extra_load <= 0.05 + 100 / (20 * 2200)
    assert hedged.trouble_complete >= off.trouble_complete - 0.05
    assert hedged.trouble_coverage >= off.trouble_coverage - 0.05


def test_without_a_budget_hedging_would_not_recover() -> None:
    """Two copies of everything, allowed: the same fleet is full before and stays so."""
    greedy = overload("load", Together(), Course(2.0, 1.0, 3.0, leaves=5, max_extra_load=1.0))
    assert greedy.p95_ms[-1] > 5.0 * recovery("off").before_p95_ms


@HEDGING
def test_a_shard_that_was_slow_is_as_soon_as_before_with_hedging(policy: str) -> None:
    """One shard of thirty is within any budget: every query could double its load, and keep it
    overloaded when its leaves have long healed.
    """
    course = Course(before_s=4.0, trouble_s=4.0, after_s=6.0, leaves=30)
    off, hedged = (overload("shard", Settings().policy(name), course) for name in ("off", policy))
    assert off.recovered_s is not None
    assert hedged.recovered_s is not None
    assert hedged.recovered_s <= off.recovered_s + WINDOW_S
    assert hedged.trouble_complete > off.trouble_complete - 0.15
