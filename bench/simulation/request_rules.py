"""What must hold of every search, as its caller saw it. See ``bench.simulation.invariants``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from bench.simulation.evidence import INSTANT_S, Evidence, is_canary, outcome_of
from bench.simulation.watched import Request
from leaf.broken import BrokenAnswer
from leaf.protocol import Hits
from root.errors import BadRequest, FleetError, NoShards, NotCovered, Overloaded, Quarantined
from root.ledger import SECOND_ATTEMPTS
from root.search import FETCH_SHARE


def it_ends_by_its_deadline(evidence: Evidence, request: Request) -> Iterator[str]:
    """Or, where the machine was suspended then, as soon as it goes on."""
    by_s = request.deadline_s
    for from_s, to_s in evidence.run.trouble.suspended:
        if from_s <= by_s:
            by_s = max(by_s, to_s)
    if not request.ended_s <= by_s + INSTANT_S:
        yield f"it ended {request.ended_s - request.deadline_s} s after its deadline"


def its_work_ends_with_it(_: Evidence, request: Request) -> Iterator[str]:
    """Where the caller has left, too: nobody waits for what is still in flight."""
    for flight in request.flights:
        late_s = outcome_of(flight).decided_s - request.ended_s
        if late_s > INSTANT_S:
            yield f"its {flight.ask.kind} went on for {late_s} s"


def with_time_and_replicas_it_is_complete(_: Evidence, request: Request) -> Iterator[str]:
    """When nothing is broken there is an answer, and a whole one."""
    if request.calm and (request.body is None or not request.body["coverage"]["complete"]):
        yield repr(request.error or request.body)


def the_page_is_the_oracles(evidence: Evidence, request: Request) -> Iterator[str]:
    """Whole, the answer is that of one big index; in part, it is that of the shards it names,
    less what could not be fetched in time.
    """
    body = _body(request)
    if body is None:
        return
    missing = {entry["shard"] for entry in body["coverage"]["missing"]}
    ranked = evidence.corpus.ranked(request.query)
    present = [hit for hit in ranked if evidence.corpus.shard_of(hit[0]) not in missing]
    hits = [(hit["id"], hit["score"]) for hit in body["hits"]]
    asked = request.asked
    fetches = [outcome_of(f).missing for f in request.flights if f.ask.kind == "fetch"]
    if not missing or (fetches and not any(fetches)):
        page = present[asked.offset : asked.offset + asked.k]
        if hits != page:
            yield f"{hits}, and should be {page}"
    elif not _in_order(hits, present) or len(hits) > asked.k:
        yield f"{hits} is no part of {present}"
    total, relation = body["total"]["value"], body["total"]["relation"]
    if not len(present) <= total <= len(ranked) or relation != ("gte" if missing else "eq"):
        yield f"total {total} {relation} of {len(present)} or {len(ranked)}, missing {missing}"


def the_coverage_is_true(evidence: Evidence, request: Request) -> Iterator[str]:
    """It names what no leaf has answered, or could not be read, for the first reason there was."""
    body = _body(request)
    if body is None:
        return
    coverage, corpus = body["coverage"], evidence.corpus
    told = {entry["shard"]: entry["reason"] for entry in coverage["missing"]}
    documents = [corpus.card.documents[s] for s in range(corpus.shards) if s not in told]
    figures = (coverage["complete"], coverage["answered"], coverage["searched"])
    if figures != (not told, corpus.shards - len(told), sum(documents)):
        yield f"{coverage}"
    if all(map(is_canary, request.flights)):
        return  # nothing but canaries: there was no more to ask, and all are missing
    seen: dict[int, str] = {}
    for outcome in map(outcome_of, request.flights):
        for shard, _ in outcome.replies:
            seen.pop(shard, None)
        seen |= {shard: why for shard, why in outcome.missing.items() if shard not in seen}
    unreadable = _unreadable(request)
    for shard in sorted(seen.keys() | told.keys()):
        if shard in unreadable and told.get(shard) == "error":
            continue
        if shard not in seen and _may_not_be_asked(evidence, request, told[shard]):
            continue
        if told.get(shard) != seen.get(shard):
            yield f"shard {shard} is missing: {seen.get(shard)}, and told: {told.get(shard)}"


def every_shard_is_asked_once(evidence: Evidence, request: Request) -> Iterator[str]:
    """In the first phase, where anything can be asked; a canary's shard again, if it failed."""
    asked: Counter[int] = Counter()
    searches = [flight for flight in request.flights if flight.ask.kind == "search"]
    for flight in searches:
        outcome = outcome_of(flight)
        asked.update(shard for shard, _ in outcome.replies)
        if not is_canary(flight):
            asked.update(list(outcome.missing))
    if not all(map(is_canary, searches)) and asked != Counter(range(evidence.corpus.shards)):
        yield f"{dict(asked)}"


def it_is_refused_for_a_cause(evidence: Evidence, request: Request) -> Iterator[str]:
    """An error says what is true, and an answer covers what was asked for."""
    body = _body(request)
    searched = 0 if body is None else body["coverage"]["searched"]
    wanted = evidence.wanted_share(request) * evidence.corpus.size
    covered = searched > 0 and searched >= wanted
    reasons = {a.reason for flight in request.flights for a in flight.gather.attempts}
    match request.error:
        case None:
            honest = request.left or covered
        case NotCovered():
            honest = body is not None and not covered
        case NoShards():
            nobody = evidence.all_away(request.arrived_s, request.arrived_s)
            honest = nobody if body is None else searched == 0
        case Overloaded():
            honest = "busy" in reasons
        case Quarantined():
            honest = evidence.settings.canary and evidence.harm_before(request.ended_s)
        case BadRequest():
            honest = "bad_query" in reasons
        case _:
            honest = False
    if not honest:
        yield f"{request.error!r}, {searched} of {evidence.corpus.size}, of the reasons {reasons}"


def its_attempts_are_told(evidence: Evidence, request: Request) -> Iterator[str]:
    """The answer says how many there were, of which kinds, and what they came to."""
    body = _body(request)
    if body is None:
        return
    attempts = [a for flight in request.flights for a in flight.gather.attempts]
    told = {name: number for name, number in body["attempts"].items() if name != "denied"}
    seen = {
        "sent": len(attempts),
        "hedged": sum(a.kind in SECOND_ATTEMPTS for a in attempts),
        "hedge_wins": sum(a.kind in SECOND_ATTEMPTS and a.fate == "won" for a in attempts),
        "failed_over": sum(a.kind == "failover" for a in attempts),
        "cancelled": sum(a.leg in evidence.run.fleet.cancelled_s for a in attempts),
    }
    if told != seen:
        yield f"{told}, and were {seen}"
    traced = [a for phase in body.get("trace", ()) for a in phase["attempts"]]
    if traced and [(a["shard"], a["replica"], a["kind"]) for a in traced] != [
        (a.shard, a.leaf.name, a.kind) for a in attempts
    ]:
        yield f"the trace {traced} is not of {attempts}"


def _body(request: Request) -> dict[str, Any] | None:
    """The answer, whole or in part, if there is any."""
    if isinstance(request.error, FleetError):
        return request.error.partial
    return request.body


def _in_order(part: list[tuple[str, float]], whole: list[tuple[str, float]]) -> bool:
    """Whether ``part`` is ``whole`` with some left out."""
    rest = iter(whole)
    return all(hit in rest for hit in part)


def _unreadable(request: Request) -> set[int]:
    """Shards whose hits cannot be read."""
    found = set()
    for flight in request.flights:
        for shard, reply in outcome_of(flight).replies:
            try:
                if isinstance(reply, Hits):
                    reply.read()
            except BrokenAnswer:
                found.add(shard)
    return found


def _may_not_be_asked(evidence: Evidence, request: Request, reason: str) -> bool:
    """Whether a phase may have sent nothing at all, for this reason: nobody was there, or the
    time was up before it began.
    """
    if {f.ask.kind for f in request.flights if not is_canary(f)} == {"search", "fetch"}:
        return False
    if reason == "no_replica":
        return bool(evidence.away(request.arrived_s, request.ended_s))
    left_s = FETCH_SHARE * (request.deadline_s - request.arrived_s)
    return reason == "timeout" and request.ended_s >= request.deadline_s - left_s - INSTANT_S


RULES: Final[tuple[Callable[[Evidence, Request], Iterator[str]], ...]] = (
    it_ends_by_its_deadline,
    its_work_ends_with_it,
    with_time_and_replicas_it_is_complete,
    the_page_is_the_oracles,
    the_coverage_is_true,
    every_shard_is_asked_once,
    it_is_refused_for_a_cause,
    its_attempts_are_told,
)
