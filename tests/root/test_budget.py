"""The budget: how many extra attempts there may be in any stretch of time."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.budget import (
    BURST_MAX,
    BURST_MIN,
    PUSH_BACK_S,
    RECENT_HALF_LIFE_S,
    Budget,
    BudgetTerms,
    burst_for,
)

TERMS = BudgetTerms(max_extra_load=0.05, floor_per_s=2.0, burst=3.0)

steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.001, 0.3, 1.0, 20.0]),  # seconds since the step before
        st.sampled_from([0, 1, 30, 1000]),  # legs answered
        st.integers(0, 5),  # extra attempts wanted
    ),
    max_size=25,
)


@given(
    steps=steps,
    share=st.sampled_from([0.0, 0.01, 0.05, 1.0]),
    floor_per_s=st.sampled_from([0.0, 1.0, 50.0]),
    burst=st.sampled_from([0.0, 1.0, 7.5, 100.0]),
)
def test_no_window_has_more_extra_attempts_than_promised(
    steps: list[tuple[float, int, int]], share: float, floor_per_s: float, burst: float
) -> None:
    """In every window: extra <= legs x share + floor x seconds + burst."""
    budget = Budget(BudgetTerms(share, floor_per_s, burst), 0.0)
    now = 0.0
    seen: list[tuple[float, int, int]] = []
    for passed_s, answered, wanted in steps:
        now += passed_s
        budget.earn(answered, now)
        seen.append((now, answered, sum(budget.spend(now, needed=True) for _ in range(wanted))))
    for first, (from_s, _, _) in enumerate(seen):
        legs = extra = 0
        for until_s, answered, spent in seen[first:]:
            legs += answered
            extra += spent
            allowed = legs * share + (until_s - from_s) * floor_per_s + burst
            assert extra <= allowed + 1e-9


@given(steps=steps)
def test_the_bucket_stays_between_empty_and_full(steps: list[tuple[float, int, int]]) -> None:
    """However much is earned or asked for, the level is from 0 to burst."""
    budget = Budget(TERMS, 0.0)
    now = 0.0
    for passed_s, answered, wanted in steps:
        now += passed_s
        budget.earn(answered, now)
        for _ in range(wanted):
            budget.spend(now, needed=True)
        assert 0.0 <= budget.level(now) <= budget.burst


def test_successes_earn_their_share() -> None:
    """At five per cent, sixty answered legs pay for three hedges."""
    budget = Budget(replace(TERMS, floor_per_s=0.0), 0.0)
    assert [budget.spend(0.0, needed=True) for _ in range(4)] == [True, True, True, False]
    budget.earn(60, 0.0)
    assert budget.level(0.0) == pytest.approx(3.0)


def test_a_quiet_system_may_hedge_a_little() -> None:
    """The floor fills the bucket with time alone, up to the burst."""
    budget = Budget(TERMS, 0.0)
    while budget.spend(0.0, needed=True):
        pass
    assert not budget.spend(0.4, needed=True)
    assert budget.spend(0.6, needed=True)
    assert budget.level(1000.0) == budget.burst


def test_no_extra_load_means_none_at_all() -> None:
    """With a share of 0 neither burst nor floor pays for anything."""
    budget = Budget(replace(TERMS, max_extra_load=0.0), 0.0)
    budget.earn(1_000_000, 0.0)
    assert not budget.spend(0.0, needed=True)
    assert not budget.spend(1_000_000.0, needed=True)


@pytest.mark.parametrize(
    ("shards", "burst"), [(0, BURST_MIN), (20, BURST_MIN), (100, 500.0), (1_000_000, BURST_MAX)]
)
def test_what_can_be_saved_up_follows_the_shards(shards: int, burst: float) -> None:
    """Some whole queries, within limits; the bucket starts full."""
    budget = Budget(BudgetTerms(), 0.0)
    budget.fit(shards)
    assert budget.burst == burst_for(shards) == budget.level(0.0) == burst
    budget.earn(1_000_000_000, 0.0)
    assert budget.level(0.0) == burst


def test_a_bucket_that_is_fitted_stays_as_full_as_it_was() -> None:
    """However often the number of shards changes, nothing comes of it."""
    budget = Budget(BudgetTerms(), 0.0)
    while budget.fullness > 0.25:
        assert budget.spend(0.0, needed=True)
    for shards in (100, 16, 200, 100):
        budget.fit(shards)
        assert budget.fullness == pytest.approx(0.25)
    assert budget.level(0.0) == pytest.approx(125.0)


@pytest.mark.parametrize("burst", [0.0, 3.0])
def test_a_burst_that_was_set_stays(burst: float) -> None:
    """Whatever the number of shards."""
    budget = Budget(replace(TERMS, burst=burst), 0.0)
    budget.fit(1000)
    assert budget.burst == budget.level(0.0) == burst


def test_a_refused_token_costs_nothing() -> None:
    """Asking an empty bucket does not put off the next token."""
    budget = Budget(TERMS, 0.0)
    while budget.spend(0.0, needed=True):
        pass
    for millisecond in range(499):
        assert not budget.spend(millisecond / 1000.0, needed=True)
    assert budget.spend(0.501, needed=True)


def test_time_that_stands_still_or_goes_back_earns_nothing() -> None:
    """Only a later instant than any before adds tokens."""
    budget = Budget(TERMS, 10.0)
    while budget.spend(10.0, needed=True):
        pass
    assert budget.level(5.0) < 1.0
    assert budget.level(10.0) < 1.0


def test_push_back_rests_hedging_for_a_while() -> None:
    """A busy leaf stops hedges, another prolongs it, an older one does not shorten it."""
    budget = Budget(TERMS, 0.0)
    assert not budget.resting(0.0)
    budget.push_back(1.0)
    assert budget.resting(1.0 + PUSH_BACK_S / 2)
    budget.push_back(1.5)
    budget.push_back(0.5)
    assert budget.resting(1.4 + PUSH_BACK_S)
    assert not budget.resting(1.5 + PUSH_BACK_S)
    assert not budget.failing(1.0)


@pytest.mark.parametrize(("failures", "resting"), [(0, False), (1, False), (11, False), (12, True)])
def test_hedging_rests_while_many_attempts_fail(failures: int, resting: bool) -> None:
    """More than one in ten of what has come of attempts lately."""
    budget = Budget(TERMS, 0.0)
    budget.earn(100, 0.0)
    for _ in range(failures):
        budget.failed(0.0)
    assert budget.resting(0.0) is budget.failing(0.0) is resting
    assert not budget.pushed_back(0.0)
    assert budget.spend(0.0, needed=True)


@pytest.mark.parametrize(("failures", "resting"), [(19, False), (20, True)])
def test_a_few_errors_in_a_quiet_system_do_not_rest_hedging(failures: int, resting: bool) -> None:
    """A share of hardly anything is none."""
    budget = Budget(TERMS, 0.0)
    for _ in range(failures):
        budget.failed(0.0)
    assert budget.failing(0.0) is resting


def test_errors_are_forgotten_with_time_and_outweighed_by_answers() -> None:
    """Without anything new, when they are too few to speak of; with answers, sooner."""
    quiet, busy = Budget(TERMS, 0.0), Budget(TERMS, 0.0)
    for budget in (quiet, busy):
        for _ in range(80):
            budget.failed(0.0)
    assert quiet.failing(1.9 * RECENT_HALF_LIFE_S)
    assert not quiet.failing(2.1 * RECENT_HALF_LIFE_S)
    busy.earn(300, RECENT_HALF_LIFE_S)
    assert busy.failing(RECENT_HALF_LIFE_S)
    busy.earn(100, RECENT_HALF_LIFE_S)
    assert not busy.failing(RECENT_HALF_LIFE_S)


def test_the_share_that_fails_is_that_of_the_last_seconds() -> None:
    """An hour of answers does not hide that everything fails now."""
    budget = Budget(TERMS, 0.0)
    for second in range(3600):
        budget.earn(100, float(second))
    for millisecond in range(0, 1000, 10):
        budget.failed(3600.0 + millisecond / 1000.0)
    assert budget.failing(3601.0)


def test_push_back_takes_no_tokens() -> None:
    """Failovers may still draw on the budget while hedging rests."""
    budget = Budget(TERMS, 0.0)
    budget.push_back(0.0)
    assert budget.spend(0.0, needed=True)


@pytest.mark.parametrize("name", [field.name for field in fields(BudgetTerms)])
@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf, 1e6])
def test_terms_out_of_range_are_refused(name: str, value: float) -> None:
    """A limit that is out of range is no value, and the error names it."""
    with pytest.raises(ValueError, match=f"^{name} must be from 0 to"):
        replace(TERMS, **{name: value})


def test_a_burst_below_one_token_is_refused() -> None:
    """A token is spent whole: such a budget would look open and allow nothing."""
    with pytest.raises(ValueError, match=r"^burst must be 0 or at least 1"):
        replace(TERMS, burst=0.5)
    assert replace(TERMS, burst=0.0).burst == 0.0


@pytest.mark.parametrize(("load", "share"), [(0.0, 0.1), (0.01, 0.1), (0.05, 0.2), (1.0, 4.0)])
def test_a_shard_may_get_some_times_its_share(load: float, share: float) -> None:
    """Four times what is allowed everywhere, and a tenth at least."""
    assert BudgetTerms(max_extra_load=load).shard_share_max == pytest.approx(share)


def test_a_token_that_is_given_back_can_be_spent_again() -> None:
    """As long as it is lent there is none."""
    budget = Budget(BudgetTerms(0.05, 0.0, 1.0), 0.0)
    assert budget.lend(0.0)
    assert not budget.lend(0.0)
    budget.give_back()
    assert budget.level(0.0) == 1.0


def test_the_place_of_a_lent_token_stays_free() -> None:
    """What is earned meanwhile does not take it, or more than a burst could be spent at once."""
    budget = Budget(BudgetTerms(1.0, 1.0, 2.0), 0.0)
    assert budget.lend(0.0)
    budget.earn(10, 1.0)
    assert budget.level(5.0) == 1.0
    budget.give_back()
    assert budget.level(5.0) == 2.0
    assert budget.lend(5.0)
    budget.keep()
    assert budget.level(7.0) == 2.0


def test_what_is_in_reserve_is_not_lent() -> None:
    """A tied copy can be done without, as any hedge can."""
    budget = Budget(BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=11.0), 0.0)
    lent = 0
    while budget.lend(0.0):
        lent += 1
    assert lent == 10
    assert budget.spend(0.0, needed=True)


def test_the_last_tokens_are_for_what_is_needed() -> None:
    """Hedges leave a tenth of what can be saved up to failovers; of a single token nothing."""
    budget = Budget(BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=101.0), 0.0)
    hedges = 0
    while budget.spend(0.0, needed=False):
        hedges += 1
    assert hedges == 91
    assert [budget.spend(0.0, needed=True) for _ in range(11)] == [True] * 10 + [False]
    single = Budget(BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=1.0), 0.0)
    assert single.spend(0.0, needed=False)


def test_shards_of_different_collections_are_different_shards() -> None:
    """One that is hedged too often says nothing of its namesake, and each fades by the queries of
    its own collection.
    """
    budget = Budget(replace(TERMS, max_extra_load=0.0), 0.0)
    for name, shards in (("docs", 4), ("articles", 1)):
        budget.fit(shards, name)
        for _ in range(8):
            budget.hedged(0, name)
    assert budget.crowded(0, "docs")
    assert budget.crowded(0, "articles")
    assert not budget.crowded(0)
    for _ in range(50):
        budget.earn(1, 0.0, "articles")
    assert budget.crowded(0, "docs")
    assert not budget.crowded(0, "articles")


def test_a_burst_follows_the_collection_of_most_shards() -> None:
    """Whichever is asked: there is one bucket for all."""
    budget = Budget(BudgetTerms(), 0.0)
    budget.fit(100, "docs")
    budget.fit(2, "articles")
    assert budget.burst == burst_for(100)
    budget.fit(50, "docs")
    assert budget.burst == burst_for(50)
