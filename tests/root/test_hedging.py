"""The policies: after how long an attempt is late."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from root.hedging import MIN_SAMPLES, NEVER_S, Fixed, Off, Policy, Quantile
from root.latency import BIN_GROWTH, Latency
from tests.root.conftest import history_of


@dataclass
class Seen:
    """What a policy may know of its query."""

    legs: int = 100
    answered: int = 0


def test_off_never_hedges() -> None:
    """Whatever the history is."""
    assert Off().delay_s(history_of(0.010), Seen()) == NEVER_S


def test_fixed_hedges_after_its_delay() -> None:
    """Whatever the history is."""
    assert Fixed(0.25).delay_s(Latency(0.0), Seen()) == 0.25
    assert Fixed(0.0).delay_s(history_of(0.010), Seen()) == 0.0


def test_quantile_hedges_what_is_slower_than_most() -> None:
    """The delay is the quantile of the history, within a bin."""
    history = history_of(0.010, samples=900)
    for _ in range(100):
        history.finished(0.100)
    delay_s = [Quantile(q).delay_s(history, Seen()) for q in (0.5, 0.89, 0.95)]
    assert delay_s == pytest.approx([0.010, 0.010, 0.100], rel=BIN_GROWTH - 1)


@pytest.mark.parametrize(
    ("samples", "learned"), [(0, False), (MIN_SAMPLES - 1, False), (MIN_SAMPLES, True)]
)
def test_quantile_waits_for_a_history(samples: int, learned: bool) -> None:
    """With fewer samples than MIN_SAMPLES nothing is late."""
    assert (Quantile().delay_s(history_of(0.010, samples), Seen()) < NEVER_S) == learned


def test_quantile_of_a_history_without_answers_is_never() -> None:
    """Where every attempt was given up, nobody knows what late is."""
    history = Latency(0.0)
    for _ in range(2 * MIN_SAMPLES):
        history.at_least(1.0)
    assert Quantile().delay_s(history, Seen()) == NEVER_S


@pytest.mark.parametrize(
    ("policy", "name"), [(Off(), "off"), (Fixed(1.0), "fixed"), (Quantile(), "quantile")]
)
def test_a_policy_has_the_name_that_selects_it(policy: Policy, name: str) -> None:
    """None of these looks at the query itself."""
    assert policy.name == name
    assert not policy.watches_siblings


@pytest.mark.parametrize("after_s", [-0.001, math.inf, math.nan])
def test_a_delay_must_be_a_time(after_s: float) -> None:
    """Negative, infinite and undefined delays are no policy."""
    with pytest.raises(ValueError, match=r"^after_s must be"):
        Fixed(after_s)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.5, 1.5, math.nan])
def test_a_quantile_must_lie_between_0_and_1(q: float) -> None:
    """Both ends excluded."""
    with pytest.raises(ValueError, match=r"^q must lie"):
        Quantile(q)
