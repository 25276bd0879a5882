"""Metrics: what is exported, and that it is what happened."""

from __future__ import annotations

import asyncio

import pytest

from bench.simulation.scripted import Deed, Leg, fails, takes
from root.budget import BudgetTerms
from root.canary import QUARANTINE_S
from root.conduct import FailureReason
from root.config import Settings
from root.hedging import MIN_SAMPLES
from root.rehearsal import REQUESTS_MIN
from tests.sim.serving import PLENTY, SHARDS, WORK_S, Served, served


def test_latency_counts_from_the_arrival_of_a_request() -> None:
    """Every request is in the histogram, whatever came of it."""

    async def body(serving: Served) -> None:
        for target in ("/search?q=a", "/search?q=a&k=0", "/documents/nowhere"):
            await serving.client.get(target)
        count = "hedgerow_root_request_seconds_count"
        assert await serving.metric(count, route="search") == 2
        assert await serving.metric(count, route="document") == 1
        took_s = await serving.metric("hedgerow_root_request_seconds_sum", route="search")
        assert took_s == pytest.approx(2 * (WORK_S + 0.0002))
        for status, requests in (("200", 1), ("400", 1), ("404", 1)):
            total = await serving.metric("hedgerow_root_requests_total", status=status)
            assert total == requests

    served(body, Settings(canary=False))


def test_the_loop_measures_its_own_lateness() -> None:
    """A loop that is on time is late by nothing."""

    async def body(serving: Served) -> None:
        await asyncio.sleep(1.05)
        assert await serving.metric("hedgerow_root_loop_lag_seconds_count") == 10
        assert await serving.metric("hedgerow_root_loop_lag_seconds_sum") == pytest.approx(0.0)

    served(body)


@pytest.mark.parametrize("policy", ["adaptive", "quantile"])
def test_the_trigger_is_shown_once_there_is_one(policy: str) -> None:
    """By class of query, when its history is long enough: of ``adaptive``, the price."""

    async def body(serving: Served) -> None:
        trigger = "hedgerow_hedge_trigger_seconds"
        await serving.client.get("/search?q=a")
        assert await serving.metric(trigger) == 0
        for _ in range(MIN_SAMPLES // SHARDS):
            await serving.client.get("/search?q=a")
        await asyncio.sleep(0.2)
        await serving.client.get("/search?q=a")
        shown_s = await serving.metric(trigger, query_class="search-short")
        if policy == "adaptive":
            assert shown_s == serving.root.searches.fan_out.paces["default", "search-short"].price_s
        else:
            assert shown_s == pytest.approx(WORK_S + 0.0002, rel=0.05)
        assert await serving.metric(trigger, query_class="search-phrase") == 0

    served(body, Settings(hedge=policy))


def test_hedges_and_what_they_cost_are_shown() -> None:
    """Sent, won, denied, without candidate, seconds wasted and saved, and the budget left."""

    async def body(serving: Served) -> None:
        for _ in range(MIN_SAMPLES):
            await serving.client.get("/search?q=a")
        before = await serving.metric("hedgerow_budget_tokens")
        slow = takes(0.1)
        for leaf in serving.fleet.leaves:
            leaf.script = lambda leg: slow(leg) if leg.attempt.kind == "primary" else Deed(0.002)
        await serving.client.get("/search?q=a&hedge=fixed")
        await asyncio.sleep(1.0)
        hedges = await serving.metric("hedgerow_attempts_sent_total", kind="hedge")
        assert hedges >= SHARDS
        assert await serving.metric("hedgerow_hedge_wins_total") == hedges
        wasted_s = await serving.metric("hedgerow_wasted_service_seconds_total")
        assert wasted_s == pytest.approx(0.1 * hedges)
        saved_s = await serving.metric("hedgerow_hedge_saved_seconds_total")
        hedged_after_s, hedge_took_s = 0.010, 0.002
        assert saved_s == pytest.approx((0.1 - hedged_after_s - hedge_took_s) * hedges, rel=0.01)
        assert await serving.metric("hedgerow_budget_tokens") <= before
        assert await serving.metric("hedgerow_hedges_denied_total") == 0
        for number in (0, 2):
            serving.fleet.disconnect(number)
        await serving.client.get("/search?q=a&hedge=fixed")
        assert await serving.metric("hedgerow_hedges_without_candidate_total") >= SHARDS

    served(body, Settings(hedge="off", budget=PLENTY))


def test_what_became_of_tied_copies_is_shown() -> None:
    """Those that were dropped; and those that were done twice, as leaves did not hear."""

    async def body(serving: Served) -> None:
        for _ in range(MIN_SAMPLES):
            await serving.client.get("/search?q=a")
        for leaf in serving.fleet.leaves:
            leaf.script = takes(0.010)
        await serving.client.get("/search?q=a&hedge=tied")
        await asyncio.sleep(1.0)
        dropped = await serving.metric("hedgerow_tied_dropped_total")
        assert dropped == await serving.metric("hedgerow_attempts_sent_total", kind="tied") > 0
        assert await serving.metric("hedgerow_tied_duplicates_total") == 0
        for leaf in serving.fleet.leaves:
            leaf.tells_peers = False
        await serving.client.get("/search?q=a&hedge=tied")
        await asyncio.sleep(1.0)
        assert await serving.metric("hedgerow_tied_dropped_total") == dropped
        assert await serving.metric("hedgerow_tied_duplicates_total") == dropped

    served(body, Settings(hedge="off", budget=PLENTY))


def test_hedges_that_the_budget_denied_are_shown() -> None:
    """And that nothing was sent, won or saved."""

    async def body(serving: Served) -> None:
        for _ in range(MIN_SAMPLES):
            await serving.client.get("/search?q=a")
        for leaf in serving.fleet.leaves:
            leaf.script = lambda leg: Deed(0.1 if leg.flight.ask.kind == "search" else WORK_S)
        await serving.client.get("/search?q=a&hedge=fixed")
        assert await serving.metric("hedgerow_hedges_denied_total") >= 1
        assert await serving.metric("hedgerow_attempts_sent_total", kind="hedge") == 0
        assert await serving.metric("hedgerow_hedge_wins_total") == 0
        assert await serving.metric("hedgerow_hedge_saved_seconds_total") == 0

    served(body, Settings(budget=BudgetTerms(max_extra_load=0.0)))


@pytest.mark.parametrize(("failure", "reason"), [("busy", "push_back"), ("error", "errors")])
def test_it_is_shown_why_hedging_rests(failure: FailureReason, reason: str) -> None:
    """By reason, and only as long as it does."""

    async def body(serving: Served) -> None:
        async def resting() -> dict[str, float]:
            name = "hedgerow_hedging_resting"
            return {r: await serving.metric(name, reason=r) for r in ("push_back", "errors")}

        assert await resting() == {"push_back": 0, "errors": 0}
        for leaf in serving.fleet.leaves:
            leaf.script = fails(failure)
        for _ in range(10):
            await serving.client.get("/search?q=a")
        assert await resting() == {"push_back": 0, "errors": 0} | {reason: 1}
        await asyncio.sleep(10.0)
        assert await resting() == {"push_back": 0, "errors": 0}

    served(body)


def test_canaries_and_quarantines_are_shown() -> None:
    """How many were sent, how many suspects are refused now, and how many queries for it."""

    async def body(serving: Served) -> None:
        await serving.client.get("/search?q=a")
        await serving.client.get("/search?q=b")
        assert await serving.metric("hedgerow_canaries_sent_total") == 1
        for leaf in serving.fleet.leaves:
            leaf.script = fails("gone")
        for _ in range(3):
            assert (await serving.client.get("/search?q=a+b")).status == 422
        assert await serving.metric("hedgerow_canaries_sent_total") == 2
        assert await serving.metric("hedgerow_quarantines") == 1
        assert await serving.metric("hedgerow_queries_quarantined_total") == 3
        await asyncio.sleep(QUARANTINE_S)
        assert await serving.metric("hedgerow_quarantines") == 0

    served(body)


def test_every_leaf_is_shown_by_its_address() -> None:
    """Whether it is connected, whether on probation, and how long its legs take."""

    async def body(serving: Served) -> None:
        serving.fleet.disconnect(2)
        serving.fleet[1].leaf.put_on_probation(0.0)
        await serving.client.get("/search?q=a")
        for number in range(4):
            url = f"http://leaf-{number}"
            assert await serving.metric("hedgerow_root_leaf_connected", leaf=url) == (number != 2)
            on_probation = await serving.metric("hedgerow_root_leaf_on_probation", leaf=url)
            assert on_probation == (number == 1)
            assert await serving.metric("hedgerow_root_leaf_outstanding", leaf=url) == 0
            assert await serving.metric("hedgerow_root_leaf_latency_seconds", leaf=url) > 0

    served(body)


def test_shadow_counts_what_it_would_have_sent_and_sends_nothing() -> None:
    """A leaf stalls now and then; every request waits for it, and the report says what hedging
    would have made of that.
    """
    legs = 0

    def stalls(_: Leg) -> Deed:
        nonlocal legs
        legs += 1
        return Deed(WORK_S if legs % 50 else 0.2)

    async def body(serving: Served) -> None:
        for _ in range(REQUESTS_MIN):
            await serving.client.get("/search?q=a")
            await asyncio.sleep(0.05)
        assert await serving.metric("hedgerow_attempts_sent_total", kind="hedge") == 0
        assert await serving.metric("hedgerow_shadow_requests_total") == REQUESTS_MIN
        extra = "hedgerow_shadow_extra_attempts_total"
        assert await serving.metric(extra, max_extra_load="0.05") > 0
        report = (await serving.client.get("/hedging")).json
        assert (report["hedge"], report["requests"]) == ("shadow", REQUESTS_MIN)
        assert report["off"]["p99"] > 200.0
        assert report["arms"]["adaptive@0.05"]["p99"] < 100.0
        assert report["recommendation"]["hedge"] == "adaptive"

    served(body, Settings(hedge="shadow", canary=False), stalls)


def test_without_shadow_there_is_nothing_to_report() -> None:
    """The report is empty, and says why it gives no advice."""

    async def body(serving: Served) -> None:
        await serving.client.get("/search?q=a")
        report = (await serving.client.get("/hedging")).json
        assert report["requests"] == 0
        assert report["recommendation"]["hedge"] is None

    served(body)


def test_a_root_that_is_not_watched_answers_and_keeps_nothing() -> None:
    """The same page; what would show counts, the last minute or slow queries is not there."""

    async def body(serving: Served) -> None:
        got = await serving.client.get("/search?q=anything&k=5")
        assert [hit["id"] for hit in got.json["hits"]] == serving.corpus.ids(0, 5)
        assert (await serving.client.get("/search?q=a&k=0")).status == 400
        for path in ("/metrics", "/live", "/slow"):
            assert (await serving.client.get(path)).status == 404

    served(body, Settings(canary=False, watch=False))
