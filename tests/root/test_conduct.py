"""What follows from a failure: in the table, and in a race."""

from __future__ import annotations

from typing import get_args

import pytest

from root.conduct import CONDUCT, LOST, FailureReason, MissingReason
from root.race import LOSSES_MAX
from tests.root.conftest import NOTHING_EXTRA, leaves, terms
from tests.root.race_starts import hedged, started

# reason -> whether another replica is tried, whether that costs a token, whether the leaf
# is blamed, and what is missing if nothing answers.
EXPECTED: dict[FailureReason, tuple[bool, bool, bool, MissingReason]] = {
    "gone": (True, False, False, "no_replica"),
    "garbage": (True, False, True, "error"),
    "twin_began": (True, True, True, "error"),
    "error": (True, True, True, "error"),
    "busy": (True, True, False, "refused"),
    "unknown_shard": (True, True, False, "refused"),
    "unknown_generation": (True, True, False, "refused"),
    "cancelled": (True, True, True, "error"),
    "expired": (True, True, False, "timeout"),
    "bad_query": (False, False, False, "refused"),
}
every_reason = pytest.mark.parametrize("reason", list(EXPECTED))


def test_every_failure_has_its_conduct() -> None:
    """There is no reason that the table leaves out."""
    reasons = {word for part in get_args(FailureReason) for word in get_args(part) or (part,)}
    assert reasons == set(CONDUCT) == set(EXPECTED)
    assert {reason: tuple(conduct) for reason, conduct in CONDUCT.items()} == EXPECTED


@every_reason
def test_a_failure_moves_on_at_once_where_that_may_help(reason: FailureReason) -> None:
    """The next replica is tried in the same instant, for a token unless the leaf is gone."""
    moves_on, costs, blamed, missing = EXPECTED[reason]
    given = terms()
    race, primary = started(leaves(2), given)
    tokens = given.budget.level(0.0)
    failover = race.failed(primary, reason, 1, given, 0.001)
    assert (failover is not None) == moves_on
    assert tokens - given.budget.level(0.001) == (1.0 if costs else 0.0)
    assert (primary.leaf.failing(0.001) > 0.0) == blamed
    assert (primary.fate, primary.reason, given.ledger.failures[reason]) == ("failed", reason, 1)
    assert given.budget.resting(0.002) == (reason == "busy")
    if failover is None:
        assert race.missing == missing
    else:
        assert (failover.kind, failover.sent_s) == ("failover", 0.001)
        assert failover.leaf is not primary.leaf
        assert given.tally.failed_over == 1
        assert not race.decided


@every_reason
def test_the_last_failure_says_what_is_missing(reason: FailureReason) -> None:
    """With no other replica the race is lost in the same instant, not at the deadline."""
    given = terms()
    race, primary = started(leaves(1), given)
    assert race.failed(primary, reason, 1, given, 0.001) is None
    assert race.missing == EXPECTED[reason][3]
    assert given.ledger.no_candidate == int(EXPECTED[reason][0])


@every_reason
def test_an_empty_budget_stops_all_but_lost_leaves(reason: FailureReason) -> None:
    """What is denied is counted once and ends the race; a lost leaf's leg moves on for free."""
    given = terms(budget=NOTHING_EXTRA)
    race, primary = started(leaves(2), given)
    failover = race.failed(primary, reason, 1, given, 0.001)
    assert (failover is not None) == (reason in LOST)
    denied = int(EXPECTED[reason][1])
    assert (given.ledger.denied, given.tally.denied) == (denied, denied)


@every_reason
def test_a_failure_beside_an_attempt_in_flight_changes_nothing_for_the_caller(
    reason: FailureReason,
) -> None:
    """The slow primary still answers: its hedge's failure is never returned in its place."""
    given = terms()
    race, primary = started(leaves(3), given)
    hedge = hedged(race, given)
    assert race.failed(hedge, reason, 2, given, 0.021) is None
    assert not race.decided
    assert race.longest_in_flight is primary
    race.replied(primary, "answer", given, 3.0)
    assert race.reply == "answer"


@pytest.mark.parametrize("reason", list(CONDUCT))
def test_hedging_rests_for_failures_that_are_a_leaf_s_fault(reason: FailureReason) -> None:
    """Not for legs that were refused, expired or lost with their leaf."""
    given = terms(attempts_max=1)
    for _ in range(100):
        race, primary = started(leaves(1), given)
        race.failed(primary, reason, 1, given, 0.001)
    assert given.budget.failing(0.001) == (
        reason in {"error", "garbage", "cancelled", "twin_began"}
    )


def test_nothing_is_sent_when_it_is_too_late() -> None:
    """From the deadline on a failure ends the race, and costs no token."""
    given = terms()
    race, primary = started(leaves(2), given)
    tokens = given.budget.level(0.0)
    assert race.failed(primary, "error", 1, given, 1.0, too_late=True) is None
    assert race.missing == "error"
    assert given.budget.level(1.0) == tokens


def test_attempts_are_limited_whatever_the_budget() -> None:
    """After attempts_max failures the race is lost, though a third replica is there."""
    given = terms(attempts_max=2)
    race, primary = started(leaves(3), given)
    second = race.failed(primary, "error", 1, given, 0.001)
    assert second is not None
    assert race.failed(second, "busy", 2, given, 0.002) is None
    assert race.missing == "refused"


@pytest.mark.parametrize(("losses_max", "asked"), [(0, 1), (1, 2), (2, 3), (9, 4)])
def test_attempts_on_lost_leaves_count_as_losses_only(losses_max: int, asked: int) -> None:
    """Nobody does that work, so it costs no token and no attempt; but a leg under which more
    leaves than allowed were lost gets no other: it may be what ends them.
    """
    given = terms(attempts_max=1, budget=NOTHING_EXTRA)
    given.losses_max = losses_max
    race, attempt = started(leaves(4), given)
    tried = [attempt.leaf.name]
    while (following := race.failed(attempt, "gone", len(tried), given, 0.001)) is not None:
        attempt = following
        tried.append(attempt.leaf.name)
    assert len(set(tried)) == len(tried) == asked
    assert race.missing == "no_replica"


def test_a_third_leaf_never_gets_what_two_were_lost_under() -> None:
    """Unless told otherwise, a leg moves on from one lost leaf and from no second."""
    assert terms().losses_max == LOSSES_MAX == 1
