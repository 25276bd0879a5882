"""One query over its shards: what it sends when, and what it makes of what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from root.gather import (
    PAUSE_S,
    Action,
    AlarmRang,
    AttemptFailed,
    AttemptsReplied,
    CallerLeft,
    CancelAttempt,
    Gather,
    SendAttempt,
)
from root.hedging import MIN_SAMPLES, NEVER_S, Fixed, Off, Policy, Progress, Quantile
from root.latency import Latency
from root.race import Attempt, Race, Terms
from root.ranking import Leaf
from tests.root.conftest import history_of, leaves, terms

DEADLINE_S = 1.0


def gather_over(
    shards: Sequence[Sequence[Leaf]],
    given: Terms,
    policy: Policy | None = None,
    deadline_s: float = DEADLINE_S,
) -> tuple[Gather, list[Attempt]]:
    """A gather started at time 0, by default with a fixed delay of 20 ms, and what it sent."""
    gather = Gather(enumerate(shards), policy or Fixed(0.020), given, deadline_s)
    return gather, [send.attempt for send in gather.start(0.0)]


def reply(gather: Gather, attempt: Attempt, now: float, answer: Any = "answer") -> list[Action]:
    return list(gather.handle(AttemptsReplied([(attempt, answer)]), now))


def ring(gather: Gather) -> tuple[float, list[Attempt]]:
    """Let the alarm ring on time; return when that was, and the hedges it sent."""
    now = gather.wakeup
    assert now is not None
    actions = gather.handle(AlarmRang(), now)
    return now, [action.attempt for action in actions if isinstance(action, SendAttempt)]


def test_every_shard_is_asked_at_once_in_order() -> None:
    """One attempt a shard, each numbered by its place."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair, pair], terms())
    assert [(a.number, a.shard, a.kind) for a in sent] == [(i, i, "primary") for i in range(3)]
    assert (gather.legs, gather.open_legs, gather.outcome) == (3, 3, None)


def test_it_is_decided_when_every_shard_has_answered() -> None:
    """Replies stand in the order of shards, whatever order they came in; nothing is missing."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair, pair], terms())
    for attempt in (sent[2], sent[0], sent[1]):
        assert gather.outcome is None
        assert reply(gather, attempt, 0.005, f"of {attempt.shard}") == []
    assert gather.outcome is not None
    assert gather.outcome.replies == [(0, "of 0"), (1, "of 1"), (2, "of 2")]
    assert (gather.outcome.missing, gather.outcome.decided_s) == ({}, 0.005)
    assert gather.wakeup is None


@pytest.mark.parametrize("shards", [0, 3])
def test_with_nobody_to_ask_it_is_decided_at_once(shards: int) -> None:
    """Shards without a replica are missing; no shards at all are nothing to wait for."""
    gather, sent = gather_over([[]] * shards, terms())
    assert sent == []
    assert gather.outcome is not None
    assert gather.outcome.missing == dict.fromkeys(range(shards), "no_replica")


def test_shards_without_a_replica_do_not_hold_up_the_others() -> None:
    """What can be asked is asked, and the rest is known to be missing."""
    gather, sent = gather_over([[], leaves(1), []], terms())
    reply(gather, sent[0], 0.005)
    assert gather.outcome is not None
    assert gather.outcome.replies == [(1, "answer")]
    assert gather.outcome.missing == {0: "no_replica", 2: "no_replica"}


@pytest.mark.parametrize("deadline_s", [0.0, -1.0])
def test_nothing_is_sent_after_the_deadline(deadline_s: float) -> None:
    """A gather that starts too late asks nobody and is decided."""
    given = terms()
    gather, sent = gather_over([leaves(2)], given, deadline_s=deadline_s)
    assert sent == []
    assert given.ledger.in_flight == 0
    assert gather.outcome is not None
    assert gather.outcome.missing == {0: "timeout"}


def test_a_failure_after_the_deadline_moves_on_to_nobody() -> None:
    """Even where the alarm for the deadline is late itself."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair], terms())
    assert gather.handle(AttemptFailed(sent[0], "gone"), DEADLINE_S) == ()
    assert gather.outcome is None
    assert gather.handle(AlarmRang(), DEADLINE_S) == [CancelAttempt(sent[1])]
    assert gather.outcome is not None
    assert gather.outcome.missing == {0: "no_replica", 1: "timeout"}


def test_at_the_deadline_it_is_decided_with_what_there_is() -> None:
    """What is open is given up as a timeout, and its attempts are cancelled."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair], terms(), Off())
    assert gather.wakeup == DEADLINE_S
    reply(gather, sent[1], 0.005)
    assert gather.handle(AlarmRang(), DEADLINE_S) == [CancelAttempt(sent[0])]
    assert gather.outcome is not None
    assert gather.outcome.replies == [(1, "answer")]
    assert gather.outcome.missing == {0: "timeout"}


def test_late_events_change_only_the_books() -> None:
    """After the outcome, answers and failures end their attempts and nothing else."""
    given = terms()
    pair = leaves(2)
    gather, sent = gather_over([pair, pair], given)
    gather.handle(AlarmRang(), DEADLINE_S)
    before = repr(gather.outcome)
    assert reply(gather, sent[0], 2.0) == []
    assert gather.handle(AttemptFailed(sent[1], "cancelled"), 2.0) == ()
    assert gather.handle(AlarmRang(), 2.0) == ()
    assert gather.handle(CallerLeft(), 2.0) == ()
    assert repr(gather.outcome) == before
    assert given.ledger.in_flight == 0
    assert [leaf.outstanding for leaf in pair] == [0, 0]


def test_when_the_caller_leaves_everything_is_cancelled() -> None:
    """Nobody waits for the answer: no leaf should work for it."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair], terms())
    assert gather.handle(CallerLeft(), 0.010) == [CancelAttempt(a) for a in sent]
    assert gather.outcome is not None
    assert gather.wakeup is None


def test_a_failure_moves_on_in_the_same_instant() -> None:
    """The next replica is asked when the failure comes, not when the hedge would be due."""
    gather, sent = gather_over([leaves(2)], terms())
    (action,) = gather.handle(AttemptFailed(sent[0], "error", "broken"), 0.001)
    assert isinstance(action, SendAttempt)
    assert (action.attempt.kind, action.attempt.sent_s) == ("failover", 0.001)
    assert gather.outcome is None


def test_the_last_failure_speaks_for_its_shard() -> None:
    """Its reason, and its words where it has any, are in the outcome."""
    lone = [leaves(1), leaves(1)]
    gather, sent = gather_over(lone, terms())
    gather.handle(AttemptFailed(sent[0], "bad_query", "no such field"), 0.001)
    gather.handle(AttemptFailed(sent[1], "error"), 0.001)
    assert gather.outcome is not None
    assert gather.outcome.missing == {0: "refused", 1: "error"}
    assert gather.outcome.details == {0: "no such field"}


def test_an_unknown_event_is_a_fault_of_the_driver() -> None:
    """The table of events is complete."""
    gather, _ = gather_over([leaves(1)], terms())
    with pytest.raises(AssertionError):
        gather.handle("event", 0.0)  # type: ignore[arg-type]


class Undecided(Race):
    """A race that answers a hedge with a word that is in no table."""

    def hedge(self, *_: Any) -> Any:
        return "perhaps"


def test_an_unknown_word_from_a_race_is_a_fault_of_ours() -> None:
    """The table of what a hedge may come to is complete."""
    gather = Gather([(0, leaves(2))], Fixed(0.020), terms(), DEADLINE_S)
    gather._races = [Undecided(0, 0, leaves(2))]
    gather.start(0.0)
    with pytest.raises(AssertionError):
        ring(gather)


# --- hedging -----------------------------------------------------------------------------


def test_late_legs_are_hedged_longest_waiting_first() -> None:
    """At the alarm each leg that is late gets a copy on the other replica, the rest wait."""
    pair = leaves(2)
    gather, sent = gather_over([pair, pair, pair], terms())
    reply(gather, sent[1], 0.005)
    now, hedges = ring(gather)
    assert now == 0.020
    assert [(h.shard, h.kind) for h in hedges] == [(0, "hedge"), (2, "hedge")]
    assert all(h.leaf is not sent[h.shard].leaf for h in hedges)
    assert gather.wakeup == DEADLINE_S


def test_the_winner_cancels_the_other() -> None:
    """When the hedge answers, its primary is told that it is not wanted."""
    gather, (primary,) = gather_over([leaves(2)], terms())
    _, (hedge,) = ring(gather)
    assert reply(gather, hedge, 0.030) == [CancelAttempt(primary)]
    tally = gather.tally
    assert (tally.sent, tally.hedged, tally.hedge_wins, tally.cancelled) == (2, 1, 1, 1)


def test_only_what_is_late_is_hedged() -> None:
    """A failover counts from its own send; an alarm that rings early hedges nothing."""
    pair = leaves(2)
    gather, sent = gather_over([leaves(3), pair], terms(attempts_max=3))
    gather.handle(AttemptFailed(sent[0], "error"), 0.015)
    assert not gather.handle(AlarmRang(), 0.019)
    assert [h.shard for h in ring(gather)[1]] == [1]
    now, hedges = ring(gather)
    assert now == pytest.approx(0.035)
    assert [h.shard for h in hedges] == [0]


def test_a_lone_replica_is_never_asked_twice() -> None:
    """There is nobody else: that is counted, and the leg waits for its answer."""
    given = terms()
    gather, (primary,) = gather_over([leaves(1)], given)
    assert ring(gather)[1] == []
    assert (given.ledger.no_candidate, gather.wakeup) == (1, DEADLINE_S)
    reply(gather, primary, 0.9)
    assert gather.outcome is not None
    assert gather.outcome.missing == {}


def test_a_replica_lost_meanwhile_is_no_candidate() -> None:
    """When the other one has gone the leg stays where it is."""
    given = terms()
    replicas = leaves(2)
    gather, (primary,) = gather_over([replicas], given)
    for leaf in replicas:
        leaf.connected = leaf is primary.leaf
    assert ring(gather)[1] == []
    assert given.ledger.no_candidate == 1


def test_an_empty_budget_means_wait() -> None:
    """No hedge is sent; it is tried again after a pause; the attempt in flight is left alone."""
    given = terms()
    while given.budget.spend(0.0, needed=True):
        pass
    gather, (primary,) = gather_over([leaves(2)], given)
    assert ring(gather)[1] == []
    assert gather.wakeup == pytest.approx(0.020 + PAUSE_S)
    assert (primary.fate, primary.cancel_sent) == ("in_flight", False)
    given.budget.earn(101, 0.020)
    assert len(ring(gather)[1]) == 1


def test_answers_earn_tokens() -> None:
    """A decided gather pays in what its answered legs are worth."""
    pair = leaves(2)
    given = terms()
    while given.budget.spend(0.0, needed=True):
        pass
    gather, sent = gather_over([pair, pair, pair], given)
    for attempt in sent[:2]:
        reply(gather, attempt, 0.005)
    gather.handle(AlarmRang(), DEADLINE_S)
    assert given.budget.level(DEADLINE_S) == 2.0


@pytest.mark.parametrize("samples", [0, MIN_SAMPLES - 1])
def test_without_a_history_only_failures_start_another_attempt(samples: int) -> None:
    """Whatever the policy's delay: nobody knows yet what late is."""
    gather, _ = gather_over([leaves(2)], terms(history=history_of(0.010, samples)))
    for _ in range(3):
        assert ring(gather)[1] == []
    assert len(gather.attempts) == 1


def test_a_history_of_nothing_but_losers_hedges_nothing() -> None:
    """Nobody knows what an answer typically takes where there was none."""
    history = Latency(0.0)
    for _ in range(2 * MIN_SAMPLES):
        history.at_least(0.5)
    gather, _ = gather_over([leaves(2)], terms(history=history))
    assert ring(gather)[1] == []


def test_push_back_rests_hedging() -> None:
    """After a leaf said busy the query's late legs wait, and are hedged when the rest is over."""
    given = terms()
    gather, sent = gather_over([leaves(2), leaves(2)], given, deadline_s=9.0)
    (failover,) = gather.handle(AttemptFailed(sent[0], "busy"), 0.001)
    assert isinstance(failover, SendAttempt)
    reply(gather, failover.attempt, 0.002)
    alarms = [ring(gather)]
    while not alarms[-1][1]:
        alarms.append(ring(gather))
    assert alarms[0][0] == 0.020
    assert alarms[-1][0] == pytest.approx(1.001, abs=PAUSE_S)


def test_no_hedge_when_too_little_time_is_left() -> None:
    """An answer typically takes 10 ms: with 5 ms to the deadline a copy could not help."""
    gather, _ = gather_over([leaves(2)], terms(), Fixed(0.995))
    now, hedges = ring(gather)
    assert (now, hedges) == (0.995, [])


def test_a_hedge_that_fails_is_replaced() -> None:
    """A late leg whose hedge is lost is helped again, as long as its limit allows it."""
    replicas = leaves(3)
    gather, (primary,) = gather_over([replicas], terms())
    now, (hedge,) = ring(gather)
    hedge.leaf.connected = False
    assert gather.handle(AttemptFailed(hedge, "gone"), now + 0.001) == ()
    assert gather.wakeup is not None
    assert gather.wakeup <= now + 0.001
    (again,) = gather.handle(AlarmRang(), now + 0.001)
    assert isinstance(again, SendAttempt)
    assert again.attempt.leaf not in (primary.leaf, hedge.leaf)


def test_a_failed_hedge_counts_against_the_limit() -> None:
    """With two attempts made no third is, and the slow primary still answers."""
    gather, (primary,) = gather_over([leaves(3)], terms())
    now, (hedge,) = ring(gather)
    gather.handle(AttemptFailed(hedge, "error"), now + 0.001)
    assert gather.wakeup == DEADLINE_S
    reply(gather, primary, 0.9)
    assert gather.outcome is not None
    assert gather.outcome.missing == {}


def test_a_failed_primary_leaves_its_hedge_racing() -> None:
    """An attempt is in flight, so nothing is decided and nothing else is sent."""
    gather, (primary,) = gather_over([leaves(3)], terms(attempts_max=3))
    _, (hedge,) = ring(gather)
    assert gather.handle(AttemptFailed(primary, "error"), 0.021) == ()
    now, (third,) = ring(gather)
    assert now == pytest.approx(hedge.sent_s + 0.020)
    assert third.leaf not in (primary.leaf, hedge.leaf)


@dataclass(frozen=True, slots=True)
class AfterHalf:
    """Late at once when half of the query's own legs have answered."""

    name: str = "after half"
    watches_siblings: bool = True
    quorum: float = 0.5
    paced: bool = False

    def delay_s(self, history: Latency, progress: Progress) -> float:
        return 0.0 if 2 * progress.open_legs <= progress.legs else NEVER_S


def test_a_policy_that_watches_siblings_is_asked_after_every_answer() -> None:
    """Its delay may come to an end with the query's own progress."""
    pair = leaves(2)
    gather, sent = gather_over([pair] * 4, terms(), AfterHalf())
    reply(gather, sent[0], 0.004)
    assert gather.wakeup == DEADLINE_S
    reply(gather, sent[3], 0.005)
    assert gather.wakeup is not None
    assert gather.wakeup <= 0.005
    actions = gather.handle(AlarmRang(), 0.005)
    assert [a.attempt.shard for a in actions] == [1, 2]


def test_the_quantile_is_taken_at_the_start() -> None:
    """A gather hedges by the history as it was when it was started."""
    gather, _ = gather_over([leaves(2)], terms(history=history_of(0.030)), Quantile(0.9))
    now, hedges = ring(gather)
    assert now == pytest.approx(0.030, rel=0.05)
    assert len(hedges) == 1
