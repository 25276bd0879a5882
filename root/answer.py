"""The JSON of an answer: built once, from what a pursuit has come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from leaf.protocol import FetchedDocument
from root.facets import facets_body, nothing_counted
from root.ledger import Tally
from root.merge import Candidate, Finalists
from root.paging import next_cursor
from root.pursuit import Phase, Pursuit
from root.race import Attempt


def search_body(
    pursuit: Pursuit, found: Finalists, documents: Mapping[int, FetchedDocument]
) -> dict[str, Any]:
    """Return the body of a search's answer.

    ``documents`` are the finalists by ordinal, with final scores, as far as they were fetched.
    ``took_ms`` is left for the face that knows when the answer leaves.
    """
    missing = [
        {"shard": shard, "reason": reason} for shard, reason in sorted(pursuit.missing.items())
    ]
    view = pursuit.view
    page = _page(found, documents, pursuit.request.k)
    return {
        "hits": [_hit(c, documents[c.ordinal], explain=pursuit.request.explain) for c in page],
        "total": {"value": found.total, "relation": "gte" if missing else "eq"},
        "facets": _facets(pursuit),
        "coverage": {
            "complete": not missing,
            "shards": len(view.replicas),
            "answered": len(view.replicas) - len(missing),
            "documents": view.documents,
            "searched": pursuit.searched,
            "missing": missing,
        },
        **attempted(pursuit),
        "generation": view.card.generation,
        "took_ms": 0.0,
        "next": next_cursor(pursuit, found, [c.ordinal for c in page]),
        "warnings": [fault._asdict() for fault in pursuit.faults],
        "did_you_mean": None,
    }


def attempted(pursuit: Pursuit) -> dict[str, Any]:
    """Return what all phases so far have sent, as members of the answer."""
    members: dict[str, Any] = {"attempts": _attempts(pursuit.phases)}
    if pursuit.request.trace:
        members["trace"] = [
            trace_of(p.name, p.started_s, p.outcome.decided_s, p.attempts, pursuit.arrived_s)
            for p in pursuit.phases
        ]
    return members


def milliseconds(seconds: float) -> float:
    """Return seconds as milliseconds, to the microsecond."""
    return round(seconds * 1000.0, 3)


def _facets(pursuit: Pursuit) -> dict[str, Any]:
    selection, asked = pursuit.selection, pursuit.request.facets
    if selection is None or not asked:
        return {}
    facets = pursuit.facets or nothing_counted(selection.facets)
    return facets_body(asked, selection.facets, facets, pursuit.view.card.fields)


def _page(found: Finalists, documents: Mapping[int, FetchedDocument], k: int) -> list[Candidate]:
    """Return the page: the finalists in the order of their final scores, if not settled yet."""
    final = [
        Candidate(-documents[c.ordinal].score, c.ordinal, c.shard)
        for c in found.candidates
        if c.ordinal in documents
    ]
    if not found.settled:
        final.sort()
    return final[found.skip : found.skip + k]


def _hit(candidate: Candidate, document: FetchedDocument, *, explain: bool) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "id": document.id,
        "score": -candidate.negative_score,
        "fields": document.fields,
        "highlights": document.highlights,
    }
    if explain:
        hit["shard"] = candidate.shard
        hit["explanation"] = [
            {"field": field, "text": text, "score": score}
            for field, text, score in document.explanation
        ]
    return hit


def _attempts(phases: Sequence[Phase]) -> dict[str, int]:
    """Sum up the attempts of all phases."""
    tallies = [asdict(phase.tally) for phase in phases]
    return {name: sum(tally[name] for tally in tallies) for name in asdict(Tally())}


def trace_of(
    phase: str,
    started_s: float,
    decided_s: float,
    attempts: Sequence[Attempt],
    arrived_s: float,
) -> dict[str, Any]:
    """Return a phase with all of its attempts, in milliseconds from the request's arrival."""
    return {
        "phase": phase,
        "started_ms": milliseconds(started_s - arrived_s),
        "decided_ms": milliseconds(decided_s - arrived_s),
        "attempts": [_traced_attempt(attempt, arrived_s) for attempt in attempts],
    }


def _traced_attempt(attempt: Attempt, arrived_s: float) -> dict[str, Any]:
    ended = attempt.fate != "in_flight"
    traced: dict[str, Any] = {
        "shard": attempt.shard,
        "replica": attempt.leaf.name,
        "kind": attempt.kind,
        "fate": "cancelled" if attempt.cancel_sent and not ended else attempt.fate,
        "sent_ms": milliseconds(attempt.sent_s - arrived_s),
        "ended_ms": milliseconds(attempt.ended_s - arrived_s) if ended else None,
        "queue_ms": attempt.queue_us / 1000.0 if ended else None,
        "service_ms": attempt.service_us / 1000.0 if ended else None,
    }
    if attempt.reason is not None:
        traced["reason"] = attempt.reason
    return traced
