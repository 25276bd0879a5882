"""Fleets for tests of probation: some leaves slower than others, looked at, and probed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from root.budget import Budget, BudgetTerms
from root.probation import LOOK_S, PROBE_EVERY_S, Probation
from root.ranking import Leaf, Probe
from tests.root.conftest import LONG_AGO_S, PLENTY, busy

USUAL_S = 0.010
"""What a leaf takes unless a test says otherwise."""


def fleet(count: int, slow: dict[int, float] | None = None) -> list[Leaf]:
    """Leaves that are in use all the time, some of them slower than usual."""
    made = [busy(Leaf(f"leaf-{i}", LONG_AGO_S, USUAL_S)) for i in range(count)]
    for number, latency_s in (slow or {}).items():
        made[number].latency_s = latency_s
    return made


def ring(made: Sequence[Leaf]) -> list[tuple[Leaf, ...]]:
    """Shard i on leaves i and i + 1, round the fleet."""
    return [(leaf, made[(i + 1) % len(made)]) for i, leaf in enumerate(made)]


def look_for(
    probation: Probation,
    replicas: Sequence[Sequence[Leaf]],
    seconds: float,
    start_s: float = 0.0,
) -> float:
    """Look as often as it counts, for so long; return when that was over."""
    looks = round(seconds / LOOK_S)
    for look in range(looks + 1):
        probation.look(replicas, start_s + look * LOOK_S)
    return start_s + looks * LOOK_S


def probation_of(budget: BudgetTerms = PLENTY) -> Probation:
    """Nobody on probation yet, at time 0."""
    return Probation(Budget(budget, 0.0), 0.0)


class Sent(Probe):
    """A probe that a test ends."""

    def __init__(self) -> None:
        self._fate = "in_flight"

    @property
    def fate(self) -> str:
        """What became of it."""
        return self._fate

    def end(self) -> None:
        """Whatever comes of it: it has ended."""
        self._fate = "lost"


def probed(leaf: Leaf, took_s: Iterable[float], start_s: float) -> float:
    """Probe it as often as is due; return when the last one was."""
    now = start_s
    for seconds in took_s:
        now += PROBE_EVERY_S
        probe = Sent()
        leaf.probed_by(probe, now)
        probe.end()
        leaf.probe_took(seconds)
    return now
