"""Tied copies: one of two is dropped, which is no failure, costs nothing, and is counted."""

from __future__ import annotations

import pytest

from root.budget import BudgetTerms
from root.conduct import FailureReason
from root.race import Attempt, Race, Terms
from root.ranking import Leaf
from tests.root.conftest import NOTHING_EXTRA, leaves, terms

ONE_TOKEN = BudgetTerms(max_extra_load=1.0, floor_per_s=0.0, burst=1.0)


def started(replicas: list[Leaf], given: Terms) -> tuple[Race, Attempt]:
    """A race whose first copy, sent at time 0, names a twin."""
    race = Race(0, 7, replicas)
    first = race.start(0, given, 0.0, tied=True)
    assert first is not None
    return race, first


def tied(given: Terms, replicas: int = 2) -> tuple[Race, Attempt, Attempt]:
    """A race with both copies on their way."""
    race, first = started(leaves(replicas), given)
    second = race.hedge(1, given, 0.001, first)
    assert isinstance(second, Attempt)
    return race, first, second


def dropped(race: Race, attempt: Attempt, given: Terms, now: float = 0.010) -> Attempt | None:
    return race.failed(attempt, "twin_began", 2, given, now)


def test_the_two_copies_name_each_other() -> None:
    """The second goes to the leaf that the first one names, and is an extra attempt."""
    given = terms()
    _, first, second = tied(given, replicas=3)
    assert (first.kind, second.kind) == ("primary", "tied")
    assert (first.twin, second.twin) == (second.leaf, first.leaf)
    assert first.leaf is not second.leaf
    assert (given.tally.hedged, given.ledger.sent["tied"]) == (1, 1)


def test_a_shard_with_one_replica_has_no_twin() -> None:
    """Its only leg is a plain one."""
    _, first = started(leaves(1), terms())
    assert first.twin is None


@pytest.mark.parametrize("why", ["lost", "tried"])
def test_a_twin_that_is_lost_or_has_been_tried_gets_no_copy(why: str) -> None:
    """Nobody else does either: the first copy does not know of him."""
    given = terms(attempts_max=3)
    race, first = started(leaves(3), given)
    assert first.twin is not None
    if why == "lost":
        first.twin.connected = False
    else:
        race.probe(1, first.twin, given, 0.0)
    assert race.hedge(2, given, 0.001, first) == "no_candidate"


def test_a_copy_without_a_token_is_denied() -> None:
    """The first copy goes on alone."""
    given = terms(budget=NOTHING_EXTRA)
    race, first = started(leaves(2), given)
    assert race.hedge(1, given, 0.001, first) == "denied"
    assert race.in_flight == 1


@pytest.mark.parametrize("which", [0, 1])
def test_a_dropped_copy_is_no_failure(which: int) -> None:
    """Whichever began, the race waits for it; nobody is to blame, and the token comes back."""
    given = terms(budget=ONE_TOKEN)
    race, *pair = tied(given)
    assert given.budget.level(0.0) == 0.0
    loser, winner = pair[which], pair[1 - which]
    assert dropped(race, loser, given) is None
    assert (loser.fate, loser.dropped, race.decided, race.in_flight) == (
        "cancelled",
        True,
        False,
        1,
    )
    assert given.budget.level(0.0) == 1.0
    assert sum(given.ledger.failures.values()) == 0
    assert loser.leaf.penalty(0.010) == 1.0
    winner.service_us = 15_000
    assert race.replied(winner, "answer", given, 0.020) == ()
    assert (race.reply, winner.fate) == ("answer", "won")
    assert (given.ledger.tied_dropped, given.ledger.tied_duplicates) == (1, 0)
    assert given.ledger.in_flight == 0
    assert given.ledger.hedge_wins == (which == 0)


def test_the_leaf_of_a_dropped_copy_is_as_slow_as_it_was_at_least() -> None:
    """The wait in its queue is a censored sample, of the leaf and of the history."""
    given = terms()
    race, first, _ = tied(given)
    known_s, samples = first.leaf.latency_s, given.history.samples
    dropped(race, first, given, 0.500)
    assert first.leaf.latency_s > known_s
    assert given.history.samples == samples + 1


@pytest.mark.parametrize("drop_first", [True, False])
@pytest.mark.parametrize("reason", ["gone", "error"])
def test_where_the_one_that_began_fails_the_other_leaf_is_asked_again(
    drop_first: bool, reason: FailureReason
) -> None:
    """It has had nothing but a place in its queue; in whichever order the news comes."""
    given = terms(budget=ONE_TOKEN)
    race, first, second = tied(given)
    news = [(first, reason), (second, "twin_began")]
    if drop_first:
        news.reverse()
    sent = [race.failed(attempt, why, 2, given, 0.010) for attempt, why in news]
    assert sent[0] is None
    again = sent[1]
    assert again is not None
    assert (again.leaf, again.kind, again.twin) == (second.leaf, "failover", None)
    assert (race.decided, race.in_flight) == (False, 1)


def test_one_that_is_asked_again_is_not_asked_a_third_time() -> None:
    """When that fails too, the race is lost."""
    given = terms()
    race, first, second = tied(given)
    dropped(race, second, given)
    again = race.failed(first, "error", 2, given, 0.020)
    assert again is not None
    assert race.failed(again, "error", 3, given, 0.030) is None
    assert race.missing == "error"


def test_both_copies_may_be_worked_on() -> None:
    """The first answer wins, the other one is cancelled, and the duplicate is counted once."""
    given = terms(budget=ONE_TOKEN)
    race, first, second = tied(given)
    second.service_us = 10_000
    assert list(race.replied(second, "answer", given, 0.011)) == [first]
    first.service_us = 12_000
    assert race.failed(first, "cancelled", 2, given, 0.013) is None
    assert (given.ledger.tied_duplicates, given.ledger.tied_dropped) == (1, 0)
    assert given.ledger.wasted_service_us == 12_000
    assert given.budget.level(0.0) == 0.0


def test_a_copy_that_the_winner_s_cancel_finds_in_the_queue_costs_nothing() -> None:
    """Where the leaf's own word was lost: its token comes back, once."""
    given = terms(budget=ONE_TOKEN)
    race, first, second = tied(given)
    first.service_us = 10_000
    race.replied(first, "answer", given, 0.011)
    race.failed(second, "cancelled", 2, given, 0.012)
    assert given.ledger.tied_duplicates == 0
    assert given.budget.level(0.0) == 1.0


def test_two_copies_that_were_never_begun_give_one_token_back() -> None:
    """The query ended with both in their queues."""
    given = terms(budget=BudgetTerms(max_extra_load=1.0, floor_per_s=0.0, burst=5.0))
    race, first, second = tied(given)
    assert list(race.give_up("timeout", given, 1.0)) == [first, second]
    for attempt in (first, second):
        race.failed(attempt, "cancelled", 2, given, 1.001)
    assert given.budget.level(0.0) == 5.0


def test_a_leaf_that_drops_what_is_not_tied_has_failed() -> None:
    """It is to blame, and another replica is asked."""
    given = terms()
    race = Race(0, 7, leaves(2))
    first = race.start(0, given, 0.0)
    assert first is not None
    again = dropped(race, first, given)
    assert again is not None
    assert (first.fate, again.kind, given.ledger.failures["twin_began"]) == (
        "failed",
        "failover",
        1,
    )
    assert first.leaf.penalty(0.010) > 1.0
