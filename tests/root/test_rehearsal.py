"""What hedging would have done to requests that ran without it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from bench.simulation.scripted_fleet import card
from root.budget import BudgetTerms
from root.gather import AttemptFailed, AttemptsReplied, Gather
from root.hedging import Shadow
from root.pursuit import Phase, Pursuit
from root.rehearsal import EXTRA_LOADS, REQUESTS_MIN, SIBLINGS_MIN, Rehearsal
from root.requests import SearchRequest
from root.topology import View
from tests.root.conftest import leaves, terms

LEGS = 20
OPERATOR = BudgetTerms(max_extra_load=0.05, floor_per_s=0.0, burst=100.0)


def rehearsing(operator: BudgetTerms = OPERATOR) -> Rehearsal:
    return Rehearsal(operator, Random("copies"), 0.0)


def ran(
    legs_s: Sequence[float],
    now: float,
    *,
    replicas: int = 2,
    phases: int = 1,
    name: str = "search",
) -> Pursuit:
    """A request that ran unhedged, from ``now`` on, whose legs took so long in each phase."""
    view = View(card(len(legs_s)), tuple(tuple(leaves(replicas)) for _ in legs_s))
    pursuit = Pursuit(view, now, now + 100.0, SearchRequest(q="a"))
    for _ in range(phases):
        gather = Gather(view.shard_replicas(), Shadow(), terms(), now + 100.0)
        sent = [send.attempt for send in gather.start(now)]
        for attempt in sorted(sent, key=lambda attempt: legs_s[attempt.slot]):
            gather.handle(AttemptsReplied([(attempt, "answer")]), now + legs_s[attempt.slot])
        assert gather.outcome is not None
        phase = Phase(name, "search", gather.outcome, gather.attempts, now, gather.tally)
        pursuit.note(phase)
        now = gather.outcome.decided_s
    return pursuit


def stalling(random: Random, legs: int = LEGS, stalled: float = 0.01) -> list[float]:
    """Legs of about 10 ms, of which now and then one takes 200."""
    return [0.2 if random.random() < stalled else random.uniform(0.008, 0.012) for _ in range(legs)]


def watch(rehearsal: Rehearsal, requests: int, legs: int = LEGS, stalled: float = 0.01) -> None:
    random = Random("legs")
    for number in range(requests):
        rehearsal.observe(ran(stalling(random, legs, stalled), number * 0.1))


def test_stalls_of_single_legs_would_be_hedged_away() -> None:
    """One leg in a hundred stalls for 200 ms: a budget that pays for those copies brings p95
    of 200 ms near what a query takes otherwise, and spends no more than it may.
    """
    rehearsal = rehearsing()
    watch(rehearsal, REQUESTS_MIN)
    report = rehearsal.report()
    assert report["requests"] == REQUESTS_MIN
    assert report["off"]["p95"] == pytest.approx(200.0, rel=0.01)
    enough = report["arms"]["adaptive@0.05"]
    assert enough["p95"] < 50.0
    assert 0.005 < enough["extra_load"] <= 0.05 + 100.0 / (REQUESTS_MIN * LEGS)
    assert report["recommendation"]["hedge"] == "adaptive"
    assert "ms for" in report["recommendation"]["why"]


def test_queries_that_are_slow_everywhere_are_not_worth_it() -> None:
    """One query in ten takes twenty times as long on every leg: nothing helps, and it says so."""
    rehearsal = rehearsing()
    random = Random("legs")
    for number in range(REQUESTS_MIN):
        factor = 20.0 if random.random() < 0.1 else 1.0
        legs_s = [factor * random.uniform(0.0095, 0.0105) for _ in range(LEGS)]
        rehearsal.observe(ran(legs_s, number * 0.1))
    advice = rehearsal.report()["recommendation"]
    assert (advice["hedge"], advice["max_extra_load"]) == ("off", 0.0)
    assert advice["why"] == "no budget brings p99 of 209.9 ms down by five per cent"


def test_too_few_requests_are_no_ground_for_advice() -> None:
    """A 99th percentile of a few requests is an anecdote."""
    rehearsal = rehearsing()
    watch(rehearsal, 10)
    advice = rehearsal.report()["recommendation"]
    assert (advice["hedge"], advice["max_extra_load"]) == (None, None)
    assert advice["why"] == "10 requests seen; 1000 are the least"


def test_nothing_seen_is_a_report_too() -> None:
    """All zeros, and no advice."""
    report = rehearsing().report()
    assert report["requests"] == 0
    assert report["off"]["p99"] == 0.0
    assert report["recommendation"]["hedge"] is None


def test_a_shard_on_one_leaf_cannot_be_hedged() -> None:
    """Without a second replica there is nothing to gain and nothing is spent."""
    rehearsal = rehearsing()
    random = Random("legs")
    for number in range(300):
        rehearsal.observe(ran(stalling(random), number * 0.1, replicas=1))
    for arm in rehearsal.arms:
        assert arm.extra == 0
        assert arm.times.row() == rehearsal.unhedged.row()


@pytest.mark.parametrize("legs", [1, SIBLINGS_MIN - 1])
def test_copies_of_few_legs_take_what_legs_usually_do(legs: int) -> None:
    """A leg alone has no siblings to draw from; its copy is any leg of the history."""
    rehearsal = rehearsing()
    watch(rehearsal, 1000, legs, stalled=0.02)
    arm = rehearsal.arms[-1]
    assert arm.times.quantile_ms(99.0) < 0.5 * rehearsal.unhedged.quantile_ms(99.0)


def test_what_two_phases_save_adds_up() -> None:
    """A request is as long as its phases together, hedged or not."""
    rehearsal = rehearsing()
    random = Random("legs")
    for number in range(500):
        rehearsal.observe(ran(stalling(random), number * 1.0, phases=2))
    assert rehearsal.unhedged.quantile_ms(100.0) == pytest.approx(400.0, rel=0.01)
    assert rehearsal.arms[-1].times.quantile_ms(98.0) < 100.0
    assert rehearsal.arms[-1].times.quantile_ms(50.0) > 16.0


def test_a_canary_is_part_of_a_request_that_nothing_can_shorten() -> None:
    """It goes to one shard alone, and is never hedged."""
    rehearsal = rehearsing()
    random = Random("legs")
    for number in range(500):
        rehearsal.observe(ran(stalling(random), number * 1.0, name="canary"))
    assert {arm.extra for arm in rehearsal.arms} == {0}
    assert rehearsal.arms[-1].times.row() == rehearsal.unhedged.row()


def test_a_request_with_a_shard_missing_is_left_out() -> None:
    """What its legs took is not known."""
    rehearsal = rehearsing()
    view = View(card(1), (tuple(leaves(1)),))
    pursuit = Pursuit(view, 0.0, 1.0, SearchRequest(q="a"))
    gather = Gather(view.shard_replicas(), Shadow(), terms(), 1.0)
    (send,) = gather.start(0.0)
    gather.handle(AttemptFailed(send.attempt, "error"), 0.01)
    assert gather.outcome is not None
    pursuit.note(Phase("search", "search", gather.outcome, gather.attempts, 0.0, gather.tally))
    rehearsal.observe(pursuit)
    assert rehearsal.requests == 0


def test_the_operators_budget_is_among_those_tried() -> None:
    """In order, each once; none at all is no trial."""
    loads = [arm.max_extra_load for arm in rehearsing(BudgetTerms(0.03, 0.0, 100.0)).arms]
    assert loads == sorted({*EXTRA_LOADS, 0.03})
    loads = [arm.max_extra_load for arm in rehearsing(BudgetTerms(0.0, 0.0, 100.0)).arms]
    assert loads == sorted(EXTRA_LOADS)


def test_rehearsing_rests_between_requests_whatever_they_take() -> None:
    """So many legs a second are played again: a request of 20 legs and four budgets comes again
    after 8 ms. Who is chosen is decided on arrival, so that slow requests are not the ones
    left out.
    """
    rehearsal = rehearsing()
    assert rehearsal.admits(0.0)
    rehearsal.observe(ran([0.01] * LEGS, 0.0))
    assert rehearsal.admits(0.020)
    assert not rehearsal.admits(0.0279)
    assert rehearsal.admits(0.0281)


def test_the_same_seed_gives_the_same_report() -> None:
    """Copies are drawn from a generator of its own."""
    first, second = rehearsing(), rehearsing()
    watch(first, 300)
    watch(second, 300)
    assert first.report() == second.report()
