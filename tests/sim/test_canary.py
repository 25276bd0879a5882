"""Queries that end what works on them: how many leaves that costs, and whom else."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from random import Random

import pytest

from bench.simulation.scripted import Deed, Leg
from root.canary import QUARANTINE_S, QUARANTINE_S_MAX
from root.config import Settings
from root.errors import FleetError, NoShards, Quarantined
from root.hedging import MIN_SAMPLES
from root.shapes import DEPTH_DANGEROUS
from tests.sim.peril import BACK_AFTER_S, LEAVES, SHARDS, WORK_S, Peril, in_peril
from tests.sim.serving import PLENTY

# --- what ends leaves --------------------------------------------------------------------


def test_a_query_of_death_ends_one_leaf_and_is_refused() -> None:
    """At once; its twin never sees it; and as long as the quarantine lasts, nobody does."""

    async def body(peril: Peril) -> None:
        error = await peril.refused("deadly")
        assert peril.now() < 0.01
        assert (error.field, error.retry_after_s) == ("q", QUARANTINE_S)
        assert "a leaf was lost while it worked on one of them" in error.detail
        received = peril.fleet.received
        await asyncio.sleep(QUARANTINE_S - 0.01)
        assert (await peril.refused("deadly")).retry_after_s == 1
        assert (await peril.refused("another")).retry_after_s == 1
        assert len(peril.struck) == 1
        assert peril.fleet.received == received

    in_peril(body)


def test_a_quarantine_doubles_until_what_was_wrong_is_mended() -> None:
    """After it one canary is sent, and one leaf ended; when leaves are mended, it passes."""

    async def body(peril: Peril) -> None:
        span_s = QUARANTINE_S
        for deaths in range(1, 9):
            assert (await peril.refused("deadly")).retry_after_s == span_s
            assert len(peril.struck) == deaths
            await asyncio.sleep(span_s - 0.001)
            await peril.refused("deadly")
            assert len(peril.struck) == deaths
            await asyncio.sleep(0.002)
            span_s = min(2 * span_s, QUARANTINE_S_MAX)
        peril.harmful = False
        assert [p["phase"] for p in (await peril.complete("deadly", trace=True))["trace"]] == [
            "canary",
            "search",
            "fetch",
        ]
        assert (await peril.complete("deadly"))["attempts"]["failed_over"] == 0

    in_peril(body)


@pytest.mark.parametrize("stalls", [False, True], ids=["kills", "stalls"])
def test_of_many_at_once_one_goes_ahead(*, stalls: bool) -> None:
    """A hundred queries of an unknown shape that does harm cost one leaf and are all refused;
    a hundred that do none cost one canary and are all answered.
    """

    async def body(peril: Peril) -> None:
        verdicts = await asyncio.gather(*(peril.refused("deadly") for _ in range(100)))
        assert len(peril.struck) == 1
        assert {error.retry_after_s for error in verdicts} == {QUARANTINE_S}
        canaries = peril.shapes.canaries
        await asyncio.gather(*(peril.complete(f"one two {i}") for i in range(100)))
        assert peril.shapes.canaries == canaries + 1

    in_peril(body, stalls=stalls)


@pytest.mark.parametrize("stalls", [False, True], ids=["kills", "stalls"])
def test_others_do_not_notice(*, stalls: bool) -> None:
    """While somebody insists on a deadly query, queries of other shapes are all complete."""

    async def body(peril: Peril) -> None:
        refused = 0

        async def insist() -> None:
            nonlocal refused
            try:
                await peril.search("deadly")
            except Quarantined:
                refused += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(1000):
                group.create_task(insist())
                group.create_task(asyncio.wait_for(peril.complete("quite harmless"), 1.0))
                await asyncio.sleep(0.01)
        assert refused == 1000
        assert 1 <= len(peril.struck) <= 3

    in_peril(body, stalls=stalls)


def test_words_that_kill_are_not_held_against_their_shape() -> None:
    """Of a shape that is known to be harmless, one query ends leaves. The second time it ends
    one, and is refused; all others of its shape are answered.
    """

    async def body(peril: Peril) -> None:
        await peril.complete("harmless")
        with suppress(FleetError):
            await peril.search("deadly")
        await asyncio.sleep(BACK_AFTER_S + QUARANTINE_S)
        peril.struck.clear()
        error = await peril.refused("deadly")
        assert error.detail.startswith("this query is refused for")
        assert len(peril.struck) == 1
        await peril.complete("harmless")
        await peril.refused("deadly")
        assert len(peril.struck) == 1

    in_peril(body)


def test_what_two_leaves_were_lost_under_gets_no_third() -> None:
    """A leg moves on from a lost leaf once. Lost again, its query is refused from then on."""

    async def body(peril: Peril) -> None:
        await peril.search("harmless")
        with pytest.raises(NoShards):
            await peril.search("deadly")
        assert len(set(peril.struck)) == len(peril.struck) == 2
        assert (await peril.refused("deadly")).detail.startswith("this query is refused")
        assert len(peril.struck) == 2
        await peril.search("harmless")

    in_peril(body, shards=1, replicas=3)


def test_a_leaf_that_dies_of_something_else_costs_nobody_anything() -> None:
    """Whenever it happens to be: queries of a known shape are whole, and nobody is told 422."""

    async def body(peril: Peril) -> None:
        random = Random("moments")
        await peril.complete("harmless")
        for moment in range(1000):
            peril.lose(moment % LEAVES, random.uniform(0.0, 0.008))
            async with asyncio.TaskGroup() as group:
                for _ in range(2):
                    group.create_task(peril.complete("harmless"))
                    await asyncio.sleep(0.003)
                group.create_task(peril.complete("harmless"))
            await asyncio.sleep(BACK_AFTER_S)
            await peril.complete("harmless")
        assert peril.shapes.refused == 0
        assert peril.shapes.canaries > 100

    in_peril(body, shards=4)


# --- what it costs -----------------------------------------------------------------------


@pytest.mark.parametrize("hedge", ["off", "fixed", "quantile", "sibling", "adaptive", "together"])
@pytest.mark.parametrize("shards", [1, 2, SHARDS])
def test_the_canary_s_answer_is_its_shard_s(shards: int, hedge: str) -> None:
    """Each shard is asked once, one before the others; the answer is as without a canary."""

    async def body(peril: Peril) -> None:
        answer = await peril.complete("harmless", hedge="off", trace=True)
        assert sorted(leg.shard for leg in peril.legs()) == list(range(shards))
        asked = [(phase["phase"], len(phase["attempts"])) for phase in answer["trace"][:-1]]
        assert asked == [("canary", 1), ("search", shards - 1)][: min(2, shards)]
        assert answer["attempts"]["sent"] == sum(len(p["attempts"]) for p in answer["trace"])
        again = await peril.complete("harmless", hedge="off")
        for member in ("hits", "total", "coverage"):
            assert again[member] == answer[member]
        await peril.complete("harmless too", hedge=hedge)

    in_peril(body, shards=shards)


def test_a_canary_does_not_wait_behind_batch_work() -> None:
    """Its query may, but others wait for it."""

    async def body(peril: Peril) -> None:
        await peril.complete("harmless", priority="batch")
        first, *rest = sorted(peril.legs(), key=lambda leg: leg.arrived_s)
        assert first.flight.ask.priority == "interactive"
        assert {leg.flight.ask.priority for leg in rest} == {"batch"}

    in_peril(body)


def test_a_known_shape_is_not_tried() -> None:
    """Whatever its words: every shard is asked at once."""

    async def body(peril: Peril) -> None:
        await peril.complete("first second")
        trace = (await peril.complete("third fourth", trace=True))["trace"]
        assert [phase["phase"] for phase in trace] == ["search", "fetch"]
        await peril.searches.document("doc-00001", peril.now())
        assert peril.shapes.canaries == 1

    in_peril(body)


def test_a_dangerous_query_is_tried_each_time() -> None:
    """Those that differ do not wait for each other."""

    async def body(peril: Peril) -> None:
        await peril.search("first", offset=DEPTH_DANGEROUS)
        started_s = peril.now()
        await asyncio.gather(*(peril.search(f"word{i}", offset=DEPTH_DANGEROUS) for i in range(10)))
        assert peril.shapes.canaries == 11
        assert peril.now() - started_s < 4 * WORK_S

    in_peril(body)


def test_a_dangerous_query_that_many_ask_at_once_goes_ahead_once() -> None:
    """It takes all of them the time of two legs and a fetch, and not of one leg for each."""

    async def body(peril: Peril) -> None:
        started_s = peril.now()
        await asyncio.gather(*(peril.search("deep", offset=DEPTH_DANGEROUS) for _ in range(5)))
        assert peril.shapes.canaries == 1
        assert peril.now() - started_s < 4 * WORK_S

    in_peril(body)


def test_an_operator_who_knows_the_queries_can_do_without() -> None:
    """Then nothing is tried, and nothing refused."""

    async def body(peril: Peril) -> None:
        trace = (await peril.complete("harmless", trace=True))["trace"]
        assert [phase["phase"] for phase in trace] == ["search", "fetch"]
        with suppress(FleetError):
            await peril.search("deadly")
        assert len(set(peril.struck)) > 1
        assert len(peril.shapes) == 0

    in_peril(body, Settings(budget=PLENTY, canary=False))


def test_no_leaf_at_all_is_not_the_query_s_fault() -> None:
    """Without anybody to try it on, it is as incomplete as any."""

    async def body(peril: Peril) -> None:
        for number in range(LEAVES - 1):
            peril.fleet.disconnect(number)
        answer = await peril.search("harmless", min_coverage=0.0)
        assert answer["coverage"]["answered"] == SHARDS // 2
        peril.fleet.disconnect(LEAVES - 1)
        with pytest.raises(NoShards):
            await peril.search("of another shape")
        assert peril.shapes.canaries == 1
        assert peril.shapes.refused == 0

    in_peril(body)


def test_what_the_canary_has_searched_counts_towards_enough() -> None:
    """Who asks for seven shards of eight has them, with the canary's, when six others answer."""

    async def body(peril: Peril) -> None:
        for _ in range(MIN_SAMPLES):
            await peril.complete("harmless")
        canary = peril.shapes.canaries
        legs: list[Leg] = []

        def work(leg: Leg) -> Deed:
            legs.append(leg)
            hangs = leg.shard == (legs[0].shard + 1) % SHARDS
            return Deed(math.inf if hangs else WORK_S)

        peril.work = work
        started_s = peril.now()
        found = await peril.search("+harmless", min_coverage=0.875, hedge="off")
        assert peril.now() - started_s < 0.05
        assert found["coverage"]["answered"] == SHARDS - 1
        assert peril.shapes.canaries == canary + 1

    in_peril(body)
