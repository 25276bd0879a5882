"""A scripted fleet that remembers: who asked for what, what was sent, cancelled and lost when.

What a run came to is judged afterwards, from this record and from nothing the root counts
(``bench.simulation.invariants``). Times are seconds of the loop that runs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from bench.simulation.scripted import Answer, Script
from bench.simulation.scripted_fleet import ScriptedFleet
from index_data.manifest import GenerationCard
from leaf.protocol import Query
from root.conduct import FailureReason
from root.race import Attempt
from root.requests import SearchRequest
from root.scatter import Flight


@dataclass(slots=True, eq=False)
class Request:
    """One search as its caller saw it, with the flights that it took.

    ``calm``: sent when nothing was broken, with time enough. ``left``: the caller did not wait.
    """

    number: int
    asked: SearchRequest
    query: Query
    calm: bool
    arrived_s: float
    deadline_s: float
    ended_s: float = math.nan
    body: dict[str, Any] | None = None
    error: Exception | None = None
    left: bool = False
    flights: list[Flight] = field(default_factory=list)

    @property
    def took_s(self) -> float:
        """How long its caller waited."""
        return self.ended_s - self.arrived_s


@dataclass(slots=True)
class Absence:
    """A leaf that could not be asked: it was not connected, or held nothing."""

    leaf: str
    from_s: float
    to_s: float = math.inf


ASKING: Final[ContextVar[Request]] = ContextVar("ASKING")
"""The request that the running task is about."""


class WatchedFleet(ScriptedFleet):
    """See the module's text. Primaries are sent by the task that ASKING was set in.

    ``sends`` are the attempts of each flight; legs, by number, are ``cancelled_s`` when they were
    cancelled, and ``astray`` where the leaf was not connected.
    """

    def __init__(
        self,
        generation: GenerationCard,
        holdings: Sequence[Sequence[int]],
        script: Script,
        *,
        answer: Answer,
        workers: int,
    ) -> None:
        """As a scripted fleet."""
        self.sends: dict[Flight, list[Attempt]] = {}
        self.astray: set[int] = set()
        self.cancelled_s: dict[int, float] = {}
        self.absences: list[Absence] = []
        self._absent: dict[int, Absence] = {}
        super().__init__(generation, holdings, script, answer=answer, workers=workers)

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Send a leg; a flight is noted with the request that it is of."""
        sent = self.sends.get(flight)
        if sent is None:
            sent = self.sends[flight] = []
            ASKING.get().flights.append(flight)
        sent.append(attempt)
        super().send(attempt, flight)
        if not attempt.leaf.connected:
            self.astray.add(attempt.leg)

    def cancel(self, attempt: Attempt) -> None:
        """Cancel a leg."""
        self.cancelled_s[attempt.leg] = asyncio.get_running_loop().time()
        super().cancel(attempt)

    def disconnect(self, number: int, reason: FailureReason = "gone") -> None:
        """Lose a leaf."""
        self._miss(number)
        super().disconnect(number, reason)

    def come_back(self, number: int, *, empty_handed: bool = False) -> None:
        """Have a leaf again; it can be asked once it holds its shards."""
        if empty_handed:
            self._miss(number)
        elif number in self._absent:
            self._absent.pop(number).to_s = asyncio.get_running_loop().time()
        super().come_back(number, empty_handed=empty_handed)

    def _miss(self, number: int) -> None:
        if number not in self._absent:
            now = asyncio.get_running_loop().time()
            self._absent[number] = Absence(self.leaves[number].leaf.name, now)
            self.absences.append(self._absent[number])
