"""Policies that spend a given share of extra load."""

from __future__ import annotations

import pytest

from bench.simulation import tuning
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.study import UNLIMITED, Plan, arm, simulate

PLAN = Plan("tail-at-scale", leaves=50, queries=400)


@pytest.mark.parametrize("extra_load", [0.02, 0.05])
def test_every_tuned_policy_spends_what_it_is_given(extra_load: float) -> None:
    """Exactly, where it can be computed; closely, where it must be tried."""
    draws = Draws(PROFILES[PLAN.profile], PLAN.leaves, PLAN.seed, keep=True)
    fixed = tuning.fixed(PLAN, draws, extra_load)
    sibling = tuning.sibling(PLAN, draws, extra_load)
    quantile = tuning.quantile(PLAN, draws, extra_load)
    assert sibling is not None
    for policy, within in ((fixed, 0.05), (sibling, 0.05), (quantile, 0.2)):
        spent = arm(simulate(PLAN, draws, policy, UNLIMITED)).extra_load
        assert spent == pytest.approx(extra_load, rel=within), policy.name


def test_siblings_that_are_too_few_cannot_spend_so_much() -> None:
    """With one leg there is no quorum that leaves any."""
    plan = Plan("tail-at-scale", leaves=1, queries=10)
    assert tuning.sibling(plan, Draws(PROFILES[plan.profile], 1, 1), 0.05) is None
