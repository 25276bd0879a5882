"""Query, then fetch: what each phase asks of the leaves, and for how long.

How searches do when leaves are in trouble is in tests/sim.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import pytest

from bench.simulation.corpus import Corpus
from bench.simulation.scripted import Answer, Leg, Script, by_shard, fails, hangs, takes
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run
from leaf.protocol import All, Bool, Documents, FetchBody, Hits, LookupBody, SearchBody, Word
from root.budget import BudgetTerms
from root.config import Settings
from root.errors import BadRequest, NotCovered, Overloaded
from root.fan_out import TIE_BYTES
from root.hedging import MIN_SAMPLES
from root.paging import DEPTH_MARGIN
from root.probation import PROBE_EVERY_S
from root.requests import SearchRequest
from root.search import FETCH_SHARE, Searches

SHARDS = 4
CORPUS = Corpus(100, SHARDS, score=lambda ordinal: 100.0 - ordinal)
T = TypeVar("T")


class Asked:
    """Searches over a fleet, and what the leaves were asked."""

    def __init__(self, settings: Settings, script: Script, answer: Answer) -> None:
        holdings = dealt(SHARDS, leaves=4, replicas=2)
        self.fleet = ScriptedFleet(CORPUS.card, holdings, script, answer=answer)
        self.searches = Searches(self.fleet, settings, asyncio.get_running_loop().time())

    async def search(self, **members: Any) -> dict[str, Any]:
        request = SearchRequest(**({"q": "anything"} | members))
        return await self.searches.search(request, asyncio.get_running_loop().time())

    def legs(self, kind: str) -> list[Leg]:
        received = [leg for leaf in self.fleet.leaves for leg in leaf.received]
        return [leg for leg in received if leg.flight.ask.kind == kind]

    def bodies(self, kind: str, of: type[T]) -> set[T]:
        return {msgspec.json.decode(leg.flight.ask.body, type=of) for leg in self.legs(kind)}


def asking(
    body: Callable[[Asked], Awaitable[None]],
    settings: Settings | None = None,
    script: Script | None = None,
    answer: Answer = CORPUS.answer,
) -> None:
    """Run a test's body in virtual time."""

    async def main() -> None:
        await body(Asked(settings or Settings(), script or takes(0.002), answer))

    run(main)


def test_every_shard_is_asked_and_only_the_winners_are_fetched() -> None:
    """Phase two goes to the shards of the finalists, for their documents."""

    async def body(asked: Asked) -> None:
        answer = await asked.search(k=1)
        assert [hit["id"] for hit in answer["hits"]] == ["doc-00000"]
        assert sorted(leg.shard for leg in asked.legs("search")) == list(range(SHARDS))
        fetched = {
            ordinal
            for leg in asked.legs("fetch")
            for ordinal in (leg.flight.ask.ordinals or {})[leg.shard]
        }
        assert 0 in fetched
        assert len(fetched) <= 1 + DEPTH_MARGIN

    asking(body)


@pytest.mark.parametrize(
    ("query", "margin"),
    [
        (Word("a"), DEPTH_MARGIN + 3),
        (All(), 0),
        (Bool(must_not=(Word("a"),)), 0),
    ],
    ids=["scored", "all", "all but"],
)
def test_a_shard_returns_what_may_be_on_the_page(query: Any, margin: int) -> None:
    """``offset + k`` of its best, and more where scores are not final yet: a few, and of the
    twelve 2.4 where shards' lengths differ by up to one per cent.
    """

    async def body(asked: Asked) -> None:
        await asked.search(q=None, query=query, k=7, offset=5)
        assert asked.bodies("search", SearchBody) == {SearchBody(query, 12 + margin)}

    asking(body)


def test_a_share_of_the_time_is_kept_for_the_fetch() -> None:
    """Phase one ends early enough for hits to be fetched; phase two has what is left."""

    async def body(asked: Asked) -> None:
        with pytest.raises(NotCovered):
            await asked.search(timeout_ms=1000.0)
        searching, fetching = asked.legs("search")[0], asked.legs("fetch")[0]
        assert searching.flight.ask.deadline_s == pytest.approx(1.0 - FETCH_SHARE)
        assert fetching.flight.ask.deadline_s == pytest.approx(1.0)
        assert fetching.budget_s == pytest.approx(FETCH_SHARE)

    asking(body, script=by_shard({3: hangs()}, takes(0.002)))


def test_what_to_return_is_passed_on() -> None:
    """Fields and highlights as asked; by default all fields, and the text that is searched."""

    async def body(asked: Asked) -> None:
        await asked.search(fields=("title",), highlight=("body",))
        assert asked.bodies("fetch", FetchBody) == {
            FetchBody(Word("anything"), ("title",), ("body",))
        }
        for leaf in asked.fleet.leaves:
            leaf.received.clear()
        await asked.search()
        assert asked.bodies("fetch", FetchBody) == {
            FetchBody(Word("anything"), None, ("title", "body"))
        }

    asking(body)


def test_a_look_up_has_no_score_and_no_snippet() -> None:
    """A document by its id is found with a look-up and fetched without a query."""

    async def body(asked: Asked) -> None:
        await asked.searches.document("doc-00007", asyncio.get_running_loop().time())
        assert asked.bodies("lookup", LookupBody) == {LookupBody("doc-00007")}
        assert asked.bodies("fetch", FetchBody) == {FetchBody(None, None, ())}

    asking(body)


def test_a_query_is_read_once_and_sent_as_data() -> None:
    """What was not understood is in the answer; strictly read, nothing is sent."""

    async def body(asked: Asked) -> None:
        found = await asked.search(q="one AND two)")
        assert [fault["position"] for fault in found["warnings"]] == [11]
        (sent,) = asked.bodies("search", SearchBody)
        assert sent.query == Bool(must=(Word("one"), Word("two")))
        received = asked.fleet.received
        with pytest.raises(BadRequest, match="position 11"):
            await asked.search(q="one AND two)", strict=True)
        assert asked.fleet.received == received

    asking(body)


def test_texts_count_as_their_best_field_on_request() -> None:
    """In both phases, for words and for trees."""

    async def body(asked: Asked) -> None:
        await asked.search(q="one", combine="best", tie_breaker=0.25)
        await asked.search(q=None, query=Word("one"), combine="best", tie_breaker=0.25)
        best = Word("one", tie_breaker=0.25)
        assert {sent.query for sent in asked.bodies("search", SearchBody)} == {best}
        assert {sent.query for sent in asked.bodies("fetch", FetchBody)} == {best}

    asking(body)


def test_every_kind_of_work_has_a_history_of_its_own() -> None:
    """Cheap and dear queries, fetches and look-ups are never compared with each other."""

    async def body(asked: Asked) -> None:
        await asked.search(q="one")
        await asked.search(q="one two three four")
        await asked.search(q='"one two"')
        await asked.searches.document("doc-00007", asyncio.get_running_loop().time())
        histories = asked.searches.fan_out.histories
        assert {collection for collection, _ in histories} == {"default"}
        samples = {query_class: history.samples for (_, query_class), history in histories.items()}
        assert set(samples) == {"search-short", "search-long", "search-phrase", "lookup", "fetch"}
        assert samples["search-short"] == samples["search-long"] == SHARDS

    asking(body)


@pytest.mark.parametrize(("burst", "tokens"), [(None, 300.0), (7.0, 7.0)])
def test_the_budget_saves_up_for_queries_of_as_many_legs_as_there_are_shards(
    burst: float | None, tokens: float
) -> None:
    """Unless the operator has set what can be saved up."""

    async def main() -> None:
        corpus = Corpus(120, 60)
        holdings = dealt(60, leaves=4, replicas=2)
        fleet = ScriptedFleet(corpus.card, holdings, takes(0.002), answer=corpus.answer)
        loop = asyncio.get_running_loop()
        searches = Searches(fleet, Settings(budget=BudgetTerms(burst=burst)), loop.time())
        await searches.search(SearchRequest(q="anything"), loop.time())
        assert searches.budget.level(loop.time()) == tokens

    run(main)


def test_a_request_overrides_the_operator_s_defaults() -> None:
    """Coverage and policy are the root's settings where a request names none."""

    async def body(asked: Asked) -> None:
        assert (await asked.search(timeout_ms=50.0))["coverage"]["answered"] == 3
        with pytest.raises(NotCovered):
            await asked.search(timeout_ms=50.0, min_coverage=1.0)

    asking(body, Settings(min_coverage=0.5), by_shard({3: hangs()}, takes(0.002)))


def test_a_query_that_leaves_refuse_is_the_caller_s_fault() -> None:
    """The leaf's words say why; no other replica is tried, and no other shard."""

    async def body(asked: Asked) -> None:
        with pytest.raises(BadRequest, match="no such syntax") as caught:
            await asked.search()
        assert caught.value.field == "q"
        assert asked.fleet.received == 1

    asking(body, script=fails("bad_query", detail="no such syntax"))


def test_too_little_because_leaves_are_busy_is_overload() -> None:
    """Where all that is missing was refused, the client is told to come back."""

    async def body(asked: Asked) -> None:
        with pytest.raises(Overloaded):
            await asked.search()
        assert (await asked.search(min_coverage=0.5))["coverage"]["missing"] == [
            {"shard": 1, "reason": "refused"}
        ]

    asking(body, script=by_shard({1: fails("busy")}, takes(0.002)))


def test_one_trace_of_random_choices_per_seed() -> None:
    """The same seed asks the same replicas; another seed asks others."""

    def leaves_asked(seed: int) -> list[str]:
        names: list[str] = []

        async def body(asked: Asked) -> None:
            for _ in range(20):
                answer = await asked.search(trace=True)
                names.extend(a["replica"] for p in answer["trace"] for a in p["attempts"])

        asking(body, Settings(seed=seed))
        return names

    assert leaves_asked(1) == leaves_asked(1)
    assert leaves_asked(1) != leaves_asked(2)


@pytest.mark.parametrize("garbage", [b'[["high"],[1]]', b"[[1.0],[1,2]]", b'{"a":1}'])
def test_hits_that_cannot_be_read_are_a_shard_that_failed(garbage: bytes) -> None:
    """The rest of the page comes, and the answer says which shard is missing from it."""

    def garbled(leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        reply = CORPUS.answer(leg, queue_us, service_us)
        if isinstance(reply, Hits) and leg.shard == 1:
            reply.ranked = msgspec.Raw(garbage)
        return reply

    async def body(asked: Asked) -> None:
        found = await asked.search(k=3, min_coverage=0.5)
        assert [hit["id"] for hit in found["hits"]] == ["doc-00000", "doc-00002", "doc-00003"]
        assert found["coverage"]["missing"] == [{"shard": 1, "reason": "error"}]
        assert found["total"] == {"value": 75, "relation": "gte"}

    asking(body, answer=garbled)


def test_nothing_that_can_be_read_is_no_empty_page() -> None:
    """However little coverage is asked for, some shard must have been searched."""

    def garbled(leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        reply = CORPUS.answer(leg, queue_us, service_us)
        if isinstance(reply, Hits):
            reply.ranked = msgspec.Raw(b"[]")
        return reply

    async def body(asked: Asked) -> None:
        with pytest.raises(NotCovered):
            await asked.search(min_coverage=0.0)

    asking(body, answer=garbled)


def test_a_search_that_has_enough_does_not_wait_for_the_rest() -> None:
    """One shard of four hangs: who asks for three quarters gets them at once, and the answer
    says what is missing; who asks for everything waits for it.
    """

    async def body(asked: Asked) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(MIN_SAMPLES):
            await asked.search()
        for leaf in asked.fleet.leaves:
            leaf.script = by_shard({3: hangs()}, takes(0.002))
        started_s = loop.time()
        found = await asked.search(min_coverage=0.75, timeout_ms=1000.0)
        assert loop.time() - started_s < 0.010
        assert found["coverage"]["missing"] == [{"shard": 3, "reason": "timeout"}]
        started_s = loop.time()
        with pytest.raises(NotCovered):
            await asked.search(timeout_ms=1000.0)
        assert loop.time() - started_s > 0.5

    asking(body, Settings(hedge="off"))


def test_a_request_has_one_number_in_all_of_its_phases() -> None:
    """And the next one another: leaves can tell which legs belong together."""

    async def body(asked: Asked) -> None:
        for _ in range(2):
            await asked.search()
        for kind in ("search", "fetch"):
            assert [leg.flight.ask.query for leg in asked.legs(kind)].count(1) > 0
            assert {leg.flight.ask.query for leg in asked.legs(kind)} == {1, 2}

    asking(body)


def test_each_phase_of_a_tied_request_has_a_secret_of_its_own() -> None:
    """Long and never the same: it is what lets leaves drop a leg. Others have none."""

    async def body(asked: Asked) -> None:
        for hedge in ("tied", "tied", "off"):
            await asked.search(hedge=hedge)
        ties = {leg.flight.ask.tie for kind in ("search", "fetch") for leg in asked.legs(kind)}
        assert len(ties) == 5
        assert sorted({len(tie) for tie in ties}) == [0, 2 * TIE_BYTES]

    asking(body)


@pytest.mark.parametrize(
    ("priority", "hedge", "probes"),
    [("interactive", None, 1), ("interactive", "off", 1), ("batch", None, 0)],
)
def test_probes_ride_on_the_search_phase_of_interactive_queries(
    priority: str, hedge: str | None, probes: int
) -> None:
    """Whatever the hedging policy: choosing a leaf is no hedging. A fetch carries none."""

    async def body(asked: Asked) -> None:
        await asked.search()
        sick = asked.fleet[0].leaf
        asked.searches.probation.put(sick, 0.0)
        await asyncio.sleep(PROBE_EVERY_S)
        answer = await asked.search(priority=priority, hedge=hedge, trace=True)
        kinds = {
            phase["phase"]: [attempt["kind"] for attempt in phase["attempts"]]
            for phase in answer["trace"]
        }
        assert kinds["search"].count("probe") == probes
        assert "probe" not in kinds["fetch"]
        fetched = len(kinds["fetch"])
        assert answer["attempts"]["sent"] == SHARDS + probes + fetched

    asking(body)


def test_a_leaf_that_is_slow_for_long_goes_on_probation() -> None:
    """Every query looks whether one does; what is answered does not suffer from it."""

    async def body(asked: Asked) -> None:
        sick = asked.fleet[0].leaf
        sick.latency_s, sick.idle_from_s = 1.0, math.inf
        for _ in range(120):
            await asked.search()
            await asyncio.sleep(0.02)
        assert [leaf.leaf.trial is None for leaf in asked.fleet.leaves] == [False, True, True, True]
        assert asked.searches.ledger.sent["probe"] > 0

    asking(body)
