"""The policies: after how long an attempt is late."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from root.hedging import (
    INDEPENDENT_LEAVES,
    MIN_SAMPLES,
    NEVER_S,
    PRICED_SHARE_MAX,
    Adaptive,
    Fixed,
    Off,
    Policy,
    Quantile,
    Sibling,
    Tied,
    Together,
)
from root.latency import BIN_GROWTH, Latency
from tests.root.conftest import history_of


@dataclass
class Seen:
    """What a policy may know of its query."""

    legs: int = 100
    leaves: int = 10
    open_legs: int = 100
    answered: int = 0
    heard_s: float = 0.0
    latest_s: float = 0.0
    round_trip_s: float = 0.001
    quorum_s: float | None = None
    price_s: float | None = None


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
    ("policy", "name", "watches"),
    [
        (Off(), "off", False),
        (Fixed(1.0), "fixed", False),
        (Quantile(), "quantile", False),
        (Together(), "together", False),
        (Tied(), "tied", False),
        (Sibling(), "sibling", True),
        (Adaptive(), "adaptive", True),
    ],
)
def test_a_policy_has_the_name_that_selects_it(policy: Policy, name: str, watches: bool) -> None:
    """And only those that look at the query itself are asked after every answer."""
    assert policy.name == name
    assert policy.watches_siblings == watches


def test_only_adaptive_lives_by_the_price() -> None:
    """Nothing is learned about what hedging costs from a policy that does not mind."""
    policies: list[Policy] = [
        Off(),
        Fixed(1.0),
        Quantile(),
        Sibling(),
        Together(),
        Tied(),
        Adaptive(),
    ]
    assert [policy.name for policy in policies if policy.paced] == ["adaptive"]


def test_together_is_late_at_once() -> None:
    """Whatever the history is."""
    assert Together().delay_s(Latency(0.0), Seen()) == 0.0


def test_a_leg_is_late_among_siblings_only_once_the_quorum_has_answered() -> None:
    """Before that nobody knows whether it is the leg or the query that is slow."""
    sibling = Sibling(quorum=0.5, factor=3.0)
    assert sibling.delay_s(history_of(0.010), Seen(open_legs=51)) == NEVER_S
    assert sibling.delay_s(history_of(0.010), Seen(open_legs=50, quorum_s=0.020)) == 0.060


def test_a_query_slow_everywhere_has_no_late_legs_among_siblings() -> None:
    """Five times slower is five times as patient, whatever the history says."""
    quick, slow = Seen(open_legs=40, quorum_s=0.004), Seen(open_legs=40, quorum_s=0.020)
    history = history_of(0.004)
    assert Sibling().delay_s(history, slow) == pytest.approx(5 * Sibling().delay_s(history, quick))


def test_adaptive_waits_for_a_price() -> None:
    """Nothing is late while nobody knows what hedging costs."""
    assert Adaptive().delay_s(history_of(0.010), Seen(open_legs=1)) == NEVER_S


@pytest.mark.parametrize(("still_open", "silence_s"), [(1, 0.002), (3, 0.006), (8, 0.016)])
def test_a_silence_must_pay_for_every_leg_it_has_hedged(still_open: int, silence_s: float) -> None:
    """So long after the latest answers, a price for each open leg, all of them are late."""
    seen = Seen(open_legs=still_open, answered=80, heard_s=0.015, latest_s=0.016, price_s=0.002)
    assert Adaptive().delay_s(Latency(0.0), seen) == pytest.approx(0.015 + silence_s)


def test_a_query_in_which_hardly_anybody_answers_pays_for_some_of_its_legs() -> None:
    """The price of a query is limited to that of a share of its legs."""
    seen = Seen(open_legs=99, answered=1, heard_s=0.002, latest_s=0.003, price_s=0.001)
    delay_s = Adaptive().delay_s(Latency(0.0), seen)
    assert delay_s == pytest.approx(0.002 + 0.001 * (100 * PRICED_SHARE_MAX + 1))


def test_a_pause_no_longer_than_those_before_is_no_silence() -> None:
    """However cheap an extra attempt is: what takes seconds does not end within milliseconds."""
    seen = Seen(open_legs=1, answered=9, heard_s=2.5, latest_s=2.7, price_s=0.001)
    assert Adaptive().delay_s(Latency(0.0), seen) == pytest.approx(2.7 + 2.7 / 9)


@pytest.mark.parametrize(
    ("leaves", "late"), [(1, True), (INDEPENDENT_LEAVES - 1, True), (INDEPENDENT_LEAVES, False)]
)
def test_a_query_that_several_leaves_leave_unanswered_is_slow_by_nature(
    leaves: int, late: bool
) -> None:
    """Nothing of it is late; where few leaves are asked, it may be them."""
    seen = Seen(leaves=leaves, price_s=0.001)
    assert (Adaptive().delay_s(Latency(0.0), seen) < NEVER_S) == late


@pytest.mark.parametrize("quorum", [0.0, 1.0, -0.5, math.nan])
def test_a_quorum_must_be_a_share(quorum: float) -> None:
    """With nobody or everybody there is nobody to compare."""
    with pytest.raises(ValueError, match=r"^quorum must lie"):
        Sibling(quorum=quorum)


@pytest.mark.parametrize("factor", [0.99, -1.0, math.inf, math.nan])
def test_a_factor_must_not_be_below_1(factor: float) -> None:
    """Nothing is late that is as fast as the quorum."""
    with pytest.raises(ValueError, match=r"^factor must be"):
        Sibling(factor=factor)


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


def test_a_tied_copy_follows_after_two_round_trips() -> None:
    """Whatever the history is: it is the way to the leaves that counts."""
    assert Tied().delay_s(Latency(0.0), Seen(round_trip_s=0.003)) == 0.006
