"""The JSON of an answer: hits in their final order, and what is missing said."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from index_data.manifest import Field, GenerationCard
from leaf.protocol import FetchedDocument
from leaf.selection import Selection, StatsCount
from root import answer
from root.facets import Stats
from root.gather import AlarmRang, AttemptFailed, AttemptsReplied, Gather, SendAttempt
from root.hedging import Fixed
from root.language import Fault
from root.merge import Candidate, Finalists
from root.pursuit import Phase, Pursuit
from root.race import Attempt
from root.ranking import Leaf
from root.requests import SearchRequest
from root.selection import StatsRequest
from root.topology import Held, View, views
from tests.root.conftest import leaves, terms

ARRIVED_S = 4.0
CARD = GenerationCard("20260101-000000-aaaa", (10, 20, 30), (Field("name", "text"),), 0.01)


def view_of(pair: list[Leaf]) -> View:
    return views(Held(leaf, CARD, (0, 1, 2)) for leaf in pair)[CARD.generation]


def pursuit_with(*phases: Phase, request: SearchRequest | None = None) -> Pursuit:
    pursuit = Pursuit(
        view_of(leaves(2)), ARRIVED_S, ARRIVED_S + 2.0, request or SearchRequest(q="a")
    )
    for phase in phases:
        pursuit.note(phase)
    return pursuit


def phase_of(gather: Gather, name: str = "search") -> Phase:
    assert gather.outcome is not None
    return Phase(name, name, gather.outcome, gather.attempts, ARRIVED_S + 0.001, gather.tally)


def eventful() -> tuple[Gather, list[Attempt]]:
    """A gather over three shards: one answered by its hedge, one refused, one timed out."""
    view = view_of(leaves(2))
    gather = Gather(view.shard_replicas(), Fixed(0.020), terms(), ARRIVED_S + 1.0)
    primaries = [send.attempt for send in gather.start(ARRIVED_S + 0.001)]
    gather.handle(AttemptFailed(primaries[1], "bad_query", "no such field"), ARRIVED_S + 0.002)
    assert gather.wakeup is not None
    alarm = gather.handle(AlarmRang(), gather.wakeup)
    hedges = [action.attempt for action in alarm if isinstance(action, SendAttempt)]
    hedges[0].queue_us, hedges[0].service_us = 1500, 2500
    gather.handle(AttemptsReplied([(hedges[0], "hits")]), ARRIVED_S + 0.0261234)
    gather.handle(AttemptFailed(primaries[0], "cancelled"), ARRIVED_S + 0.027)
    gather.handle(AlarmRang(), ARRIVED_S + 1.0)
    return gather, [*primaries, *hedges]


def complete() -> Phase:
    gather = Gather(view_of(leaves(2)).shard_replicas(), Fixed(0.020), terms(), ARRIVED_S + 1.0)
    for send in gather.start(ARRIVED_S):
        gather.handle(AttemptsReplied([(send.attempt, "hits")]), ARRIVED_S + 0.004)
    return phase_of(gather)


NOTHING_FOUND = Finalists([], 0, 0)


def test_a_complete_answer_says_so() -> None:
    """All shards answered, all documents searched, the total is exact."""
    body = answer.search_body(pursuit_with(complete()), Finalists([], 0, 7), {})
    assert body == {
        "hits": [],
        "total": {"value": 7, "relation": "eq"},
        "facets": {},
        "coverage": {
            "complete": True,
            "shards": 3,
            "answered": 3,
            "documents": 60,
            "searched": 60,
            "missing": [],
        },
        "attempts": {
            "sent": 3,
            "hedged": 0,
            "hedge_wins": 0,
            "failed_over": 0,
            "cancelled": 0,
            "denied": 0,
        },
        "generation": CARD.generation,
        "took_ms": 0.0,
        "next": None,
        "warnings": [],
        "did_you_mean": None,
    }


def test_what_was_not_understood_is_said() -> None:
    """Each fault of a lenient reading, with the character where it begins."""
    pursuit = pursuit_with(complete())
    pursuit.faults = (Fault(3, "a quote without its pair: it is left out"),)
    assert answer.search_body(pursuit, NOTHING_FOUND, {})["warnings"] == [
        {"position": 3, "message": "a quote without its pair: it is left out"}
    ]


def test_what_is_missing_is_said() -> None:
    """Each missing shard with its reason; the total is a lower bound."""
    gather, _ = eventful()
    body = answer.search_body(pursuit_with(phase_of(gather)), NOTHING_FOUND, {})
    assert body["coverage"]["missing"] == [
        {"shard": 1, "reason": "refused"},
        {"shard": 2, "reason": "timeout"},
    ]
    assert (body["coverage"]["complete"], body["coverage"]["answered"]) == (False, 1)
    assert body["coverage"]["searched"] == 10
    assert body["total"]["relation"] == "gte"


def test_attempts_are_those_of_all_phases() -> None:
    """What a request cost is what its phases cost together."""
    gather, attempts = eventful()
    body = answer.search_body(
        pursuit_with(phase_of(gather), phase_of(gather, "fetch")), NOTHING_FOUND, {}
    )
    tally = {"sent": 5, "hedged": 2, "hedge_wins": 1, "failed_over": 0, "cancelled": 3, "denied": 0}
    assert len(attempts) == 5
    assert body["attempts"] == {name: 2 * count for name, count in tally.items()}


def test_a_shard_missing_in_any_phase_is_missing() -> None:
    """The first reason stands, and a leaf's own words are kept."""
    gather, _ = eventful()
    unanswered = Gather([(2, ()), (0, ())], Fixed(0.020), terms(), ARRIVED_S + 1.0)
    unanswered.start(ARRIVED_S)
    pursuit = pursuit_with(complete(), phase_of(gather), phase_of(unanswered, "fetch"))
    assert pursuit.missing == {1: "refused", 2: "timeout", 0: "no_replica"}
    assert pursuit.details == {1: "no such field"}
    assert pursuit.searched == 0


def document(ordinal: int, score: float) -> FetchedDocument:
    return FetchedDocument(ordinal, score, f"id-{ordinal}", {"name": "n"}, {"name": "<em>n</em>"})


@pytest.mark.parametrize(
    ("skip", "k", "ids"),
    [(0, 10, ["id-2", "id-1", "id-3"]), (1, 1, ["id-1"]), (0, 2, ["id-2", "id-1"]), (3, 5, [])],
)
def test_hits_stand_in_their_final_order(skip: int, k: int, ids: list[str]) -> None:
    """By final score, then id; from the page's first, at most k of them."""
    found = Finalists([Candidate(-3.0, o, 0) for o in (1, 2, 3)], skip, 3)
    documents = {o: document(o, score) for o, score in ((1, 2.0), (2, 2.5), (3, 2.0))}
    pursuit = pursuit_with(complete(), request=SearchRequest(q="a", k=k))
    body = answer.search_body(pursuit, found, documents)
    assert [hit["id"] for hit in body["hits"]] == ids


def test_a_hit_has_its_fields() -> None:
    """Id, score, stored fields and highlights, as the leaf gave them."""
    found = Finalists([Candidate(-3.0, 1, 0)], 0, 1)
    body = answer.search_body(pursuit_with(complete()), found, {1: document(1, 2.5)})
    assert body["hits"] == [
        {
            "id": "id-1",
            "score": 2.5,
            "fields": {"name": "n"},
            "highlights": {"name": "<em>n</em>"},
        }
    ]


def test_a_hit_whose_score_is_explained_has_its_shard_and_its_parts() -> None:
    """By field and text, as the leaf gave them."""
    found = Finalists([Candidate(-3.0, 1, 2)], 0, 1)
    explained = structs.replace(document(1, 2.5), explanation=[("name", "n", 2.5)])
    pursuit = pursuit_with(complete(), request=SearchRequest(q="n", explain=True))
    (hit,) = answer.search_body(pursuit, found, {1: explained})["hits"]
    assert hit["shard"] == 2
    assert hit["explanation"] == [{"field": "name", "text": "n", "score": 2.5}]


def test_a_hit_that_was_not_fetched_is_left_out() -> None:
    """Its shard is missing then, and the answer says that."""
    found = Finalists([Candidate(-3.0, 1, 0), Candidate(-2.0, 2, 1)], 0, 2)
    body = answer.search_body(pursuit_with(complete()), found, {2: document(2, 2.0)})
    assert [hit["id"] for hit in body["hits"]] == ["id-2"]


def traced(gather: Gather) -> dict[str, Any]:
    pursuit = pursuit_with(phase_of(gather), request=SearchRequest(q="a", trace=True))
    (phase,) = answer.search_body(pursuit, NOTHING_FOUND, {})["trace"]
    assert isinstance(phase, dict)
    return phase


def test_a_trace_shows_every_attempt() -> None:
    """With kind, fate, replica and times since the request's arrival."""
    gather, attempts = eventful()
    phase = traced(gather)
    assert (phase["phase"], phase["started_ms"], phase["decided_ms"]) == ("search", 1.0, 1000.0)
    kinds = [(shown["shard"], shown["kind"], shown["fate"]) for shown in phase["attempts"]]
    assert kinds == [
        (0, "primary", "cancelled"),
        (1, "primary", "failed"),
        (2, "primary", "cancelled"),
        (0, "hedge", "won"),
        (2, "hedge", "cancelled"),
    ]
    assert phase["attempts"][3] == {
        "shard": 0,
        "replica": attempts[3].leaf.name,
        "kind": "hedge",
        "fate": "won",
        "sent_ms": 21.0,
        "ended_ms": 26.123,
        "queue_ms": 1.5,
        "service_ms": 2.5,
    }


def test_a_trace_says_why_an_attempt_failed() -> None:
    """Only where it did."""
    gather, _ = eventful()
    shown = traced(gather)["attempts"]
    assert shown[1]["reason"] == "bad_query"
    assert "reason" not in shown[3]


def test_an_attempt_whose_end_is_not_known_yet_has_no_end() -> None:
    """It was cancelled at the deadline, and its leaf has not answered since."""
    gather, _ = eventful()
    shown = traced(gather)["attempts"][2]
    assert (shown["fate"], shown["ended_ms"]) == ("cancelled", None)
    assert (shown["queue_ms"], shown["service_ms"]) == (None, None)


def test_without_trace_nothing_is_traced() -> None:
    """Attempts are listed only for those who ask."""
    assert "trace" not in answer.search_body(pursuit_with(complete()), NOTHING_FOUND, {})


def test_milliseconds_are_to_the_microsecond() -> None:
    """More digits would be noise."""
    assert answer.milliseconds(0.0012345678) == 1.235


def test_facets_stand_in_the_answer_even_where_no_shard_counted() -> None:
    """By the names that they were asked by."""
    request = SearchRequest(q="a", facets={"x": StatsRequest("n")})
    pursuit = pursuit_with(complete(), request=request)
    pursuit.selection = Selection(facets=(StatsCount("n"),))
    pursuit.view = View(
        structs.replace(CARD, fields=(Field("n", "integer"),)), pursuit.view.replicas
    )
    body = answer.search_body(pursuit, NOTHING_FOUND, {})
    nothing = {"count": 0, "min": None, "max": None, "sum": 0, "avg": None}
    assert body["facets"] == {"x": {"type": "stats", **nothing}}
    pursuit.facets = [Stats(1, 7, 7, (7,))]
    body = answer.search_body(pursuit, NOTHING_FOUND, {})
    assert body["facets"]["x"]["sum"] == 7
