"""One swarm as a person reads it: what was drawn, then everything that happened, in order."""

from __future__ import annotations

from collections.abc import Iterator

from bench.simulation.evidence import outcome_of
from bench.simulation.swarm import Run
from bench.simulation.watched import Request
from root.race import Attempt

Event = tuple[float, int, str]
"""The second, the rank among what happens at the same instant, and a sentence."""

TROUBLE, ARRIVED, ENDED, DECIDED, CANCELLED, SENT, ANSWERED = range(7)


def story(run: Run) -> list[str]:
    """Return the lines. Times are seconds from the start of the run."""
    return [_drawn(run), *(f"{second:10.6f}  {told}" for second, _, told in sorted(_events(run)))]


def _drawn(run: Run) -> str:
    swarm, settings = run.swarm, run.swarm.settings
    return (
        f"{swarm.shards} shards on {swarm.leaves} leaves, {swarm.replicas} replicas, "
        f"{swarm.workers} workers a leaf, {swarm.corpus.size} documents; "
        f"{swarm.rate_per_s:.1f} searches a second, {swarm.rush:g} times that in trouble; "
        f"{settings}"
    )


def _events(run: Run) -> Iterator[Event]:
    yield from ((second, TROUBLE, told) for second, told in run.trouble.story)
    for request in run.requests:
        name = f"search {request.number}"
        yield request.arrived_s, ARRIVED, f"{name} arrives: {_asked(request)}"
        yield request.ended_s, ANSWERED, f"{name} ends: {_answered(request)}"
        for flight in request.flights:
            outcome = outcome_of(flight)
            decided = f"{name}, {flight.ask.kind}: {len(outcome.replies)} answers"
            yield outcome.decided_s, DECIDED, f"{decided}, missing {outcome.missing}"
            for attempt in flight.gather.attempts:
                about = f"{name}, {flight.ask.kind}: {_attempt(attempt)}"
                yield attempt.sent_s, SENT, f"{about} is sent"
                if attempt.leg in run.fleet.cancelled_s:
                    yield run.fleet.cancelled_s[attempt.leg], CANCELLED, f"{about} is cancelled"
                if attempt.fate != "in_flight":
                    yield attempt.ended_s, ENDED, f"{about}: {_fate(attempt)}"


def _asked(request: Request) -> str:
    asked = request.asked
    return (
        f"{request.query}, offset {asked.offset}, k {asked.k}, hedge {asked.hedge}, "
        f"{asked.priority}, {1000 * (request.deadline_s - request.arrived_s):g} ms"
    )


def _answered(request: Request) -> str:
    if request.body is None:
        return "its caller has left" if request.left else repr(request.error)
    return f"{len(request.body['hits'])} hits, coverage {request.body['coverage']}"


def _attempt(attempt: Attempt) -> str:
    leaf = attempt.leaf.name.removeprefix("http://")
    return f"{attempt.kind} {attempt.leg} of shard {attempt.shard} to {leaf}"


def _fate(attempt: Attempt) -> str:
    took = f"after {1000 * (attempt.ended_s - attempt.sent_s):.2f} ms"
    return f"{attempt.fate} {took}" + (f", {attempt.reason}" if attempt.reason else "")
