"""From an ask to its answers: reading the body, checking its limits, doing the legs.

Runs on worker threads. Whatever goes wrong becomes a refusal of the legs it concerns; no
exception leaves this module, so none can end a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from leaf.errors import BadQuery
from leaf.holdings import HeldGeneration, HeldShard
from leaf.lines import Bite, Group
from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    HITS_MAX,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    TEXT_BYTES_MAX,
    Bool,
    FetchBody,
    Fuzzy,
    Kind,
    LookupBody,
    Phrase,
    Prefix,
    Priority,
    Query,
    Range,
    RefusalReason,
    SearchBody,
    Tie,
    Word,
    ranked,
)
from leaf.suggesting import SUGGEST_BODY, SuggestPlan

log = logging.getLogger(__name__)

DETAIL_CHARS_MAX: Final = 300
"""What a refusal says is bounded: hundreds of shards may fail with long words at once."""

LOG_PAUSE_S: Final = 1.0
"""A shard that always fails would fill the log at the speed of its failing."""

SEARCH_BODY: Final = msgspec.json.Decoder(SearchBody)
FETCH_BODY: Final = msgspec.json.Decoder(FetchBody)
LOOKUP_BODY: Final = msgspec.json.Decoder(LookupBody)

Reply = tuple[Any, ...]
"""A leg's answer as it goes over the wire: `Hits`, `Documents` or `Refusal`, in order.
A tuple, because orjson writes it twice as fast as msgspec writes the struct."""


class Finished(NamedTuple):
    """What became of some legs of one task. ``kind`` tells hits from documents."""

    kind: Kind
    answers: Sequence[Reply]
    refusals: Sequence[Reply]


class Sink(Protocol):
    """Where finished legs go."""

    def put(self, finished: Finished) -> None:
        """Take what is finished. Called on any thread; must not block."""


class Task(Group):
    """An ask while the leaf has it: a group of legs and what is to be done for them.

    ``body`` is read by the first worker that takes a leg; ``ordinals`` belong to ``fetch``.
    ``query`` is the root's number of the query, if it has one; ``alone``: no part of a fan-out;
    ``tie`` says which legs have a twin.
    """

    __slots__ = (
        "alone",
        "arrived_s",
        "body",
        "generation",
        "kind",
        "ordinals",
        "plan",
        "query",
        "shards",
        "sink",
        "tie",
        "trace",
    )

    def __init__(
        self,
        *,
        sink: Sink,
        channel: int,
        kind: Kind,
        generation: HeldGeneration,
        body: msgspec.Raw | SearchBody,
        first: int,
        shards: Sequence[int],
        arrived_s: float,
        budget_s: float,
        ordinals: Sequence[Sequence[int]] = (),
        priority: Priority = "interactive",
        query: int | None = None,
        alone: bool = False,
        tie: Tie | None = None,
        trace: str = "",
    ) -> None:
        super().__init__(channel, first, len(shards), arrived_s + budget_s, priority)
        self.query = query
        self.alone = alone
        self.tie = tie
        self.trace = trace
        self.sink = sink
        self.kind: Kind = kind
        self.generation = generation
        self.body = body
        self.shards = shards
        self.arrived_s = arrived_s
        self.ordinals = ordinals
        self.plan: Plan | NoPlan | None = None


# --- plans: what a leg does with its shard -------------------------------------------------


class Plan(Protocol):
    """An ask, ready for any of its shards."""

    def answer(self, shard: HeldShard, leg: int) -> Reply:
        """Do the leg with this index; return its reply without number and times."""


class NoPlan(NamedTuple):
    """Why nothing can be done for an ask."""

    reason: RefusalReason
    detail: str


class NotFinite(ArithmeticError):
    """A shard gave a score that is no number; JSON has no word for it."""


class SearchPlan(NamedTuple):
    """The best ``k`` of a shard."""

    prepared: Any
    k: int

    def answer(self, shard: HeldShard, leg: int) -> Reply:  # noqa: ARG002 - every leg is alike
        """Return total, best, ranked."""
        total, scores, ordinals = shard.search(self.prepared, self.k)
        # Anything infinite or NaN survives a sum, and a sum is one call for all of them.
        if not isfinite(sum(scores)):
            check_finite(scores)
        return total, *ranked(scores, ordinals)


class SelectPlan(NamedTuple):
    """The best ``k`` of a shard and what is counted in it, as a selection says."""

    prepared: Any
    selected: Any
    k: int

    def answer(self, shard: HeldShard, leg: int) -> Reply:  # noqa: ARG002 - every leg is alike
        """Return total, best, ranked, facets."""
        total, best, columns, facets = shard.select(self.prepared, self.selected, self.k)
        if not isfinite(best):
            check_finite([best])
        return total, best, columns, facets


class FetchPlan(NamedTuple):
    """The documents of a shard that were named."""

    prepared: Any | None
    body: FetchBody
    ordinals: Sequence[Sequence[int]]

    def answer(self, shard: HeldShard, leg: int) -> Reply:
        """Return the documents, each in the order of FetchedDocument."""
        body, ordinals = self.body, self.ordinals[leg]
        found = shard.fetch(self.prepared, ordinals, body.fields, body.highlight)
        if body.explain and self.prepared is not None:
            explained = shard.explain(self.prepared, ordinals)
            for document, explanation in zip(found, explained, strict=True):
                document.explanation = explanation
        check_finite([document.score for document in found])
        return ([msgspec.structs.astuple(document) for document in found],)


class LookupPlan(NamedTuple):
    """The document with an id, if the shard has it."""

    id: str

    def answer(self, shard: HeldShard, leg: int) -> Reply:  # noqa: ARG002 - every leg is alike
        """Return total, best (0), ranked."""
        ordinals = shard.lookup(self.id)
        return len(ordinals), *ranked([0.0] * len(ordinals), ordinals)


def check_finite(scores: Sequence[float]) -> None:
    """Refuse scores that JSON could not carry. Raises NotFinite."""
    if not all(map(isfinite, scores)):
        message = f"a score is not finite: {scores[:20]}"
        raise NotFinite(message)


def plan_of(task: Task) -> Plan:
    """Read and check an ask's body and prepare its query. Raises BadQuery."""
    body = task.body
    match task.kind:
        case "search":
            search = body if isinstance(body, SearchBody) else _read(SEARCH_BODY, body)
            check_search(search)
            prepared = task.generation.prepare(search.query)
            if search.selection is None:
                return SearchPlan(prepared, search.k)
            return SelectPlan(prepared, task.generation.selected(search.selection), search.k)
        case "fetch":
            fetch = _read(FETCH_BODY, body)
            return FetchPlan(_prepared(task.generation, fetch.query), fetch, task.ordinals)
        case "suggest":
            return SuggestPlan(task.generation, _read(SUGGEST_BODY, body))
        case "lookup":
            return LookupPlan(_read(LOOKUP_BODY, body).id)


def _read(decoder: msgspec.json.Decoder[Any], body: Any) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadQuery(f"body: {error}") from error


def _prepared(generation: HeldGeneration, query: Query | None) -> Any | None:
    if query is None:
        return None
    check_query(query)
    return generation.prepare(query)


# --- limits --------------------------------------------------------------------------------


def check_search(body: SearchBody) -> None:
    """Check that a search stays within what a leaf answers. Raises BadQuery."""
    if not 1 <= body.k <= HITS_MAX:
        raise BadQuery(f"k must be between 1 and {HITS_MAX}, not {body.k}", field="k")
    check_query(body.query)


def check_query(query: Query) -> None:
    """Check the size of a query tree and of what stands in it. Raises BadQuery."""
    nodes = 0
    level: list[Query] = [query]
    for _ in range(QUERY_DEPTH_MAX):
        nodes += len(level)
        if nodes > QUERY_NODES_MAX:
            raise BadQuery(f"the query has more than {QUERY_NODES_MAX} parts")
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise BadQuery(f"the query is nested more than {QUERY_DEPTH_MAX} deep")


def _children(query: Query) -> Sequence[Query]:
    match query:
        case Bool():
            return (*query.must, *query.should, *query.must_not)
        case Word() | Phrase() | Prefix() | Fuzzy():
            _check_text(query.text)
            _check_boost(query.boost)
            return ()
        case Range():
            for bound in (query.gte, query.gt, query.lte, query.lt):
                if isinstance(bound, str):
                    _check_text(bound)
            _check_boost(query.boost)
            return ()
        case _:
            return ()


def _check_boost(boost: float) -> None:
    if not BOOST_MIN <= boost <= BOOST_MAX:
        raise BadQuery(f"boost must be from {BOOST_MIN:g} to {BOOST_MAX:g}, not {boost:g}")


def _check_text(text: str) -> None:
    if len(text) > TEXT_BYTES_MAX or len(text.encode("utf-8", "replace")) > TEXT_BYTES_MAX:
        raise BadQuery(f"text is longer than {TEXT_BYTES_MAX} bytes")
    if "\0" in text:
        raise BadQuery("text contains a NUL character")


# --- doing the legs ------------------------------------------------------------------------


def refuse(
    task: Task, legs: Sequence[int], now: float, reason: RefusalReason, detail: str = ""
) -> Finished:
    """Refuse legs that were not begun; they have waited until now."""
    waited_us = int((now - task.arrived_s) * 1e6)
    refusals = [(task.first + leg, waited_us, 0, reason, plain(detail)) for leg in legs]
    return Finished(task.kind, (), refusals)


def plain(detail: str) -> str:
    """Return words for the wire: bounded, and no half of a character."""
    return detail[:DETAIL_CHARS_MAX].encode("utf-8", "backslashreplace").decode()


class Performer:
    """Does what workers take from the queue."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.work_us: dict[str, dict[int, int]] = {}
        """Time spent, by generation and shard. Others may read it, and remove a generation."""
        self._clock = clock
        self._log_due_s = 0.0

    def perform(self, bite: Bite[Task]) -> Finished:
        """Do the legs of one bite, in order. Never raises."""
        task, legs = bite
        clock, first, shards = self._clock, task.first, task.shards
        revoked, deadline_s, arrived_s = task.revoked, task.deadline_s, task.arrived_s
        answers: list[Reply] = []
        refusals: list[Reply] = []
        now = clock()
        plan = self._plan(task)
        if isinstance(plan, NoPlan):
            return refuse(task, legs, now, *plan)
        held, answer_leg = task.generation.shards, plan.answer
        work_us = self.work_us.setdefault(task.generation.card.generation, {})
        for leg in legs:
            queue_us = int((now - arrived_s) * 1e6)
            if revoked and leg in revoked:
                refusals.append((first + leg, queue_us, 0, "cancelled"))
                continue
            if now >= deadline_s:
                refusals.append((first + leg, queue_us, 0, "expired"))
                continue
            shard = held.get(shards[leg])
            if shard is None:
                refusals.append((first + leg, queue_us, 0, "unknown_shard", str(shards[leg])))
                continue
            try:
                answer = answer_leg(shard, leg)
                failure = None
            except BaseException as error:  # noqa: BLE001 - as below, whatever a shard raises
                failure = self._failure(task, leg, error)
            began, now = now, clock()
            # At least one: a leg that was begun can be told from one that was not.
            service_us = int((now - began) * 1e6) or 1
            work_us[shards[leg]] = work_us.get(shards[leg], 0) + service_us
            if revoked and leg in revoked:
                refusals.append((first + leg, queue_us, service_us, "cancelled"))
            elif failure is not None:
                refusals.append((first + leg, queue_us, service_us, *failure))
            else:
                answers.append((first + leg, queue_us, service_us, *answer))
        return Finished(task.kind, answers, refusals)

    def _plan(self, task: Task) -> Plan | NoPlan:
        # Two workers may both prepare one ask: that costs less than one waiting for the other.
        if task.plan is None:
            try:
                task.plan = plan_of(task)
            except BaseException as error:  # noqa: BLE001 - a panic in Rust is no Exception
                task.plan = self._failure(task, 0, error)
        return task.plan

    def _failure(self, task: Task, leg: int, error: BaseException) -> NoPlan:
        if isinstance(error, BadQuery):
            return NoPlan("bad_query", plain(str(error)))
        now = self._clock()
        if now >= self._log_due_s:
            self._log_due_s = now + LOG_PAUSE_S
            where = f"{task.kind} on shard {task.shards[leg]} of {task.generation.card.generation}"
            # Of a traceparent the second part is the trace.
            known = {"query": task.query, "trace_id": task.trace[3:35]}
            log.error("%s failed", where, exc_info=error, extra=known)
        return NoPlan("error", plain(f"{type(error).__name__}: {error}"))
