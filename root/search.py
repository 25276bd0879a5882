"""Query, then fetch: how a request becomes two gathers and one answer.

Phase one asks every shard for the score and ordinal of its best documents; merging names the
finalists; phase two asks the finalists' shards for final scores, fields and highlights. Both
hedge, both are bounded by the request's one deadline, and both speak of the generation that
the request started with.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial
from operator import itemgetter
from random import Random
from typing import Any, Final

import msgspec

from leaf.protocol import Documents, FetchBody, FetchedDocument, LookupBody, Query, SearchBody
from leaf.suggestion import SuggestBody
from root import answer, tracing
from root.budget import Budget
from root.config import Settings
from root.cursor import Cursor, fingerprint, read
from root.discovery import Fleet
from root.enough import Enough
from root.errors import BadRequest, Gone, NoShards, NotCovered, Overloaded, UnknownDocument
from root.fan_out import FanOut
from root.gather import Outcome
from root.hedging import Shadow
from root.ledger import Ledger
from root.live import Live
from root.merge import Finalists, Unreadable
from root.paging import Window, at_position, depth_of, page_of, window_of
from root.probation import Probation
from root.pursuit import Pursuit
from root.query import check_text, cost_class
from root.reading import understood
from root.rehearsal import Rehearsal
from root.requests import SearchRequest, SuggestRequest
from root.scatter import Ask
from root.selection import cost_class_of, described, selection_of
from root.shapes import subject_of
from root.similar import query_like, without
from root.slow import SlowQueries
from root.suggesting import meant, suggestions, words_of
from root.topology import View
from root.trials import Trials

log = logging.getLogger(__name__)

FETCH_SHARE: Final = 0.2
"""Share of the time that phase one leaves to phase two: a fifth of the work is fetching, and
hits that are never fetched are worth nothing."""

LIKENESS_SHARE: Final = 0.3
"""Share of a request's time for what its query is: to look up a document and its words."""

MEANT_S: Final = 0.25
"""An answer of no hits is ready; what else may have been meant is worth this much to wait."""

RETRY_AFTER_S: Final = 1
NOTHING_FOUND: Final = Finalists([], 0, 0)


class Searches:
    """Answers requests with a fleet. Owns what is learned across them."""

    def __init__(self, fleet: Fleet, settings: Settings, now: float) -> None:
        """``now`` is the loop's clock."""
        self.fleet = fleet
        self.settings = settings
        self.budget = Budget(settings.budget, now)
        self.ledger = Ledger()
        self.probation = Probation(self.budget, now)
        self.rehearsal = Rehearsal(settings.budget, Random(f"{settings.seed}:rehearsal"), now)
        self.trials = Trials(fleet, settings.seed)
        self.live = Live(Random(f"{settings.seed}:live"), now, fleet.answers)
        self.fan_out = FanOut(fleet, settings, self.budget, self.ledger, self.probation, self.live)
        self.slow = SlowQueries(settings.slow_queries)
        self.watchers: list[Callable[[Pursuit], None]] = [self.slow.note] if settings.watch else []
        """Are told of each search that is over, however it ended."""
        self._requests = 0

    async def search(
        self, request: SearchRequest, now: float, collection: str | None = None
    ) -> dict[str, Any]:
        """Return the body of the answer; from the first collection, if none is named. Raises
        CallerError or FleetError.
        """
        pursuit = self._pursue(request, now, collection)
        query = self._query(pursuit, await self._likeness(pursuit))
        rehearsed = isinstance(self.fan_out.policy(request), Shadow) and self.rehearsal.admits(now)
        try:
            found = await self._query_phase(pursuit, query)
            documents = await self._fetch_phase(pursuit, query, found) if found.candidates else {}
        finally:
            for note in self.watchers:
                note(pursuit)
        body = answer.search_body(pursuit, found, documents)
        if rehearsed:
            self.rehearsal.observe(pursuit)
        self._raise_unless_covered(pursuit, body)
        if found.total == 0 and request.q is not None and not pursuit.missing:
            body["did_you_mean"] = await self._meant(pursuit, query)
            body |= answer.attempted(pursuit)
        return body

    async def suggest(
        self, request: SuggestRequest, now: float, collection: str | None = None
    ) -> dict[str, Any]:
        """Return ways to go on with what is typed. Raises CallerError or FleetError."""
        pursuit = self._pursue(SearchRequest(timeout_ms=request.timeout_ms), now, collection)
        body = SuggestBody(prefix=request.prefix, k=request.k)
        outcome = await self._suggested(pursuit, body, pursuit.deadline_s)
        self._raise_where_nothing_answered(pursuit, outcome)
        return {
            "suggestions": suggestions(outcome.replies),
            "generation": pursuit.view.card.generation,
            "took_ms": 0.0,
        }

    async def candidates(self, request: SearchRequest, now: float) -> Finalists:
        """Return what phase one alone comes to: who may be on the page, and the total."""
        pursuit = self._pursue(request, now)
        return await self._query_phase(pursuit, self._query(pursuit, await self._likeness(pursuit)))

    async def document(
        self, document_id: str, now: float, collection: str | None = None
    ) -> dict[str, Any]:
        """Return one document by its id. Raises UnknownDocument, or FleetError if not sure."""
        check_text("id", document_id)
        pursuit = self._pursue(SearchRequest(), now, collection)
        outcome = await self.fan_out.gather(
            pursuit,
            "lookup",
            "lookup",
            msgspec.json.encode(LookupBody(document_id)),
            pursuit.deadline_s,
        )
        self._raise_where_nothing_answered(pursuit, outcome)
        found = self._merged(pursuit, outcome, Window(0, 1))
        if not found.candidates and pursuit.missing:
            raise NotCovered("shards that may hold the document did not answer")
        if not found.candidates:
            raise UnknownDocument("id", f"there is no document {document_id!r}")
        documents = await self._fetch_phase(pursuit, None, found)
        if not documents:
            raise NotCovered("the shard that holds the document did not answer in time")
        document = next(iter(documents.values()))
        return {
            "id": document.id,
            "fields": document.fields,
            "generation": pursuit.view.card.generation,
        }

    # --- phases ---

    async def _query_phase(self, pursuit: Pursuit, query: Query) -> Finalists:
        window = window_of(pursuit, query)
        depth = depth_of(pursuit, window)
        left_s = pursuit.deadline_s - pursuit.arrived_s
        outcome = await self._ask_all(
            pursuit, query, depth, pursuit.deadline_s - FETCH_SHARE * left_s
        )
        self._raise_where_nothing_answered(pursuit, outcome)
        return self._merged(pursuit, outcome, window)

    async def _ask_all(
        self, pursuit: Pursuit, query: Query, depth: int, deadline_s: float
    ) -> Outcome:
        """Ask every shard; first one of them alone, where the query may do harm, and then the
        others, if it has passed and there are any.
        """
        selection = pursuit.selection
        history = cost_class_of(selection, cost_class(query))
        body = msgspec.json.encode(SearchBody(query, depth, at_position(pursuit)))
        if not self.settings.canary:
            enough = self._enough(pursuit)
            return await self.fan_out.gather(
                pursuit, "search", history, body, deadline_s, enough=enough
            )
        collection = pursuit.view.collection
        subject = subject_of(query, depth, body, described(selection), collection)
        # Never as ``batch``: others may wait for this leg, so it must not wait behind them.
        ask = Ask(
            *("search", pursuit.view.card.generation, body, deadline_s),
            query=pursuit.number,
            trace=tracing.outgoing(),
        )
        new_terms = partial(self.fan_out.terms, (collection, history), pursuit.arrived_s)
        first = await self.trials.first_shard(pursuit, subject, history, ask, new_terms)
        if first is not None and len(first.replies) in {0, len(pursuit.view.replicas)}:
            return first
        tried = dict(first.replies) if first is not None else {}
        enough = self._enough(pursuit, tried)
        outcome = await self.fan_out.gather(
            pursuit, "search", history, body, deadline_s, enough=enough, without=tried
        )
        self.trials.shapes.watch(subject, pursuit.phases[-1].attempts, outcome.decided_s)
        if not tried:
            return outcome
        replies = sorted([*tried.items(), *outcome.replies], key=itemgetter(0))
        return replace(outcome, replies=replies)

    def _merged(self, pursuit: Pursuit, outcome: Outcome, window: Window) -> Finalists:
        """Return the finalists; a shard whose hits cannot be read counts as one that failed."""
        replies = outcome.replies
        while True:
            try:
                return page_of(pursuit, replies, window)
            except Unreadable as error:
                log.warning("%s", error)
                pursuit.missing.setdefault(error.shard, "error")
                replies = [reply for reply in replies if reply[0] != error.shard]

    async def _fetch_phase(
        self, pursuit: Pursuit, query: Query | None, found: Finalists
    ) -> dict[int, FetchedDocument]:
        """Return the finalists' documents by ordinal, as far as their shards answered."""
        request = pursuit.request
        highlight = request.highlight
        if highlight is None:
            highlight = _default_text_fields(pursuit.view) if query is not None else ()
        body = msgspec.json.encode(FetchBody(query, request.fields, highlight, request.explain))
        outcome = await self.fan_out.gather(
            pursuit, "fetch", "fetch", body, pursuit.deadline_s, found.by_shard()
        )
        replies: list[tuple[int, Documents]] = outcome.replies
        return {d.ordinal: d for _, reply in replies for d in reply.documents}

    async def _suggested(self, pursuit: Pursuit, body: SuggestBody, deadline_s: float) -> Outcome:
        """Ask one shard's leaf: each knows the words of all."""
        others = range(1, len(pursuit.view.replicas))
        encoded = msgspec.json.encode(body)
        return await self.fan_out.gather(
            pursuit, "suggest", "suggest", encoded, deadline_s, without=others
        )

    async def _likeness(self, pursuit: Pursuit) -> Query | None:
        """Return the query for what is similar to a document, where that is asked for, and leave
        the document out of what is selected.
        """
        document_id = pursuit.request.similar_to
        if document_id is None:
            return None
        pursuit.selection = without(pursuit.selection, document_id)
        deadline_s = pursuit.arrived_s + LIKENESS_SHARE * (pursuit.deadline_s - pursuit.arrived_s)
        body = msgspec.json.encode(SuggestBody(like=document_id))
        outcome = await self.fan_out.gather(pursuit, "suggest", "likeness", body, deadline_s)
        self._raise_where_nothing_answered(pursuit, outcome)
        return query_like(document_id, outcome.replies, everywhere=not outcome.missing)

    async def _meant(self, pursuit: Pursuit, query: Query) -> str | None:
        """Return the query as it may have been meant: nobody waits long for that."""
        fields = {field.name: field for field in pursuit.view.card.fields}
        words = words_of(query, fields)
        decided_s = pursuit.phases[-1].outcome.decided_s
        deadline_s = min(pursuit.deadline_s, decided_s + MEANT_S)
        replies = []
        if words:
            outcome = await self._suggested(pursuit, SuggestBody(words=words), deadline_s)
            replies = outcome.replies
        return meant(query, replies, fields)

    # --- checks ---

    def _pursue(self, request: SearchRequest, now: float, collection: str | None = None) -> Pursuit:
        cursor = None if request.cursor is None else read(request.cursor)
        name = self.fleet.named(collection)
        view = self.fleet.view(name) if cursor is None else self._continued(cursor, name)
        if view is None:
            raise NoShards(self.fleet.lacking)
        self.fan_out.begin(view, now)
        timeout_ms = request.timeout_ms or self.settings.timeout_ms
        self._requests += 1
        tracing.query_number.set(self._requests)
        deadline_s = now + timeout_ms / 1000.0
        pursuit = Pursuit(view, now, deadline_s, request, self._requests, tracing.current.get())
        pursuit.selection = selection_of(
            request.filter, request.sort, request.facets, view.card.fields
        )
        if cursor is not None:
            pursuit.position, pursuit.asked = cursor.position, cursor.asked
        return pursuit

    def _continued(self, cursor: Cursor, collection: str) -> View:
        """Return the view that a cursor goes on in, of a collection. Raises BadRequest or Gone."""
        generation, views = cursor.generation, self.fleet.views
        if generation in views.get(collection, ()):
            return views[collection][generation]
        others = [name for name, known in views.items() if generation in known]
        if others:
            raise BadRequest("cursor", f"belongs to the collection {others[0]!r}")
        raise Gone("cursor", f"generation {generation!r:.40} is held no more: search again")

    def _query(self, pursuit: Pursuit, likeness: Query | None) -> Query:
        reading = understood(pursuit.request, pursuit.view.card.fields, likeness)
        pursuit.faults = reading.faults
        asked = fingerprint(reading.query, pursuit.selection)
        if pursuit.position is not None and pursuit.asked != asked:
            raise BadRequest("cursor", "belongs to another query, filter or sort")
        pursuit.asked = asked
        return reading.query

    def _raise_where_nothing_answered(self, pursuit: Pursuit, outcome: Outcome) -> None:
        if outcome.replies:
            return
        detail = next(iter(outcome.details.values()), "")
        if pursuit.refused_as("bad_query"):
            raise BadRequest("query" if pursuit.request.q is None else "q", detail)
        if pursuit.refused_as("busy"):
            raise Overloaded("every leaf pushed back", pursuit.retry_after_s)
        nothing = answer.search_body(pursuit, NOTHING_FOUND, {})
        reasons = set(outcome.missing.values())
        detail = f"no shard has answered: {', '.join(sorted(reasons))} {detail}".rstrip()
        raise (NotCovered if reasons == {"timeout"} else NoShards)(detail, nothing)

    def _wanted_share(self, pursuit: Pursuit) -> float:
        """The share of the documents that must have been searched for the answer to count."""
        share = pursuit.request.min_coverage
        return self.settings.min_coverage if share is None else share

    def _enough(self, pursuit: Pursuit, without: Container[int] = ()) -> Enough | None:
        view = pursuit.view
        may_miss = view.documents - self._wanted_share(pursuit) * view.documents
        documents = [n for shard, n in enumerate(view.card.documents) if shard not in without]
        return Enough(documents, may_miss) if may_miss > 0.0 else None

    def _raise_unless_covered(self, pursuit: Pursuit, body: dict[str, Any]) -> None:
        wanted = self._wanted_share(pursuit)
        if pursuit.searched and pursuit.searched >= wanted * pursuit.view.documents:
            return
        if pursuit.refused_as("busy") and set(pursuit.missing.values()) == {"refused"}:
            detail = "leaves pushed back; too little was searched"
            raise Overloaded(detail, pursuit.retry_after_s)
        detail = (
            f"{pursuit.searched} of {pursuit.view.documents} documents were searched; "
            f"min_coverage asks for {wanted:g}"
        )
        raise NotCovered(detail, body)


def _default_text_fields(view: View) -> tuple[str, ...]:
    return tuple(f.name for f in view.card.fields if f.type == "text" and f.default)
