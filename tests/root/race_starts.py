"""Races under way, for tests of what follows."""

from __future__ import annotations

from root.race import Attempt, Race, Terms
from root.ranking import Leaf


def started(replicas: list[Leaf], given: Terms) -> tuple[Race, Attempt]:
    """A race whose primary was sent at time 0."""
    race = Race(0, 7, replicas)
    primary = race.start(0, given, 0.0)
    assert primary is not None
    return race, primary


def hedged(race: Race, given: Terms, now: float = 0.020) -> Attempt:
    hedge = race.hedge(1, given, now)
    assert isinstance(hedge, Attempt)
    return hedge
