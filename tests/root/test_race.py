"""One shard: the first answer wins, and every attempt ends once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from root.budget import BudgetTerms
from root.conduct import CONDUCT, FailureReason
from root.race import Attempt, IllegalEvent, Race, Terms
from tests.root.conftest import NOTHING_EXTRA, leaves, terms
from tests.root.race_starts import hedged, started

ONE_TOKEN = BudgetTerms(max_extra_load=1.0, floor_per_s=0.0, burst=1.0)


def test_a_race_starts_with_one_attempt_on_a_replica() -> None:
    """It knows its shard, its place and when it was sent; its leaf owes one leg more."""
    given = terms()
    race, primary = started(leaves(2), given)
    assert (primary.number, primary.slot, primary.shard) == (0, 0, 7)
    assert (primary.kind, primary.sent_s, primary.fate) == ("primary", 0.0, "in_flight")
    assert [leaf.outstanding for leaf in race.replicas] == [
        int(leaf is primary.leaf) for leaf in race.replicas
    ]
    assert given.ledger.sent["primary"] == given.ledger.in_flight == 1


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_race_without_a_connected_replica_is_lost_at_once(replicas: int) -> None:
    """Nothing is sent, and the shard is missing for want of a replica."""
    gone = leaves(replicas)
    for leaf in gone:
        leaf.connected = False
    race = Race(0, 0, gone)
    given = terms()
    assert race.start(0, given, 0.0) is None
    assert race.decided
    assert race.missing == "no_replica"
    assert given.ledger.in_flight == 0


def test_the_first_answer_wins_and_the_others_are_cancelled() -> None:
    """Here the hedge is first: it counts as a win, from its own send."""
    given = terms()
    race, primary = started(leaves(2), given)
    hedge = hedged(race, given)
    assert list(race.replied(hedge, "answer", given, 0.025)) == [primary]
    assert race.reply == "answer"
    assert (hedge.fate, primary.fate, primary.cancel_sent) == ("won", "in_flight", True)
    assert (given.ledger.hedge_wins, given.tally.hedge_wins, given.tally.cancelled) == (1, 1, 1)
    assert hedge.leaf.latency_s < primary.leaf.latency_s


def test_an_answer_without_rivals_cancels_nothing() -> None:
    """A plain leg is one send and one answer."""
    given = terms()
    race, primary = started(leaves(2), given)
    assert list(race.replied(primary, "answer", given, 0.004)) == []
    assert (primary.fate, primary.ended_s, primary.leaf.outstanding) == ("won", 0.004, 0)
    assert given.ledger.hedge_wins == 0


def test_a_second_answer_is_never_merged() -> None:
    """It ends as lost, its work as wasted; its leaf is measured, and the first answer stands."""
    given = terms()
    race, primary = started(leaves(2), given)
    hedge = hedged(race, given)
    race.replied(primary, "first", given, 0.025)
    hedge.service_us = 300
    known_s = hedge.leaf.latency_s
    assert list(race.replied(hedge, "second", given, 0.120)) == []
    assert race.reply == "first"
    assert hedge.leaf.latency_s > known_s
    assert hedge.fate == "lost"
    assert given.ledger.wasted_service_us == 300
    assert given.ledger.hedge_wins == 0


@pytest.mark.parametrize("reason", ["cancelled", "error", "gone"])
def test_whatever_ends_a_cancelled_attempt_it_was_cancelled(reason: FailureReason) -> None:
    """A lost hedge is no failure: nobody is blamed and nothing is sent in its place."""
    given = terms()
    race, primary = started(leaves(3), given)
    hedge = hedged(race, given)
    race.replied(primary, "answer", given, 0.025)
    hedge.service_us = 40
    assert race.failed(hedge, reason, 2, given, 0.026) is None
    assert (hedge.fate, hedge.reason) == ("cancelled", None)
    assert hedge.leaf.failing(0.026) == 0.0
    assert sum(given.ledger.failures.values()) == 0
    assert given.ledger.wasted_service_us == 40


def test_winners_and_losers_teach_the_history() -> None:
    """A winner counts as finished from its own send, a loser as at least so long."""
    given = terms()
    race, primary = started(leaves(2), given)
    hedge = hedged(race, given, 0.020)
    finished, censored = given.history._current.finished, given.history._current.censored
    before = sum(finished), sum(censored)
    race.replied(hedge, "answer", given, 0.030)
    assert (sum(finished), sum(censored)) == (before[0] + 1, before[1] + 1)
    assert primary.leaf.latency_s > 0.005
    race.replied(primary, "late", given, 9.0)
    assert (sum(finished), sum(censored)) == (before[0] + 1, before[1] + 1)


def test_failures_teach_the_history_nothing() -> None:
    """A fast error says nothing about how long work takes."""
    given = terms(budget=NOTHING_EXTRA)
    race, primary = started(leaves(2), given)
    before = given.history.samples
    race.failed(primary, "error", 1, given, 0.0001)
    assert given.history.samples == before


@pytest.mark.parametrize(
    "end",
    [
        lambda race, attempt, given: race.replied(attempt, "again", given, 0.005),
        lambda race, attempt, given: race.failed(attempt, "error", 1, given, 0.005),
    ],
    ids=["replied", "failed"],
)
def test_an_attempt_ends_only_once(end: Callable[[Race, Attempt, Terms], object]) -> None:
    """A second end is illegal and changes nothing."""
    given = terms()
    race, primary = started(leaves(2), given)
    race.replied(primary, "answer", given, 0.004)
    before = (race.reply, primary.leaf.outstanding, repr(primary), repr(given.ledger))
    with pytest.raises(IllegalEvent, match="attempt 0 has already won"):
        end(race, primary, given)
    assert before == (race.reply, primary.leaf.outstanding, repr(primary), repr(given.ledger))


# --- hedges ------------------------------------------------------------------------------


def test_a_hedge_goes_to_a_replica_that_has_not_been_tried() -> None:
    """With two replicas it is always the other one."""
    for seed in range(100):
        given = terms(seed=seed)
        race, primary = started(leaves(2), given)
        hedge = hedged(race, given)
        assert {primary.leaf.name, hedge.leaf.name} == {"a", "b"}
        assert (hedge.kind, given.tally.hedged) == ("hedge", 1)


def test_a_hedge_without_a_candidate_costs_nothing() -> None:
    """No other replica is connected: that is counted, and no token is spent."""
    given = terms()
    replicas = leaves(2)
    race, primary = started(replicas, given)
    for leaf in replicas:
        leaf.connected = leaf is primary.leaf
    tokens = given.budget.level(0.0)
    assert race.hedge(1, given, 0.020) == "no_candidate"
    assert (given.ledger.no_candidate, given.tally.hedged) == (1, 0)
    assert given.budget.level(0.020) == tokens


def test_a_denied_race_counts_once_however_often_it_asks() -> None:
    """An empty budget means wait; the attempt in flight goes on."""
    given = terms(budget=NOTHING_EXTRA)
    race, primary = started(leaves(2), given)
    assert [race.hedge(1, given, at_s) for at_s in (0.02, 0.03, 0.04)] == ["denied"] * 3
    assert (given.ledger.denied, given.tally.denied, given.tally.hedged) == (1, 1, 0)
    assert primary.fate == "in_flight"


def test_hedges_and_failovers_share_one_budget() -> None:
    """The token that a hedge took is not there for a failover."""
    given = terms(budget=ONE_TOKEN, attempts_max=3)
    race, primary = started(leaves(3), given)
    hedge = hedged(race, given)
    race.failed(primary, "error", 2, given, 0.021)
    assert race.failed(hedge, "error", 2, given, 0.022) is None
    assert race.missing == "error"


@pytest.mark.parametrize("attempts_max", [1, 2, 3])
def test_a_race_may_be_hedged_within_its_limit(attempts_max: int) -> None:
    """Never more attempts than attempts_max."""
    given = terms(attempts_max=attempts_max)
    race, _ = started(leaves(4), given)
    while race.may_hedge(given):
        hedged(race, given)
    assert len(race.attempts) == attempts_max


def test_a_decided_race_is_not_hedged() -> None:
    """There is nothing to help any more."""
    given = terms()
    race, primary = started(leaves(2), given)
    assert race.may_hedge(given)
    race.replied(primary, "answer", given, 0.030)
    assert not race.may_hedge(given)


# --- giving up ---------------------------------------------------------------------------


def test_giving_up_cancels_what_is_in_flight() -> None:
    """The shard is missing by the reason given; late answers do not change that."""
    given = terms()
    race, primary = started(leaves(2), given)
    hedge = hedged(race, given)
    assert list(race.give_up("timeout", given, 1.0)) == [primary, hedge]
    assert race.missing == "timeout"
    race.replied(primary, "late", given, 1.1)
    race.failed(hedge, "cancelled", 2, given, 1.2)
    assert race.reply is None
    assert (primary.fate, hedge.fate) == ("lost", "cancelled")
    assert [leaf.outstanding for leaf in race.replicas] == [0, 0]


def test_counters_come_back_to_zero_on_every_path() -> None:
    """After a thousand races of each ending no leaf owes anything, and the books balance."""
    given = terms(budget=BudgetTerms(max_extra_load=1.0, floor_per_s=0.0, burst=100_000.0))
    replicas = leaves(2)
    for _ in range(1000):
        for reason in CONDUCT:
            race, primary = started(replicas, given)
            hedge = hedged(race, given)
            race.failed(hedge, reason, 2, given, 0.03)
            race.give_up("timeout", given, 0.04)
            race.failed(primary, reason, 2, given, 0.05)
            given.budget.earn(1, 0.05)
    assert [leaf.outstanding for leaf in replicas] == [0, 0]
    assert given.ledger.in_flight == 0
    assert sum(given.ledger.sent.values()) == 2 * 1000 * len(CONDUCT)


def test_a_shard_gets_no_stream_of_hedges() -> None:
    """A burst, then four times the budget's share of its queries; another shard is another."""
    given = terms(budget=BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=100_000.0))
    replicas = leaves(2)
    sent = []
    for _ in range(1000):
        race, primary = started(replicas, given)
        sent.append(isinstance(race.hedge(1, given, 0.020), Attempt))
        race.replied(primary, "hits", given, 0.030)
        given.budget.earn(1, 0.030)
    assert all(sent[:10])
    assert 0.15 < sum(sent[200:]) / 800 < 0.25
    assert given.ledger.crowded == sent.count(False)
    assert given.ledger.no_candidate == 0
    other = Race(0, 8, replicas)
    other.start(0, given, 0.0)
    assert isinstance(other.hedge(1, given, 0.020), Attempt)
