"""One request on its way through its phases: what it pinned and what has come of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from leaf.selection import Selection, SortedRow
from root.conduct import FailureReason, MissingReason
from root.cursor import Position
from root.facets import Facet
from root.gather import Outcome
from root.language import Fault
from root.ledger import Tally
from root.race import Attempt
from root.requests import SearchRequest
from root.topology import View
from root.tracing import TraceContext


@dataclass(frozen=True, slots=True)
class Phase:
    """One gather, done: what came of it and the attempts it took."""

    name: str
    query_class: str
    outcome: Outcome
    attempts: Sequence[Attempt]
    started_s: float
    tally: Tally


@dataclass(slots=True)
class Pursuit:
    """One request on its way: what it pinned, and the phases done so far.

    ``selection`` is what it filters, sorts and counts by, and ``facets`` what was counted.
    ``position`` is where its cursor goes on, ``asked`` what a next cursor will name, and
    ``last_row`` the last hit where they are sorted by fields.
    ``number`` is that of the request at this root, ``trace`` the trace it belongs to; ``faults``
    are what was not understood of it.
    """

    view: View
    arrived_s: float
    deadline_s: float
    request: SearchRequest
    number: int = 0
    trace: TraceContext | None = None
    phases: list[Phase] = field(default_factory=list)
    missing: dict[int, MissingReason] = field(default_factory=dict)
    details: dict[int, str] = field(default_factory=dict)
    selection: Selection | None = None
    facets: list[Facet] = field(default_factory=list)
    position: Position | None = None
    asked: str = ""
    last_row: SortedRow | None = None
    faults: tuple[Fault, ...] = ()

    def note(self, phase: Phase) -> None:
        """Add a phase; a shard missing in any is missing from the answer, unless it was asked
        again and has answered.
        """
        self.phases.append(phase)
        for shard, _ in phase.outcome.replies:
            self.missing.pop(shard, None)
        for shard, reason in phase.outcome.missing.items():
            self.missing.setdefault(shard, reason)
        self.details.update(phase.outcome.details)

    def refused_as(self, reason: FailureReason) -> bool:
        """Whether any attempt was refused or failed for this reason."""
        return any(a.reason == reason for phase in self.phases for a in phase.attempts)

    @property
    def retry_after_s(self) -> int:
        """When to try again after leaves were busy, by the longest of their hints; whole seconds,
        1 or more.
        """
        hints_ms = [a.retry_ms for phase in self.phases for a in phase.attempts]
        return max(1, ceil(max(hints_ms, default=0) / 1000.0))

    @property
    def searched(self) -> int:
        """Documents in the shards that have answered."""
        documents = self.view.card.documents
        return sum(n for shard, n in enumerate(documents) if shard not in self.missing)
