"""Queries over simulated leaves, through the product's own driver."""

from __future__ import annotations

import pytest

from bench.simulation.bounds import fastest
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.study import UNLIMITED, Plan, arm, row, simulate
from root.budget import burst_for
from root.hedging import Adaptive, Fixed, Off, Quantile, Sibling, Together

PLAN = Plan("tail-at-scale", leaves=20, queries=200)


def draws(plan: Plan = PLAN) -> Draws:
    return Draws(PROFILES[plan.profile], plan.leaves, plan.seed, keep=True)


def test_without_hedging_a_query_takes_as_long_as_its_slowest_leg() -> None:
    """And 95 per cent of its legs as long as the slowest of them."""
    given = draws()
    times = simulate(PLAN, given, Off(), UNLIMITED)
    legs_s = [sorted(given.legs_s(query, 0)) for query in range(PLAN.queries)]
    assert sorted(times.all_s) == pytest.approx(sorted(one[-1] for one in legs_s))
    assert sorted(times.most_s) == pytest.approx(sorted(one[18] for one in legs_s))
    assert (times.legs, times.extra) == (4000, 0)


def test_copies_of_everything_take_as_long_as_the_faster_of_two() -> None:
    """The driver and the bound agree on what is fastest."""
    given = draws()
    driven, bound = simulate(PLAN, given, Together(), UNLIMITED), fastest(PLAN, given)
    assert sorted(driven.all_s) == pytest.approx(sorted(bound.all_s))
    assert driven.extra == bound.extra


def test_a_fixed_delay_hedges_exactly_what_is_slower() -> None:
    """Every leg that takes longer than the delay costs one extra attempt."""
    given = draws()
    times = simulate(PLAN, given, Fixed(0.02055), UNLIMITED)
    late = sum(leg_s > 0.02055 for q in range(PLAN.queries) for leg_s in given.legs_s(q, 0))
    assert times.extra == late


@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_bound_the_attempts(replicas: int) -> None:
    """One replica cannot be hedged; of three, each may get a copy."""
    plan = Plan("tail-at-scale", leaves=5, replicas=replicas, queries=50)
    times = simulate(plan, draws(plan), Together(), UNLIMITED)
    assert times.extra == times.legs * (replicas - 1)


@pytest.mark.parametrize("extra_load", [0.02, 0.05])
def test_adaptive_learns_to_spend_its_budget(extra_load: float) -> None:
    """In the long run just what is allowed, never more, and it pays."""
    plan = Plan("tail-at-scale", leaves=50, queries=1000)
    given = draws(plan)
    hedged = arm(simulate(plan, given, Adaptive(), limited(extra_load, plan.leaves)))
    off = arm(simulate(plan, given, Off(), UNLIMITED))
    burst_share = burst_for(plan.leaves) / (plan.leaves * plan.queries)
    assert 0.85 * extra_load < hedged.extra_load <= extra_load + burst_share
    assert hedged.all_leaves.p50 < 0.8 * off.all_leaves.p50
    assert hedged.all_leaves.p99 < off.all_leaves.p99


@pytest.mark.parametrize("policy", [Quantile(0.95), Sibling(), Adaptive()], ids=lambda p: p.name)
def test_the_same_seed_gives_the_same_times(policy: Quantile | Sibling | Adaptive) -> None:
    """To the last bit, with what was learned before forgotten."""
    plan = Plan("bigtable", leaves=10, queries=100)
    one, other = (simulate(plan, draws(plan), policy, UNLIMITED) for _ in range(2))
    assert one == other


def test_percentiles_are_times_that_were_seen() -> None:
    """The smallest that so many do not exceed, in milliseconds."""
    seen = row([i / 1000.0 for i in range(1, 101)])
    assert (seen.p50, seen.p95, seen.p99, seen.p99_9) == (50.0, 95.0, 99.0, 100.0)
    assert row([0.5]).p50 == 500.0


@pytest.mark.parametrize(("name", "value"), [("leaves", 0), ("replicas", 11), ("queries", 0)])
def test_a_plan_out_of_range_is_refused_by_name(name: str, value: int) -> None:
    """A plan that exists can be run."""
    with pytest.raises(ValueError, match=rf"^{name} must be from"):
        Plan("bigtable", **{name: value})


def test_leaves_with_queues_are_as_busy_as_the_profile_says() -> None:
    """Without hedging; what hedging adds to that is its extra load, and no more."""
    plan = Plan("queues", leaves=20, queries=2000)
    off, hedged = (
        simulate(plan, draws(plan), policy, limited(0.05, plan.leaves))
        for policy in (Off(), Adaptive())
    )
    assert off.utilisation == pytest.approx(0.7, rel=0.06)
    assert off.utilisation is not None
    assert hedged.utilisation is not None
    assert 0.0 < hedged.utilisation / off.utilisation - 1.0 < 0.06


def test_failures_are_counted_and_complete_queries_told_from_others() -> None:
    """One leg in a thousand fails, leaves crash; nearly every query is answered whole."""
    plan = Plan("failures", leaves=50, queries=2000)
    one = arm(simulate(plan, draws(plan), Adaptive(), limited(0.05, plan.leaves)))
    assert one.failures["error"] == pytest.approx(0.001 * 3000 * 50, rel=0.3)
    assert one.failures["gone"] > 0
    assert 0.99 < one.complete <= 1.0
