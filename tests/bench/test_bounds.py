"""What no policy can beat."""

from __future__ import annotations

import itertools

from bench.simulation.bounds import _steps, _times_by_hedges, clairvoyant, fastest
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.study import Plan

PLAN = Plan("tail-at-scale", leaves=8, queries=12)


def draws() -> Draws:
    return Draws(PROFILES[PLAN.profile], PLAN.leaves, PLAN.seed, keep=True)


def test_hedging_the_slowest_legs_is_the_best_use_of_so_many() -> None:
    """Of all choices of k legs none makes the query shorter."""
    first_s, copy_s = draws().legs_s(1, 0), draws().legs_s(1, 1)
    for k, best_s in enumerate(_times_by_hedges(first_s, copy_s)):
        assert best_s == min(
            max(
                min(first_s[leg], copy_s[leg]) if leg in hedged else first_s[leg]
                for leg in range(PLAN.leaves)
            )
            for hedged in itertools.combinations(range(PLAN.leaves), k)
        )


def test_the_steps_of_a_query_have_falling_gains() -> None:
    """So that buying the best first never needs what is not bought yet."""
    steps = _steps([10.0, 9.0, 5.0, 5.0, 4.0, 4.0])
    assert steps == [(2.5, 2), (0.5, 4)]
    assert _steps([3.0, 3.0]) == []


def test_the_clairvoyant_keeps_its_budget() -> None:
    """It spends no more, and less only where nothing more would help."""
    for extra_load in (0.0, 0.05, 0.2):
        times = clairvoyant(PLAN, draws(), extra_load)
        assert times.extra <= extra_load * times.legs
        assert len(times.all_s) == len(times.most_s) == PLAN.queries


def test_more_extra_load_is_never_slower_and_copies_of_all_are_fastest() -> None:
    """In the sum over all queries."""
    given = draws()
    sums = [sum(clairvoyant(PLAN, given, x).all_s) for x in (0.0, 0.02, 0.05, 0.2, 1.0)]
    assert sums == sorted(sums, reverse=True)
    assert sums[0] == sum(max(given.legs_s(query, 0)) for query in range(PLAN.queries))
    assert sums[-1] == sum(fastest(PLAN, given).all_s)
