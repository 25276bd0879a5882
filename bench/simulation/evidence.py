"""A run, laid out for those who judge it: by request, and by race (one shard of one gather)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.simulation.spending import Spending
from bench.simulation.swarm import Run
from bench.simulation.watched import Request
from root.canary import CANCEL_S, STALL_S
from root.gather import Outcome
from root.race import LOSSES_MAX, Attempt
from root.scatter import Flight

INSTANT_S: Final = 1e-9
"""Times that are computed in two ways agree within it."""


FREE: Final = frozenset({"gone", "garbage"})
"""After these a failover takes no token: nobody does the work any more."""


class Evidence:
    """What was seen of a run. Every gather of it has been decided."""

    def __init__(self, run: Run) -> None:
        """Derive what several rules need."""
        self.run = run
        self.settings = run.swarm.settings
        self.corpus = run.swarm.corpus
        self.sent = [attempt for attempts in run.fleet.sends.values() for attempt in attempts]
        self.cases = list(_cases(run))
        took = [(case, a) for case in self.cases for a in case.attempts if case.costs(a)]
        self.spending = self._spending([a for case, a in took if not case.gave_back(a)])
        # Tokens that tied copies had for a while were not there for others.
        self.lending = self._spending([a for _, a in took])
        self._tied_s = [
            (a.sent_s, max(other.ended_s for other in case.attempts))
            for case in self.cases
            for a in case.attempts
            if a.kind == "tied"
        ]
        self._busy_s = sorted(a.ended_s for a in self.sent if a.reason == "busy")
        self._names = [leaf.leaf.name for leaf in run.fleet.leaves]

    def _spending(self, took: Sequence[Attempt]) -> Spending:
        """What the budget should have said if these attempts had each taken a token for good."""
        outcomes = map(outcome_of, self.run.fleet.sends)
        earned = [(outcome.decided_s, len(outcome.replies)) for outcome in outcomes]
        spent = [attempt.sent_s for attempt in took]
        return Spending(self.settings.budget, self.corpus.shards, earned, spent)

    def may_be_empty(self, second: float) -> bool:
        """Whether there may have been no token: what a tied pair may still give back counts."""
        lent = sum(from_s <= second <= to_s for from_s, to_s in self._tied_s)
        return self.lending.may_be_empty(second, lent)

    def holders(self, shard: int) -> set[str]:
        """The leaves that hold a shard, when they are there."""
        pairs = zip(self._names, self.run.swarm.holdings, strict=True)
        return {name for name, held in pairs if shard in held}

    def away(self, from_s: float, to_s: float) -> set[str]:
        """Leaves that could not be asked at some time between two instants."""
        absences = self.run.fleet.absences
        return {a.leaf for a in absences if a.from_s <= to_s and a.to_s >= from_s}

    def all_away(self, from_s: float, to_s: float) -> bool:
        """Whether each leaf could not be asked at some time between two instants."""
        return set(self._names) <= self.away(from_s, to_s)

    def harm_before(self, second: float) -> bool:
        """Whether a leaf was lost at work, owed an attempt for long, or was not done with one that
        was given up, before an instant.
        """
        lost_s: dict[str, list[float]] = {}
        for absence in self.run.fleet.absences:
            lost_s.setdefault(absence.leaf, []).append(absence.from_s)
        for a in self.sent:
            by_s = min(a.ended_s, second)
            given_up_s = self.run.fleet.cancelled_s.get(a.leg, by_s)
            if by_s - a.sent_s >= STALL_S or by_s - given_up_s >= CANCEL_S - INSTANT_S:
                return True
            if any(a.sent_s <= lost <= by_s for lost in lost_s.get(a.leaf.name, ())):
                return True
        return False

    def searched(self, flight: Flight, request: Request) -> int:
        """Documents of the shards that had answered a request when a flight of it was decided."""
        documents = self.corpus.card.documents
        before = request.flights[: request.flights.index(flight) + 1]
        answered = {
            shard
            for each in before
            if each.ask.kind == flight.ask.kind
            for shard, _ in outcome_of(each).replies
        }
        return sum(documents[shard] for shard in answered)

    def wanted_share(self, request: Request) -> float:
        """The share of the documents that a request has to have searched."""
        share = request.asked.min_coverage
        return self.settings.min_coverage if share is None else share

    def busy_before(self, second: float, within_s: float) -> bool:
        """Whether a leaf was busy less than so long before an instant."""
        at = bisect_left(self._busy_s, second)
        return at > 0 and second - self._busy_s[at - 1] < within_s - INSTANT_S


@dataclass(frozen=True, slots=True)
class Case:
    """One race: the attempts on one shard, in the order of sending."""

    request: Request
    flight: Flight
    shard: int
    attempts: Sequence[Attempt] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """What its gather came to."""
        return outcome_of(self.flight)

    @property
    def deadline_s(self) -> float:
        """Its gather's."""
        return self.flight.gather.deadline_s

    @property
    def losses_max(self) -> int:
        """Leaves that may be lost under it."""
        return 0 if is_canary(self.flight) else LOSSES_MAX

    @property
    def decided_s(self) -> float:
        """When nothing more was wanted of it."""
        won = [attempt.ended_s for attempt in self.attempts if attempt.fate == "won"]
        return won[0] if won else self.outcome.decided_s

    def counted_before(self, attempt: Attempt) -> int:
        """Attempts for the answer that somebody was doing or had done when one was sent."""
        return sum(
            not ((a.reason in FREE or a.dropped) and a.ended_s <= attempt.sent_s)
            for a in self.attempts
            if a.number < attempt.number and a.kind != "probe"
        )

    def failed_at(self, second: float) -> list[Attempt]:
        """Attempts that failed, or were dropped, at an instant."""
        ended = [a for a in self.attempts if a.ended_s == second]
        return [a for a in ended if a.fate == "failed" or a.dropped]

    def costs(self, attempt: Attempt) -> bool:
        """Whether it takes a token: all but primaries, and failovers that are free."""
        if attempt.kind != "failover":
            return attempt.kind != "primary"
        return all(a.reason not in FREE for a in self.failed_at(attempt.sent_s))

    def gave_back(self, attempt: Attempt) -> bool:
        """Whether its token came back: that of tied copies of which one was never begun."""
        pair = [a for a in self.attempts if a.twin is not None]
        return attempt.kind == "tied" and any(a.done_for_nothing for a in pair)


def is_canary(flight: Flight) -> bool:
    """Whether a flight went ahead of its query, alone."""
    return flight.gather.terms.losses_max < LOSSES_MAX


def outcome_of(flight: Flight) -> Outcome:
    """What a flight came to."""
    outcome = flight.gather.outcome
    assert outcome is not None  # noqa: S101 (evidence is of gathers that have been decided)
    return outcome


def _cases(run: Run) -> Iterator[Case]:
    for request in run.requests:
        for flight in request.flights:
            outcome = outcome_of(flight)
            shards = sorted({*(shard for shard, _ in outcome.replies), *outcome.missing})
            attempts: dict[int, list[Attempt]] = {shard: [] for shard in shards}
            for attempt in flight.gather.attempts:
                attempts.setdefault(attempt.shard, []).append(attempt)
            for shard, of_shard in attempts.items():
                yield Case(request, flight, shard, of_shard)
