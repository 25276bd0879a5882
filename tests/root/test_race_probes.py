"""Probes in a race: nobody waits for one, and it is measured to its end."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from root.conduct import FailureReason
from root.race import Attempt, Race, Terms
from root.ranking import Leaf
from tests.root.conftest import NOTHING_EXTRA, leaves, terms


@dataclass(slots=True)
class Probed:
    """A race at time 0: its first attempt on a leaf, and a probe of the leaf on probation."""

    race: Race
    given: Terms
    primary: Attempt
    probe: Attempt

    @property
    def sick(self) -> Leaf:
        return self.probe.leaf


def probed(replicas: int = 2, given: Terms | None = None) -> Probed:
    """The last of the replicas is on probation."""
    given = given or terms()
    held = leaves(replicas)
    sick = held[-1]
    sick.put_on_probation(-1.0)
    race = Race(0, 7, held)
    assert race.may_probe(sick)
    primary = race.start(0, given, 0.0)
    assert primary is not None
    assert primary.leaf is not sick
    assert race.may_probe(sick)
    probe = race.probe(1, sick, given, 0.0)
    assert not race.may_probe(sick)
    return Probed(race, given, primary, probe)


def test_a_probe_is_an_attempt_of_its_own_kind() -> None:
    """Its leaf owes it, the ledger counts it, and the trial knows when it was sent."""
    it = probed()
    assert (it.probe.kind, it.sick.outstanding, it.given.ledger.sent["probe"]) == ("probe", 1, 1)
    assert it.sick.trial is not None
    assert (it.sick.trial.probed_s, it.sick.trial.sent) == (0.0, 1)
    assert it.sick.probe is it.probe


def test_only_replicas_that_were_not_tried_are_probed() -> None:
    """A leaf that does not hold the shard is none, nor one that has the first attempt."""
    race = Race(0, 7, leaves(1))
    stranger, only = leaves(1)[0], race.replicas[0]
    only.put_on_probation(0.0)
    assert not race.may_probe(stranger)
    assert race.start(0, terms(), 0.0) is not None
    assert not race.may_probe(only)


def test_a_win_does_not_cancel_a_probe() -> None:
    """It goes on, ends as lost, and its leaf is measured by all the time that it took."""
    it = probed()
    assert list(it.race.replied(it.primary, "answer", it.given, 0.005)) == []
    assert it.race.in_flight == 1
    it.probe.service_us = 300
    known_s = it.sick.latency_s
    assert list(it.race.replied(it.probe, "answer", it.given, 0.5)) == []
    assert (it.race.reply, it.probe.fate, it.race.in_flight) == ("answer", "lost", 0)
    assert it.sick.latency_s > known_s
    assert it.sick.outstanding == 0
    assert it.given.ledger.wasted_service_us == 300


def test_a_probe_that_answers_first_wins() -> None:
    """An answer in hand is not thrown away to wait for another; but the history, which says
    when attempts on leaves with traffic are late, learns nothing from it.
    """
    it = probed()
    finished = sum(it.given.history._current.finished)
    assert list(it.race.replied(it.probe, "answer", it.given, 0.005)) == [it.primary]
    assert (it.race.reply, it.probe.fate) == ("answer", "won")
    assert sum(it.given.history._current.finished) == finished
    assert it.given.ledger.hedge_wins == 0


def test_nobody_waits_for_a_probe_where_another_replica_is_left() -> None:
    """The first attempt fails: the third replica is asked at once."""
    it = probed(replicas=3)
    failover = it.race.failed(it.primary, "error", 2, it.given, 0.001)
    assert failover is not None
    assert failover.kind == "failover"
    assert failover.leaf not in (it.primary.leaf, it.sick)


@pytest.mark.parametrize("reason", ["error", "gone", "busy"])
def test_a_probe_is_waited_for_where_nothing_else_is_left(reason: FailureReason) -> None:
    """The shard is not given up while an answer may still come."""
    it = probed()
    assert it.race.failed(it.primary, reason, 2, it.given, 0.001) is None
    assert not it.race.decided
    it.race.replied(it.probe, "answer", it.given, 0.5)
    assert (it.race.reply, it.probe.fate) == ("answer", "won")


def test_a_shard_is_missing_when_the_probe_fails_as_well() -> None:
    """Then nothing is in flight, and nothing can be started."""
    it = probed()
    it.race.failed(it.primary, "error", 2, it.given, 0.001)
    assert it.race.failed(it.probe, "error", 2, it.given, 0.002) is None
    assert it.race.missing == "error"


def test_a_failing_probe_is_nobodys_trouble() -> None:
    """The first attempt goes on; no other is sent in the probe's place, even by mistake."""
    it = probed(replicas=3)
    assert it.race.failed(it.probe, "error", 2, it.given, 0.001) is None
    assert not it.race.decided
    assert it.given.ledger.sent["failover"] == 0


def test_what_no_replica_can_answer_is_not_waited_for() -> None:
    """A query that is at fault is so on the leaf that is probed too, only later."""
    it = probed()
    it.race.failed(it.primary, "bad_query", 2, it.given, 0.001)
    assert it.race.missing == "refused"
    it.race.failed(it.probe, "bad_query", 2, it.given, 0.5)
    assert (it.probe.fate, it.race.in_flight) == ("failed", 0)


def test_a_denied_failover_leaves_the_probe() -> None:
    """Without a token for the third replica, the answer under way is waited for."""
    it = probed(replicas=3, given=terms(budget=NOTHING_EXTRA))
    assert it.race.failed(it.primary, "error", 2, it.given, 0.001) is None
    assert not it.race.decided
    it.race.replied(it.probe, "answer", it.given, 0.5)
    assert it.race.reply == "answer"


def test_a_probe_takes_no_hedge_away() -> None:
    """It does not count as one of the attempts that a leg may cost."""
    it = probed(replicas=3, given=terms(attempts_max=2))
    assert it.race.may_hedge(it.given)
    hedge = it.race.hedge(2, it.given, 0.02)
    assert isinstance(hedge, Attempt)
    assert hedge.leaf not in (it.primary.leaf, it.sick)
    assert not it.race.may_hedge(it.given)


def test_a_hedge_never_goes_to_the_leaf_that_is_probed() -> None:
    """With two replicas there is nobody else."""
    it = probed()
    assert it.race.hedge(2, it.given, 0.02) == "no_candidate"


@pytest.mark.parametrize("won", [False, True])
def test_the_end_of_the_query_cancels_probes(*, won: bool) -> None:
    """Of races that are won as well; a probe given up took at least so long, for its leaf but
    not for the history.
    """
    it = probed()
    if won:
        it.race.replied(it.primary, "answer", it.given, 0.005)
    censored = sum(it.given.history._current.censored)
    cancelled = it.race.give_up("timeout", it.given, 1.0)
    assert list(cancelled) == ([it.probe] if won else [it.primary, it.probe])
    assert it.race.missing == (None if won else "timeout")
    assert sum(it.given.history._current.censored) == censored + (not won)
    assert it.sick.latency_s > 0.005
    assert list(it.race.give_up("timeout", it.given, 1.0)) == []


def test_a_probe_that_expires_took_at_least_so_long() -> None:
    """A leaf that answers nothing in time is not known to be any faster."""
    it = probed()
    it.race.replied(it.primary, "answer", it.given, 0.005)
    it.race.failed(it.probe, "expired", 2, it.given, 2.0)
    assert it.sick.latency_s > 0.05


@pytest.mark.parametrize(("reason", "service_us"), [("cancelled", 0), ("error", 300)])
def test_a_cancelled_attempt_without_its_work_done_measures_nothing_more(
    reason: FailureReason, service_us: int
) -> None:
    """One that left the queue, or failed, says nothing of how long it would have taken."""
    it = probed()
    it.race.give_up("timeout", it.given, 0.02)
    known_s = it.primary.leaf.latency_s
    it.primary.service_us = service_us
    it.race.failed(it.primary, reason, 2, it.given, 5.0)
    assert it.primary.leaf.latency_s == known_s


def test_a_cancelled_attempt_whose_work_was_done_is_measured() -> None:
    """The wait was cancelled, not the measurement: of an ordinary attempt and of a probe."""
    it = probed()
    it.race.give_up("timeout", it.given, 0.02)
    for attempt in (it.primary, it.probe):
        known_s = attempt.leaf.latency_s
        attempt.service_us = 300
        it.race.failed(attempt, "cancelled", 2, it.given, 5.0)
        assert attempt.fate == "cancelled"
        assert attempt.leaf.latency_s > known_s + 0.2


def test_a_lost_probe_gives_no_further_attempt() -> None:
    """Two attempts have failed, which is the limit, and the probe that was left is lost with its
    leaf: that ends the race, though another replica is there.
    """
    given = terms(attempts_max=2)
    replicas = leaves(4)
    race = Race(0, 7, replicas)
    primary = race.start(0, given, 0.0)
    assert primary is not None
    sick = next(leaf for leaf in replicas if leaf is not primary.leaf)
    sick.put_on_probation(-1.0)
    probe = race.probe(1, sick, given, 0.0)
    failover = race.failed(primary, "error", 2, given, 0.001)
    assert failover is not None
    assert race.failed(failover, "error", 3, given, 0.002) is None
    assert not race.decided
    assert race.failed(probe, "gone", 3, given, 0.003) is None
    assert race.missing == "no_replica"
