"""Queries that hold leaves up, and leaves that hold queries up: which of the two it was."""

from __future__ import annotations

import asyncio

import pytest

from bench.simulation.scripted import Deed, Leg, fails, takes
from bench.simulation.scripted_fleet import at, prefer
from bench.virtual_time import run
from root.canary import QUARANTINE_S, QUARANTINE_S_MAX
from root.config import Settings
from root.errors import BadRequest, NotCovered, Overloaded, Quarantined
from root.shapes import DEPTH_DANGEROUS
from tests.sim.peril import LEAVES, LOST_AFTER_S, SHARDS, WORK_S, Peril, in_peril
from tests.sim.serving import PLENTY

# --- what holds leaves up ----------------------------------------------------------------


def test_a_query_that_stalls_holds_up_one_worker_and_is_refused() -> None:
    """Within its time. As long as a leaf is busy with it, none like it is tried."""

    async def body(peril: Peril) -> None:
        error = await peril.refused("deadly")
        assert peril.now() < 2.0
        assert (error.field, error.retry_after_s) == ("q", QUARANTINE_S)
        assert "comes to no end" in error.detail
        await asyncio.sleep(10 * QUARANTINE_S)
        await peril.refused("deadly")
        assert len(peril.struck) == 1
        await asyncio.sleep(QUARANTINE_S_MAX)
        await peril.refused("deadly")
        assert len(peril.struck) == 2

    in_peril(body, stalls=True)


def test_what_ends_at_last_was_only_slow() -> None:
    """A canary that its leaf finishes after its time has proved its shape, and no moment before."""

    async def body(peril: Peril) -> None:
        peril.work = takes(3.0)
        await peril.refused("slow")
        await peril.refused("slow")
        await asyncio.sleep(1.0)
        peril.work = takes(WORK_S)
        await peril.refused("slow")
        await asyncio.sleep(1.0)
        assert (await peril.complete("slow"))["attempts"]["sent"] > SHARDS
        assert peril.shapes.canaries == 1

    in_peril(body)


def test_a_stalled_leaf_that_is_restarted_is_one_more_sign() -> None:
    """It was lost with the canary still at work there: the quarantine begins again, doubled."""

    async def body(peril: Peril) -> None:
        await peril.refused("deadly")
        peril.lose(peril.struck[0], 0.1)
        await asyncio.sleep(1.0)
        assert (await peril.refused("deadly")).retry_after_s == 2 * QUARANTINE_S
        await asyncio.sleep(2 * QUARANTINE_S + 0.01)
        peril.harmful = False
        await peril.complete("deadly")

    in_peril(body, stalls=True)


def test_waiting_in_a_queue_is_no_stall() -> None:
    """A leaf that is only busy says so when the canary is cancelled: time ran out, no more."""

    async def body(peril: Peril) -> None:
        await peril.complete("harmless")
        peril.work = takes(30.0)
        busy = [asyncio.create_task(peril.search(f"harmless{i}")) for i in range(4)]
        await asyncio.sleep(0.1)
        with pytest.raises(NotCovered):
            await peril.search("of another shape")
        await asyncio.gather(*busy, return_exceptions=True)
        assert peril.shapes.refused == 0

    in_peril(body, workers=1)


def test_a_caller_in_a_hurry_condemns_nothing() -> None:
    """Five milliseconds are too short for a verdict: it is late, and the shape is proven when the
    leaf has done its work.
    """

    async def body(peril: Peril) -> None:
        peril.work = takes(0.008)
        with pytest.raises(NotCovered) as caught:
            await peril.search("harmless", timeout_ms=5.0)
        assert peril.now() <= 0.005
        coverage = (caught.value.partial or {})["coverage"]
        assert {missing["reason"] for missing in coverage["missing"]} == {"timeout"}
        assert len(coverage["missing"]) == SHARDS
        await asyncio.sleep(0.1)
        await peril.complete("harmless")
        assert (peril.shapes.canaries, peril.shapes.refused) == (1, 0)

    in_peril(body)


def test_nobody_waits_for_a_verdict_beyond_his_own_time() -> None:
    """A query that waits for the canary of another is late when its own time is over."""

    async def body(peril: Peril) -> None:
        first = asyncio.create_task(peril.refused("deadly"))
        await asyncio.sleep(0.1)
        started_s = peril.now()
        with pytest.raises(NotCovered):
            await peril.search("deadly", timeout_ms=500.0)
        assert peril.now() - started_s == pytest.approx(0.5)
        await first
        assert len(peril.struck) == 1

    in_peril(body, stalls=True)


def test_a_caller_who_leaves_costs_the_next_one_nothing() -> None:
    """His canary is an ordinary leg that is not done yet: whoever asks the like waits for it, and
    is answered when it is done.
    """

    async def body(peril: Peril) -> None:
        peril.work = takes(0.2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peril.search("harmless"), 0.05)
        await asyncio.sleep(0.05)
        await peril.complete("harmless")
        assert peril.now() == pytest.approx(0.6, abs=0.02)
        assert (peril.shapes.canaries, peril.shapes.refused) == (1, 0)

    in_peril(body)


def test_callers_who_leave_at_once_strike_one_leaf() -> None:
    """Nobody gets at more leaves by not waiting for what comes of the first."""

    async def body(peril: Peril) -> None:
        for _ in range(100):
            with pytest.raises((TimeoutError, Quarantined)):
                await asyncio.wait_for(peril.search("deadly"), 0.002)
        assert len(peril.struck) == 1

    in_peril(body, stalls=True)


def test_a_caller_who_leaves_frees_nobody_of_suspicion() -> None:
    """His canary may still be at work: none like it is sent until it has ended, and then one."""

    async def body(peril: Peril) -> None:
        caller = asyncio.create_task(peril.search("deadly"))
        waiting = asyncio.create_task(peril.search("deadly"))
        await asyncio.sleep(0.1)
        caller.cancel()
        await asyncio.wait([caller])
        await asyncio.sleep(0.001)
        await peril.refused("deadly")
        with pytest.raises(Quarantined):
            await waiting
        assert len(peril.struck) <= 2
        for number in set(peril.struck):
            peril.lose(number, 0.0)
        await asyncio.sleep(0.1)
        struck = len(peril.struck)
        await peril.refused("deadly")
        assert len(peril.struck) == struck

    in_peril(body, stalls=True)


# --- what is the leaf's own trouble ------------------------------------------------------


def test_a_silent_leaf_is_no_evidence_against_a_harmless_query() -> None:
    """A leaf stands still while it has the canary; another shard is tried, and it is answered."""

    async def body(peril: Peril) -> None:
        peril.freeze(1)
        prefer(peril.fleet, 1)
        await peril.complete("harmless")
        assert peril.shapes.refused == 0

    async def main(seed: int) -> int:
        peril = Peril(Settings(budget=PLENTY, seed=seed))
        await body(peril)
        return peril.shapes.canaries

    assert {run(main(seed)) for seed in range(10)} == {1, 2}


def test_a_silent_leaf_is_evidence_enough_against_a_dangerous_query() -> None:
    """It is refused, for as long as any that does harm."""

    async def body(peril: Peril) -> None:
        for number in range(LEAVES):
            peril.freeze(number)
        error = await peril.refused("harmless", offset=DEPTH_DANGEROUS)
        assert peril.now() == pytest.approx(LOST_AFTER_S)
        assert "fell silent" in error.detail

    in_peril(body)


def test_two_silent_leaves_are_no_chance() -> None:
    """A query under which one leaf after the other falls silent is refused like one that kills."""

    async def body(peril: Peril) -> None:
        def script(leg: Leg) -> Deed:
            number = [leaf.leaf for leaf in peril.fleet.leaves].index(leg.attempt.leaf)
            peril.fleet[number].stop()
            at(0.7, lambda: peril.fleet.disconnect(number))
            return Deed(float("inf"))

        peril.work = script
        assert "fell silent" in (await peril.refused("deep freeze")).detail
        assert sum(not leaf.leaf.connected for leaf in peril.fleet.leaves) == 2

    in_peril(body)


def test_a_refusal_says_nothing_about_a_query() -> None:
    """Busy leaves are passed by; where all are busy, that is the answer, at a small price."""

    async def body(peril: Peril) -> None:
        for number in (0, 1):
            peril.fleet[number].script = fails("busy")
        for i in range(20):
            await peril.search("harmless " * (i + 1), min_coverage=0.3)
        for leaf in peril.fleet.leaves:
            leaf.script = fails("busy")
        received = peril.fleet.received
        with pytest.raises(Overloaded):
            await peril.search("+of -another shape")
        assert peril.fleet.received - received <= 6
        assert peril.shapes.refused == 0

    in_peril(body)


def test_a_query_that_cannot_be_read_is_not_tried_twice() -> None:
    """No shard will read it."""

    async def body(peril: Peril) -> None:
        peril.work = fails("bad_query", detail="no such syntax")
        with pytest.raises(BadRequest, match="no such syntax"):
            await peril.search("harmless")
        assert peril.fleet.received == 1

    in_peril(body)
