"""The price of an extra attempt: learned until what is spent is what the budget gives."""

from __future__ import annotations

import math

import pytest

from root.budget import Budget, BudgetTerms
from root.latency import Latency
from root.pace import GAIN, GAIN_FIRST, PRICE_MAX_S, PRICE_MIN_S, Pace
from tests.root.conftest import history_of

TERMS = BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=100.0)


def half_full() -> Budget:
    """A budget that is as full as it should be in the long run."""
    budget = Budget(TERMS, 0.0)
    while budget.fullness > 0.5:
        assert budget.spend(0.0, needed=True)
    return budget


def priced(price_s: float = 0.010) -> Pace:
    """A pace that has made its first guess."""
    pace = Pace()
    pace.settle(100, 0, half_full(), history_of(price_s))
    return pace


def price_s(pace: Pace) -> float:
    assert pace.price_s is not None
    return pace.price_s


def test_there_is_no_price_before_there_is_a_history() -> None:
    """And none comes of a query that nobody has answered."""
    pace = Pace()
    pace.settle(0, 0, half_full(), Latency(0.0))
    assert pace.price_s is None


def test_the_first_guess_comes_from_the_history() -> None:
    """A leg alone is late when it is slower than most."""
    assert price_s(priced(0.010)) == pytest.approx(0.010, rel=0.05)


@pytest.mark.parametrize(("spent", "direction"), [(0, -1), (4, -1), (6, 1), (60, 1)])
def test_the_price_rises_when_more_is_spent_than_earned(spent: int, direction: int) -> None:
    """And falls when less is: 100 legs at 5 per cent earn 5."""
    pace = priced()
    before_s = price_s(pace)
    pace.settle(100, spent, half_full(), history_of(0.010))
    assert (price_s(pace) - before_s) * direction > 0.0


def test_the_price_stands_still_when_what_is_spent_is_what_is_earned() -> None:
    """With a budget that is half full."""
    pace = priced()
    before_s = price_s(pace)
    pace.settle(100, 5, half_full(), history_of(0.010))
    assert price_s(pace) == pytest.approx(before_s)


def test_an_empty_budget_raises_the_price_and_a_full_one_lowers_it() -> None:
    """Whoever has emptied it: failovers count."""
    empty, full = Budget(TERMS, 0.0), Budget(TERMS, 0.0)
    while empty.spend(0.0, needed=True):
        pass
    dearer, cheaper = priced(), priced()
    dearer.settle(100, 5, empty, history_of(0.010))
    cheaper.settle(100, 5, full, history_of(0.010))
    assert price_s(cheaper) < price_s(priced()) < price_s(dearer)


def test_the_price_minds_the_ends_of_the_bucket_not_its_middle() -> None:
    """A level that is off by a quarter moves it by an eighth of what an end does."""
    quarter, empty = Budget(TERMS, 0.0), Budget(TERMS, 0.0)
    while quarter.fullness > 0.25:
        assert quarter.spend(0.0, needed=True)
    while empty.spend(0.0, needed=True):
        pass
    steps = []
    for budget in (quarter, empty):
        pace = priced()
        before_s = price_s(pace)
        pace.settle(100, 5, budget, history_of(0.010))
        steps.append(math.log(price_s(pace) / before_s))
    assert steps[0] == pytest.approx(steps[1] / 8.0)


def test_learning_slows_down_to_its_gain() -> None:
    """The first steps are long, as a guess is put right; later ones are short."""
    pace = priced()
    steps: list[float] = []
    for _ in range(300):
        before_s = price_s(pace)
        pace.settle(100, 5 if steps else 0, half_full(), history_of(0.010))
        steps.append(price_s(pace) / before_s)
    before_s = price_s(pace)
    pace.settle(100, 0, half_full(), history_of(0.010))
    assert 1.0 - steps[0] == pytest.approx(GAIN_FIRST, rel=0.1)
    assert 1.0 - price_s(pace) / before_s == pytest.approx(GAIN, rel=0.1)


def test_the_price_stays_a_number() -> None:
    """However long nothing can be spent, or more than is earned."""
    low, high, budget, history = priced(), priced(), half_full(), history_of(0.010)
    for _ in range(5000):
        low.settle(100, 0, budget, history)
        high.settle(100, 100, budget, history)
    assert low.price_s == PRICE_MIN_S
    assert high.price_s == PRICE_MAX_S


def test_without_a_budget_the_price_does_not_fall() -> None:
    """Nothing is earned and nothing is wanted."""
    nothing = Budget(BudgetTerms(max_extra_load=0.0, burst=0.0), 0.0)
    pace = priced()
    before_s = price_s(pace)
    pace.settle(100, 0, nothing, history_of(0.010))
    assert price_s(pace) == before_s
