"""What a leg costs: Hedgerow's whole path, a POST a leg, and the floor, in one run.

Every leg is answered with the same ten hits, without searching. Three arms take turns on the
same machine, one query at a time:

- ``hedgerow``: a parsed query through race, budget, statistics, channel, admission, worker
  thread and merge, with hedging on, against real leaf processes;
- ``post_per_leg``: one HTTP POST for each leg, to the same leaves;
- ``echo_floor``: the same frames over bare sockets (``bench.echo_floor``).

Wall time is what a query waits, so it contains the leaves' share; CPU time is this process,
the root. Each round runs every arm; figures are medians of rounds, and ratios are taken
within rounds, so that a machine that slows down does so for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import aiohttp
import msgspec
import orjson
from rich.console import Console

from bench import report
from bench.echo_floor import Floor, floor
from bench.fleet import Fleet as Processes
from bench.fleet import FleetError, Shape, running
from bench.progress import progress
from leaf.protocol import ranked
from root.config import Settings
from root.discovery import Fleet
from root.paging import DEPTH_MARGIN
from root.requests import SearchRequest
from root.search import Searches

QUERY: Final = "parse json"
GROWTH: Final = (10, 100, 1000)
READY_S: Final = 20.0
ROUND_S_MAX: Final = 60.0
"""A round takes a second; one that hangs must not hang the benchmark."""
HEADERS: Final = {"content-type": "application/json"}
ARMS: Final = ("hedgerow", "post_per_leg", "echo_floor")

Query = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure: ``legs`` an arm and round; POSTs, being dear, get a tenth."""

    rounds: int = 15
    legs: int = 20_000
    warm_up_legs: int = 5_000


class Cost(msgspec.Struct, frozen=True):
    """Microseconds a leg: medians of rounds."""

    us_per_leg: float
    root_cpu_us_per_leg: float


class Result(msgspec.Struct, frozen=True):
    """Costs with one number of shards. ``ratios`` are medians within rounds."""

    shards: int
    leaves: int
    queries: dict[str, int]
    arms: dict[str, Cost]
    ratios: dict[str, float]


class Results(msgspec.Struct, frozen=True):
    """The shards asked for, and the same with fewer and more of them."""

    shards: int
    leaves: int
    arms: dict[str, Cost]
    ratios: dict[str, float]
    growth: dict[str, Result]


async def run(shards: int, growth: Sequence[int], leaves: int, plan: Plan, seed: int) -> Results:
    """Measure ``shards``, and every number of ``growth``; ``seed`` decides between replicas."""
    sizes = sorted({shards, *growth})
    with progress("leg-cost", len(sizes) * plan.rounds) as advance:
        results = {size: await _measure(size, leaves, plan, seed, advance) for size in sizes}
    one = results[shards]
    return Results(
        shards, leaves, one.arms, one.ratios, {str(size): r for size, r in results.items()}
    )


async def _measure(
    shards: int, leaves: int, plan: Plan, seed: int, advance: Callable[[float], None]
) -> Result:
    shape = Shape(canned=shards, root=False, leaves=leaves, replicas=min(2, leaves))
    with running(shape) as processes:
        async with _arms(processes, shards, leaves, seed) as arms:
            counts = {name: _queries(name, shards, plan.legs) for name in arms}
            for name, query in arms.items():
                await _timed(query, _queries(name, shards, plan.warm_up_legs))
            rounds: list[dict[str, Cost]] = []
            for i in range(plan.rounds):
                order = [ARMS[(i + j) % len(ARMS)] for j in range(len(ARMS))]
                costs = {n: await _timed(arms[n], counts[n]) for n in order}
                rounds.append({n: _per_leg(costs[n], counts[n] * shards) for n in ARMS})
                advance(1)
    return Result(shards, leaves, counts, _medians(rounds), _ratios(rounds))


def _queries(arm: str, shards: int, legs: int) -> int:
    return max(2, legs // shards // (10 if arm == "post_per_leg" else 1))


async def _timed(query: Query, count: int) -> tuple[float, float]:
    """Run ``query`` so many times; return wall and CPU seconds. Garbage is collected inside."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    async with asyncio.timeout(ROUND_S_MAX):
        for _ in range(count):
            await query()
    return time.perf_counter() - wall, time.process_time() - cpu


def _per_leg(cost: tuple[float, float], legs: int) -> Cost:
    wall_s, cpu_s = cost
    return Cost(wall_s / legs * 1e6, cpu_s / legs * 1e6)


def _medians(rounds: list[dict[str, Cost]]) -> dict[str, Cost]:
    return {
        name: Cost(
            median(r[name].us_per_leg for r in rounds),
            median(r[name].root_cpu_us_per_leg for r in rounds),
        )
        for name in ARMS
    }


def _ratios(rounds: list[dict[str, Cost]]) -> dict[str, float]:
    return {
        "post_per_leg/hedgerow": median(
            r["post_per_leg"].us_per_leg / r["hedgerow"].us_per_leg for r in rounds
        ),
        "hedgerow/echo_floor": median(
            r["hedgerow"].us_per_leg / r["echo_floor"].us_per_leg for r in rounds
        ),
    }


# --- the arms ----------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _arms(
    processes: Processes, shards: int, leaves: int, seed: int
) -> AsyncIterator[dict[str, Query]]:
    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        )
        searches = await stack.enter_async_context(_root(processes.leaf_urls, seed))
        homes = _homes(searches.fleet)
        hits = await _one_answer(session, homes[0])
        bare = await stack.enter_async_context(floor(leaves, hits))
        yield {
            "hedgerow": lambda: _hedgerow(searches, shards),
            "post_per_leg": lambda: _post_per_leg(session, homes),
            "echo_floor": lambda: _echo(bare, shards),
        }


@contextlib.asynccontextmanager
async def _root(urls: Sequence[str], seed: int) -> AsyncIterator[Searches]:
    """A root within this process, connected to all leaves."""
    loop = asyncio.get_running_loop()
    fleet = Fleet(urls, "bench")
    running_fleet = asyncio.create_task(fleet.run())
    try:
        async with asyncio.timeout(READY_S):
            while not all(channel.leaf.connected for channel in fleet.channels.values()):
                await asyncio.sleep(0.01)
        yield Searches(fleet, Settings(hedge="quantile", seed=seed), loop.time())
    finally:
        running_fleet.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running_fleet


def _homes(fleet: Fleet) -> list[str]:
    """Where to POST for each shard: its replicas take turns, as they do behind the root."""
    view = fleet.view()
    assert view is not None  # noqa: S101 (all leaves are connected)
    return [
        f"{leaves[shard % len(leaves)].name}/shards/{shard}/search"
        for shard, leaves in view.shard_replicas()
    ]


async def _one_answer(session: aiohttp.ClientSession, url: str) -> Sequence[Any]:
    """What follows the leg's number in a leaf's answer, for the floor to send the same."""
    body = await _post(session, url)
    scores = [hit["score"] for hit in body["hits"]]
    ordinals = [hit["ordinal"] for hit in body["hits"]]
    return [body["queue_us"], body["service_us"], body["total"], *ranked(scores, ordinals)]


async def _hedgerow(searches: Searches, shards: int) -> None:
    request = SearchRequest(q=QUERY)
    found = await searches.candidates(request, asyncio.get_running_loop().time())
    if found.total != shards * 10:
        raise FleetError(f"{shards} shards of ten answered with {found.total}")


async def _post_per_leg(session: aiohttp.ClientSession, urls: Sequence[str]) -> None:
    await asyncio.gather(*(_post(session, url) for url in urls))


async def _post(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.post(url, data=_POST_BODY, headers=HEADERS) as response:
        if response.status != 200:
            raise FleetError(f"{url} answered {response.status}")
        return orjson.loads(await response.read())


async def _echo(bare: Floor, shards: int) -> None:
    await bare.query(_BODY, list(range(shards)))


_WORDS: Final = [{"type": "word", "text": text} for text in QUERY.split()]
_BODY: Final = {"query": {"type": "bool", "should": _WORDS}, "k": 10 + DEPTH_MARGIN}
_POST_BODY: Final = orjson.dumps({"query": {"type": "bool", "should": _WORDS}, "k": 10})


def show(results: Results, console: Console) -> None:
    """Print one table of costs and one of ratios."""
    rows = [
        [f"{name}, {size} shards", cost.us_per_leg, cost.root_cpu_us_per_leg, r.queries[name]]
        for size, r in results.growth.items()
        for name, cost in r.arms.items()
    ]
    title = f"cost of a leg on {results.leaves} leaves, µs (medians of rounds)"
    columns = ["", "wall", "CPU of the root", "queries a round"]
    report.show_table(title, columns, rows, console)
    ratios = [[f"{size} shards", *r.ratios.values()] for size, r in results.growth.items()]
    report.show_table("ratios of wall time", ["", *results.ratios], ratios, console)
