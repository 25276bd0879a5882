"""Whole searches, query and fetch, by a fleet of scripted leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from bench.simulation.corpus import Corpus, all_equal, document_id
from bench.simulation.scripted import (
    Deed,
    Leg,
    Script,
    by_shard,
    fails,
    hangs,
    takes,
    takes_about,
)
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run
from root.budget import BudgetTerms
from root.conduct import FailureReason
from root.config import Settings
from root.errors import NoShards, NotCovered, Overloaded, UnknownDocument
from root.requests import HedgeName, SearchRequest
from root.search import Searches

SHARDS = 8
PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)
DEFAULTS = Settings(hedge_delay_ms=10.0, budget=PLENTY)
FAILURES: Final[tuple[FailureReason, ...]] = ("error", "busy", "gone")
WORDS = SearchRequest(q="anything")


class Searched:
    """A fleet of four leaves, two replicas a shard, and the searches over it."""

    def __init__(
        self, script: Script, settings: Settings = DEFAULTS, corpus: Corpus | None = None
    ) -> None:
        self.corpus = corpus or Corpus(400, SHARDS)
        holdings = dealt(SHARDS, leaves=4, replicas=2)
        self.fleet = ScriptedFleet(self.corpus.card, holdings, script, answer=self.corpus.answer)
        self.searches = Searches(self.fleet, settings, asyncio.get_running_loop().time())

    async def search(self, request: SearchRequest = WORDS) -> dict[str, Any]:
        return await self.searches.search(request, asyncio.get_running_loop().time())

    async def warm_up(self) -> None:
        """Give every class of queries a history."""
        for _ in range(60):
            await self.search()

    def script_all(self, script: Script) -> None:
        for leaf in self.fleet.leaves:
            leaf.script = script


def hit_ids(body: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in body["hits"]]


@pytest.mark.parametrize("score", [all_equal, lambda i: 1.0 + i % 3], ids=["equal", "three"])
def test_pages_of_equal_scores_neither_repeat_nor_skip(score: Any) -> None:
    """Twenty pages, from whichever replicas: together what one index would say, in its order."""

    async def main() -> None:
        searched = Searched(
            takes_about(0.01, 1.0, Random("legs")), corpus=Corpus(400, SHARDS, score)
        )
        await searched.warm_up()
        pages: list[str] = []
        for page in range(20):
            request = SearchRequest(q="anything", k=10, offset=10 * page, hedge="fixed")
            body = await searched.search(request)
            assert body["total"] == {"value": 400, "relation": "eq"}
            pages += hit_ids(body)
        assert pages == searched.corpus.ids(0, 200)

    run(main)


def test_an_answer_is_the_same_whatever_fails_on_the_way() -> None:
    """Errors, refusals and hedges change who answers, not what."""

    async def main() -> None:
        random = Random("legs")

        def script(leg: Leg) -> Deed:
            if leg.attempt.kind == "primary" and random.random() < 0.3:
                return Deed(0.001, random.choice(FAILURES))
            return Deed(random.expovariate(1 / 0.01))

        settings = replace(DEFAULTS, attempts_max=4, timeout_ms=5000.0, canary=False)
        searched = Searched(script, settings)
        for number in range(200):
            offset = 3 * number % 100
            body = await searched.search(SearchRequest(q="a", k=7, offset=offset, hedge="fixed"))
            assert hit_ids(body) == searched.corpus.ids(offset, 7)
            assert body["coverage"]["complete"]

    run(main)


@pytest.mark.parametrize("phase", ["search", "fetch"])
def test_a_page_with_shards_missing_is_that_of_the_others(phase: str) -> None:
    """Shards fail on one replica or on both, late or at once, while others are hedged and fail
    over: never more hits than asked for, and those of one big index over the shards that are
    there, in its order, as far as documents could be fetched.
    """

    async def main() -> None:
        random = Random("legs")
        corpus = Corpus(400, SHARDS, lambda i: 1.0 + i * 37 % 5)
        settings = replace(DEFAULTS, min_coverage=0.0, canary=False)
        searched = Searched(takes(0.002), settings, corpus)
        await searched.warm_up()

        def script(leg: Leg) -> Deed:
            if leg.flight.ask.kind != phase:
                return Deed(0.001)
            if random.random() < 0.3:
                return Deed(random.expovariate(1 / 0.01), random.choice(FAILURES))
            return Deed(random.expovariate(1 / 0.01))

        searched.script_all(script)
        partial = 0
        for number in range(300):
            offset = 3 * number % 100
            request = SearchRequest(q="a", k=7, offset=offset, hedge="fixed", timeout_ms=60.0)
            body = await searched.search(request)
            missing = [one["shard"] for one in body["coverage"]["missing"]]
            partial += bool(missing)
            there = [i for i in corpus.oracle if i % SHARDS not in missing]
            ids = [document_id(i) for i in there]
            if phase == "search":
                assert hit_ids(body) == ids[offset : offset + 7]
            else:
                assert len(body["hits"]) <= 7
                assert hit_ids(body) == [one for one in ids if one in hit_ids(body)]
            assert body["total"]["relation"] == ("gte" if missing else "eq")
            assert body["coverage"]["searched"] == len(there)
        assert 50 < partial < 250

    run(main)


def test_a_request_s_own_timeout_bounds_it() -> None:
    """With one shard hanging on every replica, ``timeout_ms=100`` ends in 100 ms with the rest."""

    async def main() -> None:
        searched = Searched(takes(0.002))
        await searched.warm_up()
        searched.script_all(by_shard({3: hangs()}, takes(0.002)))
        started_s = asyncio.get_running_loop().time()
        body = await searched.search(SearchRequest(q="a", timeout_ms=100.0, min_coverage=0.5))
        assert asyncio.get_running_loop().time() - started_s <= 0.1
        assert body["coverage"]["missing"] == [{"shard": 3, "reason": "timeout"}]
        assert body["total"] == {"value": 350, "relation": "gte"}
        assert hit_ids(body) == [i for i in searched.corpus.ids(0, 11) if i != "doc-00003"]

    run(main)


def test_a_shard_that_hangs_in_the_fetch_is_missing_too() -> None:
    """Hits that cannot be fetched in time are left out, and the answer says so."""

    async def main() -> None:
        def script(leg: Leg) -> Deed:
            fetching = leg.flight.ask.kind == "fetch"
            return Deed(0.002) if leg.shard != 3 or not fetching else Deed(10.0)

        searched = Searched(script)
        request = SearchRequest(q="a", timeout_ms=100.0, min_coverage=0.5)
        body = await searched.search(request)
        assert body["coverage"]["missing"] == [{"shard": 3, "reason": "timeout"}]
        assert not body["coverage"]["complete"]
        assert "doc-00003" not in hit_ids(body)

    run(main)


def test_too_little_in_time_is_an_error_with_what_there_is() -> None:
    """A late shard does not count as searched; the partial answer comes along."""

    async def main() -> None:
        searched = Searched(by_shard({3: hangs()}, takes(0.002)))
        with pytest.raises(NotCovered) as caught:
            await searched.search(SearchRequest(q="a", timeout_ms=100.0))
        assert caught.value.partial is not None
        coverage = caught.value.partial["coverage"]
        assert (coverage["answered"], coverage["searched"]) == (7, 350)
        assert caught.value.partial["total"] == {"value": 350, "relation": "gte"}

    run(main)


def test_nothing_at_all_is_never_an_empty_answer() -> None:
    """All shards failed, or no leaf is there: an error, not a page without hits."""

    async def main() -> None:
        searched = Searched(fails("error", after_s=0.001, detail="disk"))
        with pytest.raises(NoShards, match="disk"):
            await searched.search()
        for number in range(4):
            searched.fleet.disconnect(number)
        with pytest.raises(NoShards):
            await searched.search()

    run(main)


def test_push_back_is_passed_on_to_the_client() -> None:
    """Every leaf busy: one more attempt a leg at most, and the client is told when to return."""

    async def main() -> None:
        searched = Searched(fails("busy"))
        with pytest.raises(Overloaded) as caught:
            await searched.search()
        assert caught.value.retry_after_s >= 1
        assert searched.fleet.received <= 2 * SHARDS
        assert all(leaf.leaf.connected for leaf in searched.fleet.leaves)

    run(main)


@pytest.mark.parametrize("hedge", ["off", "fixed", "quantile"])
@pytest.mark.parametrize("budget", [PLENTY, BudgetTerms(max_extra_load=0.0)], ids=["rich", "broke"])
@pytest.mark.parametrize("leaves_down", [0, 2], ids=["all up", "no second replica"])
def test_an_answer_says_hedged_only_when_a_hedge_went_out(
    hedge: HedgeName, budget: BudgetTerms, leaves_down: int
) -> None:
    """What ``attempts`` and the trace say is what the leaves received."""

    async def main() -> None:
        searched = Searched(takes(0.002), replace(DEFAULTS, budget=budget))
        await searched.warm_up()
        for number in range(leaves_down):
            searched.fleet.disconnect(2 * number)
        random = Random("legs")
        searched.script_all(lambda _: Deed(0.05 if random.random() < 0.2 else 0.002))
        for _ in range(20):
            before = searched.fleet.received
            body = await searched.search(SearchRequest(q="a", hedge=hedge, trace=True))
            await asyncio.sleep(0.2)
            kinds = [a["kind"] for phase in body["trace"] for a in phase["attempts"]]
            assert body["attempts"]["sent"] == len(kinds) == searched.fleet.received - before
            assert body["attempts"]["hedged"] == kinds.count("hedge")
            if hedge == "off" or budget is not PLENTY or leaves_down:
                assert body["attempts"]["hedged"] == 0
        assert searched.searches.ledger.in_flight == 0

    run(main)


def test_batch_searches_are_never_hedged() -> None:
    """Whatever the request asks for."""

    async def main() -> None:
        searched = Searched(takes(0.002))
        await searched.warm_up()
        searched.script_all(takes(0.05))
        body = await searched.search(SearchRequest(q="a", hedge="fixed", priority="batch"))
        assert body["attempts"]["hedged"] == 0

    run(main)


def test_a_document_is_looked_up_everywhere_and_said_to_be_nowhere_only_when_sure() -> None:
    """Found, surely not there, and not known because a shard is silent."""

    async def main() -> None:
        searched = Searched(takes(0.002))
        now = asyncio.get_running_loop().time
        found = await searched.searches.document("doc-00123", now())
        assert found["id"] == "doc-00123"
        assert found["fields"] == {"title": "doc-00123"}
        with pytest.raises(UnknownDocument):
            await searched.searches.document("nowhere", now())
        searched.script_all(by_shard({3: hangs()}, takes(0.002)))
        with pytest.raises(NotCovered):
            await searched.searches.document("nowhere", now())
        searched.script_all(fails("error"))
        with pytest.raises(NoShards):
            await searched.searches.document("doc-00123", now())


def test_a_lax_operator_does_not_make_a_look_up_less_sure() -> None:
    """However little coverage a search needs, 404 is said of what was looked for everywhere."""

    async def main() -> None:
        searched = Searched(by_shard({3: hangs()}, takes(0.002)), Settings(min_coverage=0.0))
        with pytest.raises(NotCovered):
            await searched.searches.document("nowhere", asyncio.get_running_loop().time())

    run(main)
