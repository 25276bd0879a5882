"""Clients that leave at random moments, by the thousand: nothing of them stays."""

from __future__ import annotations

import asyncio
import gc
import sys
from random import Random

from bench.simulation.scripted import takes_about
from root.config import Settings
from tests.sim.serving import PLENTY, Exchange, Served, served

LEAVES_WITHIN_S = 0.012
"""Longer than most searches take: some are answered, some left in either phase."""


async def leave(serving: Served, random: Random, clients: int) -> int:
    """Ask and leave, a few clients at a time; return how many were answered all the same."""
    answered = 0
    loop = asyncio.get_running_loop()

    async def one(number: int) -> None:
        nonlocal answered
        exchange = Exchange([b""])
        going = loop.call_later(random.uniform(0.0, LEAVES_WITHIN_S), exchange.leaves.set)
        await serving.client.run("GET", f"/search?q=w{number % 50}", exchange)
        going.cancel()
        answered += bool(exchange.sent) and exchange.answer().status == 200

    for start in range(0, clients, 20):
        await asyncio.gather(*(one(start + i) for i in range(20)))
    return answered


async def remains(serving: Served) -> tuple[int, int, float, float]:
    """Tasks, blocks of memory, requests and attempts in flight, once all has ended."""
    await asyncio.sleep(1.0)
    gc.collect()
    in_flight = await serving.metric("hedgerow_root_requests_in_flight")
    owed = await serving.metric("hedgerow_attempts_in_flight")
    return len(asyncio.all_tasks()), sys.getallocatedblocks(), in_flight, owed


def test_ten_thousand_clients_that_leave_cost_nothing() -> None:
    """Tasks, memory and what is in flight are after ten thousand what they were before."""
    random = Random("leaving")

    async def body(serving: Served) -> None:
        await leave(serving, random, 1_000)
        for leaf in serving.fleet.leaves:
            leaf.received.clear()
        before = await remains(serving)
        answered = 0
        for _ in range(10):
            answered += await leave(serving, random, 1_000)
            for leaf in serving.fleet.leaves:
                leaf.received.clear()
        after = await remains(serving)
        assert 500 < answered < 9_500
        assert (after[0], *after[2:]) == (before[0], 0.0, 0.0)
        assert after[1] < before[1] * 1.02 + 2_000

    served(body, Settings(budget=PLENTY), takes_about(0.003, 0.5, Random("legs")))


def test_after_a_minute_of_cancels_everybody_is_answered() -> None:
    """For a minute three in four leave; then a hundred ask, all at once, and are answered."""
    random = Random("cancelling")

    async def body(serving: Served) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + 60.0
        while loop.time() < end_s:
            await leave(serving, random, 20)
            await asyncio.sleep(random.uniform(0.0, 2.0))
        answers = await asyncio.gather(
            *(serving.client.get(f"/search?q=w{number}") for number in range(100))
        )
        assert [answer.status for answer in answers] == [200] * 100
        assert all(answer.json["coverage"]["complete"] for answer in answers)

    served(body, Settings(budget=PLENTY), takes_about(0.003, 0.5, Random("legs")))
