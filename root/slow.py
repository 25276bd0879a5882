"""The slowest queries of each minute, with their whole waterfall, to be looked at afterwards.

A percentile says that one query in a thousand took a second; this says which, and which leaf
it waited for. Kept are the slowest few of each of the last minutes, so memory is bounded
whatever the traffic, and a query that is not among them costs one comparison.

Plain synchronous code. Times are seconds of the root's clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from root.answer import milliseconds, trace_of
from root.pursuit import Phase, Pursuit
from root.race import Attempt
from root.requests import SearchRequest

MINUTE_S: Final = 60.0

MINUTES_KEPT: Final = 10
"""Long enough to come back to what an alert was about."""

KEPT_MAX: Final = 1000
"""Queries of a minute; of a hundred legs each they take some tens of megabytes."""


@dataclass(frozen=True, slots=True)
class SlowQuery:
    """One query that was slow: what it asked for and what became of each attempt.

    ``phases`` have no replies any more: of an answer only its times are kept. An attempt that
    was still in flight shows how it ended once it has.
    """

    number: int
    collection: str
    trace_id: str | None
    arrived_s: float
    took_s: float
    request: SearchRequest
    phases: Sequence[tuple[str, float, float, Sequence[Attempt]]]
    missing: Mapping[int, str]


class SlowQueries:
    """Keeps the ``kept`` slowest of each minute; 0 keeps none."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._minutes: dict[int, list[tuple[float, int, SlowQuery]]] = {}

    def note(self, pursuit: Pursuit) -> None:
        """Keep a query that is over, if it is among the slowest of the minute it came in.

        Those of ``batch`` are passed over: they are slow because they may be.
        """
        if not (self._kept and pursuit.phases) or pursuit.request.priority == "batch":
            return
        took_s = pursuit.phases[-1].outcome.decided_s - pursuit.arrived_s
        slowest = self._minute(int(pursuit.arrived_s // MINUTE_S))
        # Of two that took the same, the earlier one stays.
        rank = (took_s, -pursuit.number)
        if len(slowest) < self._kept:
            heapq.heappush(slowest, (*rank, _slow(pursuit, took_s)))
        elif rank > slowest[0][:2]:
            heapq.heapreplace(slowest, (*rank, _slow(pursuit, took_s)))

    def listed(self, now: float) -> list[dict[str, Any]]:
        """Return the minutes, newest first, each with its queries, slowest first, as JSON has it.

        ``seconds_ago`` is when a query came, counted from ``now``.
        """
        first = int(now // MINUTE_S) - MINUTES_KEPT
        return [
            {
                "minutes_ago": int(now // MINUTE_S) - minute,
                "slowest": [_described(slow, now) for *_, slow in sorted(slowest, reverse=True)],
            }
            for minute, slowest in sorted(self._minutes.items(), reverse=True)
            if minute > first
        ]

    def _minute(self, minute: int) -> list[tuple[float, int, SlowQuery]]:
        if minute not in self._minutes:
            oldest = max([minute, *self._minutes]) - MINUTES_KEPT
            self._minutes = {m: kept for m, kept in self._minutes.items() if m > oldest}
        return self._minutes.setdefault(minute, [])


def _slow(pursuit: Pursuit, took_s: float) -> SlowQuery:
    return SlowQuery(
        number=pursuit.number,
        collection=pursuit.view.collection,
        trace_id=pursuit.trace.trace_id if pursuit.trace else None,
        arrived_s=pursuit.arrived_s,
        took_s=took_s,
        request=pursuit.request,
        phases=[_times_of(phase) for phase in pursuit.phases],
        missing=dict(sorted(pursuit.missing.items())),
    )


def _times_of(phase: Phase) -> tuple[str, float, float, Sequence[Attempt]]:
    return phase.name, phase.started_s, phase.outcome.decided_s, phase.attempts


def _described(slow: SlowQuery, now: float) -> dict[str, Any]:
    return {
        "number": slow.number,
        "collection": slow.collection,
        "trace_id": slow.trace_id,
        "seconds_ago": round(now - slow.arrived_s, 3),
        "took_ms": milliseconds(slow.took_s),
        "request": slow.request,
        "missing": [{"shard": shard, "reason": why} for shard, why in slow.missing.items()],
        "trace": [trace_of(*times, slow.arrived_s) for times in slow.phases],
    }
