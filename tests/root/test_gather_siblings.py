"""Policies that look at the query itself, as a gather serves them."""

from __future__ import annotations

import pytest

from root.gather import AlarmRang, AttemptFailed, AttemptsReplied, Gather, SendAttempt
from root.hedging import HEARD_KEPT, PRICED_SHARE_MAX, Adaptive, Fixed, Policy, Sibling
from root.race import Attempt, Terms
from tests.root.conftest import history_of, leaves, terms

DEADLINE_S = 1.0


def started(policy: Policy, given: Terms, legs: int = 10) -> tuple[Gather, list[Attempt]]:
    """A gather over so many shards of two replicas, started at 5 s."""
    pair = leaves(2)
    gather = Gather([(shard, pair) for shard in range(legs)], policy, given, 5.0 + DEADLINE_S)
    return gather, [send.attempt for send in gather.start(5.0)]


def reply(gather: Gather, attempts: list[Attempt], now: float) -> None:
    gather.handle(AttemptsReplied([(attempt, "answer") for attempt in attempts]), now)


def ring(gather: Gather, now: float) -> list[int]:
    """Let the alarm ring; return which shards were hedged."""
    actions = gather.handle(AlarmRang(), now)
    return [action.attempt.shard for action in actions if isinstance(action, SendAttempt)]


def priced(price_s: float) -> Terms:
    """Terms in which an extra attempt has a price."""
    given = terms(history=history_of(0.010))
    given.pace.price_s = price_s
    return given


def test_it_measures_how_long_the_quorum_took() -> None:
    """From the start to the answer with which so many had answered, whatever came later."""
    gather, sent = started(Sibling(quorum=0.5, factor=2.0), terms())
    reply(gather, sent[:4], 5.010)
    assert gather.quorum_s is None
    assert gather.wakeup == 5.0 + DEADLINE_S
    reply(gather, sent[4:6], 5.020)
    assert gather.quorum_s == pytest.approx(0.020)
    assert gather.wakeup == pytest.approx(5.040)
    reply(gather, sent[6:7], 5.030)
    assert gather.wakeup == pytest.approx(5.040)
    assert ring(gather, 5.041) == [7, 8, 9]


def test_answers_put_a_silence_off_by_their_weight() -> None:
    """It is measured from the mean time of the latest answers, each weighing more than the one
    before, and is shorter as there are fewer legs to pay for.
    """
    gather, sent = started(Adaptive(), priced(0.002))
    most = PRICED_SHARE_MAX * 10 + 1.0
    assert gather.wakeup == pytest.approx(5.0 + 0.002 * most)
    reply(gather, sent[:7], 5.005)
    heard_s = 0.005 * (1.0 - HEARD_KEPT**7)
    assert gather.wakeup == pytest.approx(5.0 + heard_s + 0.002 * most)
    reply(gather, sent[7:8], 5.006)
    heard_s = heard_s * HEARD_KEPT + 0.006 * (1.0 - HEARD_KEPT)
    assert gather.wakeup == pytest.approx(5.0 + heard_s + 0.002 * 2)


def test_answers_of_one_instant_count_as_many_whichever_frames_they_come_in() -> None:
    """Two frames of one leaf in one instant say what one of both would."""
    one, sent = started(Adaptive(), priced(0.002))
    reply(one, sent[:7], 5.005)
    other, sent = started(Adaptive(), priced(0.002))
    reply(other, sent[:3], 5.005)
    reply(other, sent[3:7], 5.005)
    assert one.heard_s == pytest.approx(other.heard_s)


def test_an_alarm_of_before_the_latest_answer_does_nothing() -> None:
    """The driver's timer may be earlier than what the gather wants by now."""
    gather, sent = started(Adaptive(), priced(0.002))
    reply(gather, sent[:9], 5.007)
    late_s = gather.wakeup
    assert late_s is not None
    assert ring(gather, late_s - 0.0001) == []
    assert gather.wakeup == late_s
    assert ring(gather, late_s + 0.0001) == [9]


def test_all_that_holds_a_query_up_is_hedged_together() -> None:
    """One of two late legs hedged alone would shorten nothing."""
    gather, sent = started(Adaptive(), priced(0.002))
    reply(gather, sent[2:], 5.004)
    assert ring(gather, 5.0081) == [0, 1]


def test_a_query_is_hedged_only_once_one_of_several_leaves_has_answered() -> None:
    """Before that nobody knows whether it is the leaves or the query that is slow."""
    shards = [(shard, leaves(2)) for shard in range(4)]
    gather = Gather(shards, Adaptive(), priced(0.002), 5.0 + DEADLINE_S)
    sent = [send.attempt for send in gather.start(5.0)]
    assert gather.leaves == 4
    assert gather.wakeup == 5.0 + DEADLINE_S
    reply(gather, sent[:1], 5.004)
    assert ring(gather, 5.020) == [1, 2, 3]


def test_a_leg_given_up_has_not_to_be_paid_for() -> None:
    """The silence that is worth hedging becomes shorter, and no failure breaks it."""
    gather, sent = started(Adaptive(), priced(0.002))
    reply(gather, sent[:7], 5.004)
    heard_s = gather.heard_s
    gather.handle(AttemptFailed(sent[7], "bad_query"), 5.005)
    assert gather.heard_s == heard_s
    assert gather.wakeup == pytest.approx(5.0 + heard_s + 0.002 * 2)


def test_a_failure_is_no_answer_to_the_quorum() -> None:
    """Fast errors do not make those late that are at work."""
    gather, sent = started(Sibling(quorum=0.5, factor=2.0), terms())
    for attempt in sent[:5]:
        gather.handle(AttemptFailed(attempt, "bad_query"), 5.001)
    reply(gather, sent[5:8], 5.010)
    assert gather.quorum_s is None


def test_the_price_is_learned_from_queries_that_live_by_it() -> None:
    """A query that was not hedged makes hedging cheaper; one of another policy says nothing."""
    for policy, learns in ((Adaptive(), True), (Fixed(0.050), False)):
        given = priced(0.002)
        gather, sent = started(policy, given)
        reply(gather, sent, 5.001)
        assert gather.outcome is not None
        assert given.pace.price_s is not None
        assert (given.pace.price_s < 0.002) == learns
