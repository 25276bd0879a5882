"""Probes in a gather: what goes out with a query, and that the query never waits for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from root.budget import BudgetTerms
from root.gather import AlarmRang, AttemptFailed, AttemptsReplied, CancelAttempt, Gather
from root.hedging import Fixed
from root.probation import PROBE_EVERY_S, Probation
from root.race import Attempt, Terms
from root.ranking import Leaf
from tests.root.conftest import NOTHING_EXTRA, PLENTY, leaves, terms


def probing(budget: BudgetTerms = PLENTY) -> tuple[list[Leaf], Terms]:
    """Three leaves, the last of which is on probation and due at time 0, and terms to probe."""
    made = leaves(3)
    given = terms(budget=budget)
    given.probation = Probation(given.budget, 0.0)
    given.probation.put(made[2], -PROBE_EVERY_S)
    return made, given


def start(
    shards: Sequence[Sequence[Leaf]], given: Terms, now: float = 0.0
) -> tuple[Gather, list[Attempt], list[Attempt]]:
    """A gather, its first attempts, and its probes."""
    gather = Gather(enumerate(shards), Fixed(0.020), given, now + 1.0)
    sent = [send.attempt for send in gather.start(now)]
    assert gather.attempts == sent
    assert [attempt.number for attempt in sent] == list(range(len(sent)))
    probes = [attempt for attempt in sent if attempt.kind == "probe"]
    return gather, [attempt for attempt in sent if attempt.kind != "probe"], probes


def end(gather: Gather, attempts: Sequence[Attempt], now: float) -> None:
    gather.handle(AttemptsReplied([(attempt, "answer") for attempt in attempts]), now)


def test_a_query_carries_one_probe_to_a_leaf_that_is_due() -> None:
    """Of one of its shards, beside the first attempts; it costs a token and is counted."""
    made, given = probing()
    level = given.budget.level(0.0)
    gather, first, probes = start([made] * 3, given)
    assert [attempt.shard for attempt in first] == [0, 1, 2]
    assert [(probe.leaf, probe.shard) for probe in probes] == [(made[2], 0)]
    assert given.budget.level(0.0) == level - 1.0
    end(gather, first, 0.005)
    assert gather.outcome is not None
    assert given.tally.sent == 4
    assert start([made] * 3, given, 0.010)[2] == []


def test_a_query_does_not_wait_for_its_probe() -> None:
    """It is decided by the other answers, and nothing is cancelled; the late end is accepted."""
    made, given = probing()
    gather, first, probes = start([made] * 2, given)
    assert given.ledger.in_flight == 3
    actions = gather.handle(AttemptsReplied([(attempt, "answer") for attempt in first]), 0.005)
    assert list(actions) == []
    assert gather.outcome is not None
    assert gather.wakeup is None
    end(gather, probes, 3.0)
    assert (probes[0].fate, given.ledger.in_flight) == ("lost", 0)


def test_another_shard_is_probed_each_time() -> None:
    """Shards differ; a leaf is measured by all that it holds."""
    made, given = probing()
    shards = [made, made[:2], made]
    probed = []
    for turn in range(4):
        gather, first, probes = start(shards, given, turn * 0.5)
        probed += [probe.shard for probe in probes]
        end(gather, first + probes, turn * 0.5 + 0.005)
    assert probed == [0, 2, 2, 0]


def test_without_a_token_there_is_no_probe() -> None:
    """And nobody counts it as a hedge denied: nobody is worse off."""
    made, given = probing(NOTHING_EXTRA)
    assert start([made] * 3, given)[2] == []
    assert given.ledger.denied == 0


@pytest.mark.parametrize("probed", [True, False])
def test_only_terms_with_probation_probe(*, probed: bool) -> None:
    """A gather that is not comparable is given none."""
    made, given = probing()
    if not probed:
        given.probation = None
    assert bool(start([made], given)[2]) is probed


def test_a_query_about_other_shards_carries_no_probe() -> None:
    """Nor one in which the leaf on probation is the only one left, and has the shard already."""
    made, given = probing()
    level = given.budget.level(0.0)
    assert start([made[:2]], given)[2] == []
    assert start([made[2:]], given)[2] == []
    assert given.budget.level(0.0) == level


def test_a_probe_is_never_late() -> None:
    """At the alarm the first attempts are hedged, and the probe is not."""
    made, given = probing()
    gather, _, probes = start([[*made, *leaves(1)]], given)
    assert gather.wakeup == pytest.approx(0.020)
    [send] = gather.handle(AlarmRang(), 0.020)
    assert send.attempt.kind == "hedge"
    assert send.attempt.leaf is not made[2]
    assert gather.wakeup == gather.deadline_s
    assert [probe.fate for probe in probes] == ["in_flight"]


def test_the_deadline_cancels_what_is_in_flight_probes_included() -> None:
    """Of shards that have answered too; then the probe's leaf is the only one that owes."""
    made, given = probing()
    gather, first, probes = start([made] * 2, given)
    end(gather, first[:1], 0.005)
    gather._late_queue.clear()  # nothing is hedged
    actions = gather.handle(AlarmRang(), gather.deadline_s)
    assert [a.attempt for a in actions if isinstance(a, CancelAttempt)] == [probes[0], first[1]]
    assert gather.outcome is not None
    assert gather.outcome.missing == {1: "timeout"}
    gather.handle(AttemptFailed(probes[0], "cancelled"), 1.1)
    assert probes[0].fate == "cancelled"
