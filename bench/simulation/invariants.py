"""What must hold of every swarm, whatever was drawn.

A rule is a function that yields a sentence for each breach; its name, in words, is the
invariant's. To add one, write it and put it in the table of what it is about: the run (here),
a request (``request_rules``) or a race (``race_rules``). Rules judge what was seen on the way
to and from leaves and what callers got; of what the root says of itself they ask whether it is
true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final, NamedTuple

from bench.simulation import race_rules, request_rules
from bench.simulation.evidence import Evidence
from bench.simulation.swarm import Run
from root.ledger import SECOND_ATTEMPTS

RECOVERED_TIMES: Final = 3.0
RECOVERED_S: Final = 0.02
"""After the trouble the median search may take three times as long as before it, and twenty
milliseconds more: fifteen searches each, of which some were hedged. What has not recovered
takes a timeout, or the two hundred milliseconds of a slow leaf."""


UNLEARNED: Final = frozenset({"fixed", "together"})
"""Policies that hedge at the same delay whatever has happened."""

HEDGED_MIN: Final = 15
"""Of at most a few hundred legs: by chance there would hardly ever be none in as many again."""


class Breach(NamedTuple):
    """An invariant that did not hold, and what was seen instead."""

    seed: int
    invariant: str
    seen: str


def the_budget_is_kept(evidence: Evidence) -> Iterator[str]:
    """In every window of time, however it is chosen."""
    for second, tokens in evidence.spending.overdrawn_s:
        terms = evidence.settings.budget
        yield f"{tokens} attempts too many in a window that ends at {second} s, with {terms}"


def every_attempt_is_accounted_for(evidence: Evidence) -> Iterator[str]:
    """The root's ledger says what was sent and how it ended, and no leaf owes anything."""
    ledger = evidence.run.searches.ledger
    kinds = Counter(attempt.kind for attempt in evidence.sent)
    fates = Counter(attempt.fate for attempt in evidence.sent)
    if any(number != kinds[kind] for kind, number in ledger.sent.items()):
        yield f"sent {dict(kinds)}, counted {ledger.sent}"
    if any(number != fates[fate] for fate, number in ledger.ended.items()):
        yield f"ended {dict(fates)}, counted {ledger.ended}"
    for flight, sent in evidence.run.fleet.sends.items():
        if list(map(id, sent)) != list(map(id, flight.gather.attempts)):
            yield f"sent {sent}, ordered {flight.gather.attempts}"
    for leaf in evidence.run.fleet.leaves:
        if leaf.owed or leaf.leaf.outstanding:
            yield f"{leaf.leaf.name} owes {leaf.owed}, is thought to owe {leaf.leaf.outstanding}"


def nothing_is_left_alive(evidence: Evidence) -> Iterator[str]:
    """No task and no timer."""
    if evidence.run.tasks_left or evidence.run.timers_left:
        yield f"{evidence.run.tasks_left} tasks, {evidence.run.timers_left} timers"


def latency_returns(evidence: Evidence) -> Iterator[str]:
    """A while after the trouble, searches take about as long as before it."""
    before, after = (
        median(request.took_s for request in evidence.run.calm(after=after))
        for after in (False, True)
    )
    if after > RECOVERED_TIMES * before + RECOVERED_S:
        yield f"the median search took {after} s, and {before} s before the trouble"


def hedging_returns(evidence: Evidence) -> Iterator[str]:
    """Where it does not depend on what was learned, and there are tokens, it goes on as before."""
    if evidence.settings.hedge not in UNLEARNED:
        return
    before, after = (
        [
            attempt.kind in SECOND_ATTEMPTS
            for request in evidence.run.calm(after=after)
            for flight in request.flights
            for attempt in flight.gather.attempts
        ]
        for after in (False, True)
    )
    arrived_s = [request.arrived_s for request in evidence.run.calm(after=True)]
    could = not any(map(evidence.lending.may_be_empty, arrived_s))
    if sum(before) >= HEDGED_MIN and could and not sum(after):
        yield f"{sum(before)} hedges before the trouble, and none after it"


RULES: Final[tuple[Callable[[Evidence], Iterator[str]], ...]] = (
    the_budget_is_kept,
    every_attempt_is_accounted_for,
    nothing_is_left_alive,
    latency_returns,
    hedging_returns,
)


def breaches(run: Run) -> list[Breach]:
    """Return every breach of a run: of requests, of races, of the run.

    Where something was raised that nobody waited for, or a gather was never decided, that is all:
    the rest would follow from it.
    """
    seed = run.seed
    if run.raised:
        return [Breach(seed, "nothing is raised", raised) for raised in run.raised]
    if any(flight.gather.outcome is None for flight in run.fleet.sends):
        return [Breach(seed, "every gather is decided", "one is not")]
    evidence = Evidence(run)
    found = [
        Breach(seed, _in_words(rule), f"search {request.number}: {seen}")
        for request in run.requests
        for rule in request_rules.RULES
        for seen in rule(evidence, request)
    ]
    found += [
        Breach(
            seed, _in_words(of_races), f"search {case.request.number}, shard {case.shard}: {seen}"
        )
        for case in evidence.cases
        for of_races in race_rules.RULES
        for seen in of_races(evidence, case)
    ]
    found += [
        Breach(seed, _in_words(of_runs), seen) for of_runs in RULES for seen in of_runs(evidence)
    ]
    return found


def _in_words(rule: Callable[..., Iterator[str]]) -> str:
    return rule.__name__.replace("_", " ")
