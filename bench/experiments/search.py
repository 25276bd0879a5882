"""Real queries through the whole system, beside one index searched in this process.

Arms, in turn within one run, so that what else the machine does hits them alike:

    closed      so many clients, each asking as soon as it is answered: what the system carries
    open        requests on a schedule fixed beforehand: how long a user waits
    oracle      one index, one thread, no network: what the searching alone costs
    all_cores   the same index, a thread a core: the most that one process makes of the machine

Load generator, root and leaves share the machine's cores; a root with cores of its own
carries more. With a selection every arm filters and counts as well.

What the second phase of a query costs beside the first is asked apart: the time that leaves work
on each, by traces of pages as people ask for them, with all fields and highlights.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from rich.console import Console

from bench import report, workload
from bench.client import NOTHING_SELECTED, Client, connected
from bench.fleet import Fleet
from bench.recorder import Fate, Recorder, Summary
from bench.reference import Reference

TRACED: Final = 100
"""Queries of each round whose phases are looked at."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of each arm: ``rounds`` times ``requests`` closed and in the oracle, and
    ``open_s`` seconds at ``rate_per_s`` open.
    """

    rounds: int = 5
    requests: int = 1000
    clients: int = 8
    rate_per_s: float = 100
    open_s: float = 5

    def __post_init__(self) -> None:
        if min(self.rounds, self.requests, self.clients) < 1:
            raise ValueError("rounds, requests and clients must be positive")


@dataclass(frozen=True, slots=True)
class Selection:
    """The same filter and facets twice: as a request has them, and as the library's own
    aggregations over a span of an integer field.
    """

    request: dict[str, Any]
    span: tuple[str, int, int]
    aggregations: dict[str, Any]


COUNTED: Final = Selection(
    {
        "filter": [{"field": "year", "gte": 1990, "lte": 2010}],
        "facets": {
            "kind": {"type": "terms", "field": "kind"},
            "decade": {"type": "histogram", "field": "year", "interval": 10},
            "price": {"type": "stats", "field": "price"},
        },
    },
    ("year", 1990, 2010),
    {
        "kind": {"terms": {"field": "kind", "size": 10}},
        "decade": {"histogram": {"field": "year", "interval": 10.0, "min_doc_count": 1}},
        "price": {"stats": {"field": "price"}},
    },
)
"""Of ``bench.corpus.short_documents``: a third pass, and are counted in three ways."""


class Arm(msgspec.Struct, frozen=True):
    """One arm: requests a second while it ran, and its latencies."""

    queries_per_s: float
    summary: Summary


class Bar(msgspec.Struct, frozen=True):
    """A figure beside what it is to be: at least, or at most."""

    name: str
    measured: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        """Whether it is."""
        return (self.least is None or self.measured >= self.least) and (
            self.most is None or self.measured <= self.most
        )


class Result(msgspec.Struct, frozen=True):
    """The arms, and the figures that have a bar. ``differing``: totals unlike the oracle's."""

    queries: int
    selected: bool
    arms: dict[str, Arm]
    bars: list[Bar]
    differing: int


class _Running:
    """An arm while it runs."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.took_s = 0.0

    def arm(self) -> Arm:
        summary = self.recorder.summary()
        return Arm(summary.requests / max(self.took_s, 1e-9), summary)


class _Comparison:
    """The system and the reference, asked the same."""

    def __init__(self, client: Client, reference: Reference, selection: Selection | None) -> None:
        self.client = client
        self._reference = reference
        self._selection = selection
        self.request = NOTHING_SELECTED if selection is None else selection.request

    def one_index(self, q: str) -> int:
        """Ask the reference; return how many match."""
        if self._selection is None:
            return self._reference.search(q).total
        answer, _ = self._reference.counted(q, self._selection.span, self._selection.aggregations)
        return answer.total

    async def differing(self, queries: Sequence[str]) -> int:
        """Return how many of some queries find another number of documents."""
        found = [(await self.client.search(q, selection=self.request)).total for q in queries]
        return sum(a != self.one_index(q) for a, q in zip(found, queries, strict=True))


async def run(
    fleet: Fleet,
    queries: Sequence[str],
    reference: Reference,
    plan: Plan,
    seed: int,
    selection: Selection | None = None,
) -> Result:
    """Run the arms in turn, ``plan.rounds`` times."""
    arms = {name: _Running() for name in ("closed", "open", "oracle", "all_cores")}
    rng = random.Random(f"{seed}:arrivals")
    work_ms = {"search": 0.0, "fetch": 0.0}
    async with connected(fleet.root_url) as client:
        both = _Comparison(client, reference, selection)
        # Touches every shard's files, and lets the root learn its attempt times.
        differing = await both.differing(queries[:100])
        for round_number in range(plan.rounds):
            asked = _turned(queries, round_number * plan.requests)
            await _closed(both, asked, plan, arms["closed"])
            await _open(both, asked, plan, rng, arms["open"])
            # On threads, so that this loop hears of connections that the root closes meanwhile.
            for name, threads in (("oracle", 1), ("all_cores", os.cpu_count() or 1)):
                await asyncio.to_thread(_oracle, both, asked, plan, arms[name], threads)
            await _look_at_phases(both, asked[: min(TRACED, plan.requests)], work_ms)
    done = {name: running.arm() for name, running in arms.items()}
    return Result(len(queries), selection is not None, done, _bars(done, work_ms), differing)


def _turned(queries: Sequence[str], by: int) -> Sequence[str]:
    by %= len(queries)
    return [*queries[by:], *queries[:by]]


async def _closed(both: _Comparison, queries: Sequence[str], plan: Plan, arm: _Running) -> None:
    per_s = await workload.closed_loop(
        plan.clients, plan.requests, _send(both, queries), arm.recorder
    )
    arm.took_s += plan.requests / per_s


async def _open(
    both: _Comparison, queries: Sequence[str], plan: Plan, rng: random.Random, arm: _Running
) -> None:
    start_s = time.perf_counter()
    schedule = workload.poisson(plan.rate_per_s, plan.open_s, rng)
    await workload.open_loop(schedule, _send(both, queries), arm.recorder)
    arm.took_s += time.perf_counter() - start_s


def _send(both: _Comparison, queries: Sequence[str]) -> workload.Send:
    async def send(number: int) -> Fate:
        q = queries[number % len(queries)]
        return (await both.client.search(q, selection=both.request)).fate

    return send


def _oracle(
    both: _Comparison, queries: Sequence[str], plan: Plan, arm: _Running, threads: int
) -> None:
    def timed(number: int) -> float:
        start_s = time.perf_counter()
        both.one_index(queries[number % len(queries)])
        return time.perf_counter() - start_s

    start_s = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        times_s = list(pool.map(timed, range(plan.requests)))
    arm.took_s += time.perf_counter() - start_s
    for took_s in times_s:
        arm.recorder.record("complete", took_s)


async def _look_at_phases(
    both: _Comparison, queries: Sequence[str], work_ms: dict[str, float]
) -> None:
    for q in queries:
        for phase in await both.client.phases(q, both.request):
            if phase["phase"] in work_ms:  # a query that finds nothing asks for words instead
                spent_ms = sum(one["service_ms"] or 0.0 for one in phase["attempts"])
                work_ms[phase["phase"]] += spent_ms


def _bars(arms: dict[str, Arm], work_ms: dict[str, float]) -> list[Bar]:
    closed, waited = arms["closed"], arms["open"].summary
    fetching = work_ms["fetch"] / max(work_ms["search"], 1e-9)
    return [
        Bar(
            "closed over all_cores, queries/s",
            closed.queries_per_s / arms["all_cores"].queries_per_s,
            least=0.5,
        ),
        Bar("second phase over first, work of leaves", fetching, most=0.25),
        Bar("open, p99 over p50", waited.p99_ms / max(waited.p50_ms, 1e-9), most=3.0),
    ]


def show(result: Result, console: Console) -> None:
    """Print an arm a line, then a line a figure that has a bar."""
    rows = [
        [name, arm.queries_per_s, s.p50_ms, s.p95_ms, s.p99_ms, s.max_ms, _fates(s), s.lag_ms_p99]
        for name, arm in result.arms.items()
        for s in [arm.summary]
    ]
    columns = ["arm", "queries/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "fates", "lag p99 ms"]
    what = "filtered and counted in three ways" if result.selected else "plain"
    report.show_table(f"{result.queries} mixed queries, {what}", columns, rows, console)
    report.show_validity({"open": result.arms["open"].summary}, console)
    bars = [
        [bar.name, bar.measured, _wanted(bar), "met" if bar.met else "missed"]
        for bar in result.bars
    ]
    report.show_table("beside what it is to be", ["", "measured", "wanted", ""], bars, console)
    if result.differing:
        console.print(f"{result.differing} totals were not those of one index", highlight=False)


def _wanted(bar: Bar) -> str:
    return f"at least {bar.least:g}" if bar.least is not None else f"at most {bar.most:g}"


def _fates(summary: Summary) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in summary.fates.items())
