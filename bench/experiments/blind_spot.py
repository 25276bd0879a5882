"""What a leaf says of itself while its event loop stands still, what its users see, and what
tells them.

One leaf, so that nothing can be hedged. Searches come on a schedule fixed beforehand. From a
scrape of /metrics on, documents are looked up, one after the other, each of which blocks the
leaf's event loop for 300 ms (profile ``blocked-loop``). A clock that starts when the leaf begins
to work does not see that: its times stay what they were. What has to move, from one scrape to
the next, is whatever looks from outside of the work: how late the loop comes to its own timers,
how many requests are in flight at the root, and what the root waits for over what is reported.
A search waits for two turns of the loop, one for each of its phases; what was published, for one.
The leaf's queue is reported, too: what comes in a burst when the loop turns waits for workers, and
the more searches there are, the more of the wait does the leaf see.

Besides, one load on a fleet without trouble, read in two ways: see ``bench.omission``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import quote

import aiohttp
import msgspec
from rich.console import Console

from bench import omission, plots, report, scraping
from bench.client import Client, connected
from bench.comparison import Comparison, show_comparison
from bench.confidence import Estimate
from bench.fleet import Fleet, FleetError
from bench.omission import Omission
from bench.published import BLIND_SPOT, COORDINATED_OMISSION
from bench.recorder import Fate, Phases, Recorder, Summary
from bench.scraping import Reading, Scrape
from bench.workload import Clock, open_loop, poisson

PROFILE: Final = "blocked-loop"
LEAF_OPTIONS: Final = ("--interference", PROFILE)

BLOCK_MS: Final = 300.0
"""Of the profile: the client's 95th percentile is to exceed it."""

SCRAPE_S: Final = 1.0

BEYOND: Final = 2.0
"""A metric has left its idle range above so many times its highest value in it: what a dozen
scrapes have seen is not all that an idle process does."""

OWN_STAYS: Final = 2.0
"""The leaf's own maximum has not moved while it is at most so many times what it was: as exactly
as buckets of powers of two tell."""

METRICS: Final = {
    "loop_lag_ms": "loop lag, mean ms",
    "in_flight": "requests in flight",
    "seen_to_reported": "leg time, seen to reported",
    "blocked_share": "share of the time blocked",
}
WANTED: Final = ("loop_lag_ms", "in_flight", "seen_to_reported")
"""What has to leave its idle range within one scrape."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Times in seconds, each of the four parts ``seconds`` long; searches a second."""

    seconds: float = 13.0
    warm_up_s: float = 2.0
    rate_per_s: float = 25.0
    seed: int = 1

    @property
    def scrapes(self) -> int:
        """Scrapes of each part."""
        return max(2, int(self.seconds / SCRAPE_S))


class Watched(msgspec.Struct, frozen=True):
    """One metric: its range while idle, its value one scrape after trouble began, its highest."""

    idle_low: float
    idle_high: float
    one_scrape_later: float
    highest: float

    @property
    def left(self) -> bool:
        """Whether it left its idle range within one scrape."""
        return self.one_scrape_later > BEYOND * self.idle_high


class Moment(msgspec.Struct, frozen=True):
    """One scrape, and what users saw meanwhile."""

    reading: Reading
    client_p95_ms: float


class Result(msgspec.Struct, frozen=True):
    """``client`` and ``leaf`` by ``before`` and ``during``; ``omission`` by ``quiet``, ``stall``.

    ``leaf`` is what the leaf's own clock says; ``answered_per_s`` is during trouble.
    """

    scrape_s: float
    client: dict[str, Summary]
    leaf: dict[str, Reading]
    answered_per_s: float
    lookups: int
    metrics: dict[str, Watched]
    moments: list[Moment]
    omission: dict[str, Omission]

    @property
    def failures(self) -> list[str]:
        """What does not hold, in words; empty where everything does."""
        found = []
        p95_ms = self.client["during"].p95_ms
        if p95_ms <= BLOCK_MS:
            found.append(f"the client's p95 is {p95_ms:.0f} ms, not above {BLOCK_MS:g}")
        before_ms, during_ms = (self.leaf[when].own_max_ms for when in ("before", "during"))
        if during_ms > OWN_STAYS * before_ms:
            found.append(f"the leaf's own maximum moved from {before_ms:.3g} to {during_ms:.3g} ms")
        found += [
            f"{METRICS[name]} is still in its idle range one scrape later"
            for name in WANTED
            if not self.metrics[name].left
        ]
        return found


# --- what is done -------------------------------------------------------------------------


async def blocked(fleet: Fleet, queries: Sequence[str], plan: Plan) -> Result:
    """Trouble the one leaf of a fleet; ``omission`` is empty yet."""
    windows = Phases(
        {"warm-up": 0.0} | {str(n): plan.warm_up_s + n * SCRAPE_S for n in range(2 * plan.scrapes)}
    )
    lasts_s = plan.warm_up_s + 2 * plan.scrapes * SCRAPE_S
    schedule = poisson(plan.rate_per_s, lasts_s, Random(f"{plan.seed}:arrivals"))
    async with connected(fleet.root_url) as client:
        (found, *_) = (await client.search(queries[0], k=1)).ids or [None]
        if found is None:
            raise FleetError(f"the query {queries[0]!r} finds no document that could be looked up")

        async def send(number: int) -> Fate:
            return (await client.search(queries[number % len(queries)])).fate

        watching = asyncio.create_task(_watched(fleet, client, str(found), plan))
        await open_loop(schedule, send, windows)
        scrapes, lookups = await watching
    return _result(plan, windows, scrapes, lookups)


async def _watched(
    fleet: Fleet, client: Client, document: str, plan: Plan
) -> tuple[list[Scrape], int]:
    """Scrape throughout; make trouble from the middle on. Return how often, too."""
    clock, scrapes, lookups = Clock(), [], 0

    async def look_up() -> None:
        nonlocal lookups
        while True:
            answer = await client.get_json(f"/documents/{quote(document, safe='')}")
            if answer.get("id") != document:
                raise FleetError(f"the look-up of {document!r} failed: {answer}")
            lookups += 1

    start_s = clock.now() + plan.warm_up_s
    trouble: asyncio.Task[None] | None = None
    async with aiohttp.ClientSession() as session:
        for number in range(2 * plan.scrapes + 1):
            await clock.until(start_s + number * SCRAPE_S)
            scrapes.append(await _scrape(session, fleet, clock))
            if number == plan.scrapes:
                trouble = asyncio.create_task(look_up())
    assert trouble is not None  # noqa: S101 (there are scrapes in both parts)
    trouble.cancel()
    await asyncio.wait([trouble])
    if not trouble.cancelled():
        trouble.result()
    return scrapes, lookups


async def _scrape(session: aiohttp.ClientSession, fleet: Fleet, clock: Clock) -> Scrape:
    async def text(url: str) -> str:
        async with session.get(f"{url}/metrics") as response:
            return await response.text()

    root, leaf = await asyncio.gather(*map(text, (fleet.root_url, fleet.leaf_urls[0])))
    return Scrape(clock.now(), scraping.parse(root), scraping.parse(leaf))


def _result(plan: Plan, windows: Phases, scrapes: Sequence[Scrape], lookups: int) -> Result:
    readings = [scraping.between(*pair) for pair in pairwise(scrapes)]
    idle, troubled = readings[: plan.scrapes], readings[plan.scrapes :]
    of_windows = [windows.recorders[str(number)] for number in range(2 * plan.scrapes)]
    parts = {"before": of_windows[: plan.scrapes], "during": of_windows[plan.scrapes :]}
    client = {when: _together(recorders).summary() for when, recorders in parts.items()}
    middle, end = scrapes[plan.scrapes], scrapes[-1]
    return Result(
        scrape_s=SCRAPE_S,
        client=client,
        leaf={
            "before": scraping.between(scrapes[0], middle),
            "during": scraping.between(middle, end),
        },
        answered_per_s=client["during"].fates.get("complete", 0) / (end.at_s - middle.at_s),
        lookups=lookups,
        metrics={name: _metric(name, idle, troubled) for name in METRICS},
        moments=[
            Moment(reading, recorder.latency_ms(95.0))
            for reading, recorder in zip(readings, of_windows, strict=True)
        ],
        omission={},
    )


def _together(recorders: Sequence[Recorder]) -> Recorder:
    whole = Recorder()
    for recorder in recorders:
        whole.add(recorder)
    return whole


def _metric(name: str, idle: Sequence[Reading], troubled: Sequence[Reading]) -> Watched:
    before = [float(getattr(reading, name)) for reading in idle]
    after = [float(getattr(reading, name)) for reading in troubled]
    return Watched(min(before), max(before), after[0], max(after))


def conditions(plan: Plan) -> report.Conditions:
    """What is asked, injected and real."""
    return report.Conditions(
        load=f"Poisson, {plan.rate_per_s:g} searches/s; then {omission.PER_S:g}/s, evenly spaced, "
        f"of {omission.CLIENTS} clients that wait for their answers",
        injected=f"profile {PROFILE}, by look-ups one after the other; then the root stopped once "
        f"for {omission.STALL_S:g} s",
        real="everything else: a root, a leaf on an index, HTTP, /metrics; the stall, too",
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print figures beside the published ones, the metrics, and both readings of one load."""
    title = "a leaf whose event loop is blocked for 300 ms by each look-up"
    show_comparison(title, comparisons(result), console, source=BLIND_SPOT.source)
    rows: list[list[object]] = [
        [
            METRICS[name],
            f"{report.figure(one.idle_low)} to {report.figure(one.idle_high)}",
            one.one_scrape_later,
            one.highest,
            "yes" if one.left else "no",
        ]
        for name, one in result.metrics.items()
    ]
    columns = ["from /metrics", "idle range", "one scrape later", "highest", "left its range"]
    title = f"what tells: scraped every {result.scrape_s:g} s, {result.lookups} look-ups"
    report.show_table(title, columns, rows, console)
    title = "one load, read with and without correction for coordinated omission"
    show_comparison(
        title, omission.comparisons(result.omission), console, source=COORDINATED_OMISSION.source
    )
    for line in result.failures or ["the leaf does not see it, its users do, and the metrics tell"]:
        console.print(line, highlight=False, soft_wrap=True)
    runs = {f"client, {when}": one for when, one in result.client.items()}
    report.show_validity(runs, console)


def comparisons(result: Result) -> list[Comparison]:
    """What the client sees, the leaf says of itself, and two of the metrics."""
    figure, metrics, during = BLIND_SPOT.figure, result.metrics, result.client["during"]
    client = [
        Comparison.of(
            f"client, {name}",
            figure("client", name),
            Estimate(value, *during.intervals_ms[name]),
        )
        for name, value in (("p50", during.p50_ms), ("p95", during.p95_ms))
    ]
    rate = Comparison(
        "client", figure("client", "rate_per_s"), result.answered_per_s, unit="answers/s"
    )
    own = [
        Comparison(f"leaf's own max, {when}", figure(f"server_{when}", "max"), reading.own_max_ms)
        for when, reading in result.leaf.items()
    ]
    lag, under_way = metrics["loop_lag_ms"], metrics["in_flight"]
    return [
        *client,
        rate,
        *own,
        Comparison("loop lag, idle", figure("loop_lag", "idle"), lag.idle_high),
        Comparison("loop lag, blocked", figure("loop_lag", "blocked"), lag.one_scrape_later),
        Comparison(
            "in flight, before", figure("in_flight", "before"), under_way.idle_high, unit=""
        ),
        Comparison("in flight, during", figure("in_flight", "during"), under_way.highest, unit=""),
    ]


def draw(result: Result, path: Path, caption: str) -> None:
    """Both clocks over time, the metrics over their idle range, and the two readings."""
    with plots.page(path, "The blind spot", caption, (2, 2)) as (clocks, metrics, published, read):
        moments, scrape_s = result.moments, result.scrape_s
        at_s = [(number + 1 - len(moments) // 2) * scrape_s for number in range(len(moments))]
        plots.lines(
            clocks,
            {
                "client, p95": _points(at_s, [one.client_p95_ms for one in moments]),
                "leaf itself, max": _points(at_s, [one.reading.own_max_ms for one in moments]),
                "leaf itself, p95": _points(at_s, [one.reading.own_p95_ms for one in moments]),
            },
            "two clocks",
            "since the trouble began, s",
            "ms",
            log="y",
        )
        over_idle = {
            METRICS[name]: _points(at_s, [getattr(one.reading, name) / high for one in moments])
            for name in WANTED
            if (high := result.metrics[name].idle_high)
        }
        plots.lines(
            metrics,
            over_idle,
            "what tells",
            "since the trouble began, s",
            "value over the highest one while idle",
            log="y",
        )
        for panel in (clocks, metrics):
            panel.axvline(0.0, color=plots.BLACK, linewidth=1.0, linestyle="--")
        bars = [
            msgspec.structs.replace(one, name=one.name.replace(", ", ",\n"))
            for one in comparisons(result)
            if one.unit == "ms" and one.published
        ]
        plots.bars(published, bars, "beside what was published")
        curves = {
            f"{run}, {arm}": curve
            for run, one in result.omission.items()
            for arm, curve in one.curves_ms.items()
        }
        plots.tail(read, curves, "one load, read in two ways")


def _points(at_s: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Those that a logarithmic axis can show."""
    return [(at, value) for at, value in zip(at_s, values, strict=True) if value > 0.0]
