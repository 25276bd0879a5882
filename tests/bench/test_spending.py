"""The ledger that budgets are judged by."""

from __future__ import annotations

from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.spending import ROUNDING, Spending
from root.budget import Budget, BudgetTerms

BURST = 3.0
TERMS = BudgetTerms(max_extra_load=0.25, floor_per_s=2.0, burst=BURST)
SHARDS = 1
SECONDS = st.integers(0, 40).map(lambda tenths: tenths / 10.0)


@given(
    earned=st.lists(st.tuples(SECONDS, st.integers(0, 6)), max_size=12),
    spent=st.lists(SECONDS, max_size=16),
)
def test_one_pass_finds_what_looking_at_every_window_finds(
    earned: list[tuple[float, int]], spent: list[float]
) -> None:
    """The promise is broken in some window exactly where an instant is overdrawn."""
    instants = sorted({*spent, *(second for second, _ in earned)})
    broken = any(
        sum(from_s <= second <= to_s for second in spent)
        > sum(legs for second, legs in earned if from_s <= second <= to_s) * TERMS.max_extra_load
        + (to_s - from_s) * TERMS.floor_per_s
        + BURST
        + ROUNDING
        for from_s, to_s in combinations_with_replacement(instants, 2)
    )
    assert bool(Spending(TERMS, SHARDS, earned, spent).overdrawn_s) == broken


@given(st.lists(st.tuples(SECONDS, st.integers(0, 6), st.integers(0, 4)), max_size=30))
def test_a_real_budget_is_never_overdrawn_and_denies_only_when_empty(
    steps: list[tuple[float, int, int]],
) -> None:
    """Whatever it is asked for: what it grants is within the promise, what it denies it lacks."""
    budget = Budget(TERMS, 0.0)
    spent: list[float] = []
    denied: list[float] = []
    for second, legs, wanted in sorted(steps):
        for _ in range(wanted):
            (spent if budget.spend(second, needed=True) else denied).append(second)
        budget.earn(legs, second)
    spending = Spending(TERMS, SHARDS, [(second, legs) for second, legs, _ in steps], spent)
    assert not spending.overdrawn_s
    assert all(spending.may_be_empty(second) for second in denied)


def test_a_full_bucket_is_not_called_empty() -> None:
    """Before anything was spent, after it has filled again, and not while it is being emptied."""
    spending = Spending(TERMS, SHARDS, [], [1.0, 1.0, 1.0])
    assert not spending.may_be_empty(0.5)
    assert spending.may_be_empty(1.0)
    assert spending.may_be_empty(1.4)
    assert not spending.may_be_empty(1.6)


def test_where_nothing_may_be_spent_one_token_is_too_many() -> None:
    """Without extra load there is neither floor nor burst."""
    nothing = BudgetTerms(max_extra_load=0.0, floor_per_s=2.0, burst=3.0)
    assert Spending(nothing, SHARDS, [(0.0, 1000)], [2.0]).overdrawn_s == [(2.0, 1.0)]
    assert Spending(nothing, SHARDS, [], []).may_be_empty(5.0)
