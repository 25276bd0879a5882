"""Tied requests: when the second copies go out, and what becomes of a query that has them."""

from __future__ import annotations

import pytest

from root.gather import AlarmRang, AttemptFailed, AttemptsReplied, CancelAttempt, Gather
from root.gather import SendAttempt as Send
from root.hedging import MIN_SAMPLES, TIED_ROUND_TRIPS, Tied
from root.race import Attempt, Terms
from root.ranking import Leaf
from tests.root.conftest import history_of, leaves, terms

ROUND_TRIP_S = 0.002


def tied_over(shards: int, given: Terms, pair: list[Leaf]) -> tuple[Gather, list[Attempt]]:
    """A gather of the policy, started at time 0, and what it sent."""
    pair[0].round_trip_s = ROUND_TRIP_S
    gather = Gather([(shard, pair) for shard in range(shards)], Tied(), given, 1.0)
    return gather, [send.attempt for send in gather.start(0.0)]


def seconds_of(gather: Gather, now: float) -> list[Attempt]:
    """The copies that the alarm sends."""
    actions = gather.handle(AlarmRang(), now)
    return [action.attempt for action in actions if isinstance(action, Send)]


def test_every_leg_gets_a_second_copy_after_two_round_trips() -> None:
    """On the leaf that the first names; the farthest leaf asked sets the time, and there are no
    third copies.
    """
    pair = leaves(2)
    gather, firsts = tied_over(3, terms(), pair)
    due_s = TIED_ROUND_TRIPS * ROUND_TRIP_S
    assert gather.wakeup == due_s
    seconds = seconds_of(gather, due_s)
    assert [(a.leaf, a.kind) for a in seconds] == [(a.twin, "tied") for a in firsts]
    assert gather.wakeup == 1.0


@pytest.mark.parametrize("why", ["no history", "push-back", "no time", "one attempt"])
def test_nothing_is_tied_where_hedging_makes_no_sense(why: str) -> None:
    """As with any policy: the legs are plain ones."""
    given = terms(history=history_of(0.010, MIN_SAMPLES - 1 if why == "no history" else 1000))
    given.attempts_max = 1 if why == "one attempt" else 2
    if why == "push-back":
        given.budget.push_back(0.0)
    gather = Gather([(0, leaves(2))], Tied(), given, 0.005 if why == "no time" else 1.0)
    (send,) = gather.start(0.0)
    assert send.attempt.twin is None
    assert gather.wakeup == gather.deadline_s


def test_a_leg_answered_before_needs_no_second_copy() -> None:
    """Where the leaf is faster than two round trips, tying costs nothing."""
    gather, firsts = tied_over(2, terms(), leaves(2))
    gather.handle(AttemptsReplied([(firsts[0], "answer")]), 0.001)
    assert [a.shard for a in seconds_of(gather, 0.004)] == [1]


def test_one_answer_of_two_is_merged() -> None:
    """The copy that is dropped ends without a word; the other one's answer decides."""
    gather, (first,) = tied_over(1, terms(), leaves(2))
    (second,) = seconds_of(gather, 0.004)
    assert gather.handle(AttemptFailed(first, "twin_began"), 0.010) == ()
    assert gather.outcome is None
    assert gather.handle(AttemptsReplied([(second, "answer")]), 0.020) == ()
    assert gather.outcome is not None
    assert (gather.outcome.replies, gather.outcome.missing) == ([(0, "answer")], {})


def test_a_failed_second_copy_leaves_the_first_alone() -> None:
    """Nobody else is sent a copy that the first does not know of; a failover is not tied."""
    given = terms(attempts_max=3)
    gather, (first,) = tied_over(1, given, leaves(3))
    (second,) = seconds_of(gather, 0.004)
    assert gather.handle(AttemptFailed(second, "busy"), 0.005) == ()
    assert gather.wakeup == 1.0
    (failover,) = gather.handle(AttemptFailed(first, "gone"), 0.010)
    assert failover.attempt.twin is None
    assert gather.wakeup == 1.0


def test_when_both_are_at_work_the_slower_is_cancelled() -> None:
    """As with any hedge."""
    gather, (first,) = tied_over(1, terms(), leaves(2))
    (second,) = seconds_of(gather, 0.004)
    answered = AttemptsReplied([(first, "answer")])
    assert gather.handle(answered, 0.020) == [CancelAttempt(second)]
