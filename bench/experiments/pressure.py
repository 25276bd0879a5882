"""Real queries while one leaf at a time is in trouble: nothing is simulated, nothing injected.

    calm    nothing is done: what to compare with
    stop    a leaf is stopped (SIGSTOP) and continued a moment later
    hog     a leaf shares one processor with processes that do nothing but take it
    cold    the pages of a leaf's index files are dropped from memory, again and again

Which leaf, when and for how long is drawn from the seed. Two roots, hedging off and ``adaptive``,
ask the same leaves the same queries at the same rate, by turns, so both meet the same trouble;
each begins at another one of the queries, so that neither finds them warm from the other. Only
processes that the benchmark has started are touched, and everything is put back at the end, and
on Ctrl-C.

Load generator, roots, leaves and what troubles them share the machine's processors: a hog takes
time from everybody. Pages that a leaf has mapped stay in memory, whatever is asked; how many were
dropped is counted, so that a cold leaf that is not cold is seen.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from rich.console import Console

from bench import metrics, plots, report
from bench.client import Client, connected
from bench.confidence import Curve, Estimate
from bench.fleet import Fleet
from bench.recorder import Fate, Recorder, Summary
from bench.workload import Schedule, constant, open_loop

ARMS: Final = ("off", "adaptive")
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)

PAUSE_S: Final = (0.2, 0.6)
"""Between two spells: longer than any of them lasts for most kinds, so that most of the time one
leaf in four is in trouble, and sometimes none."""

STOPPED_S: Final = (0.05, 0.5)
"""Less than the silence after which a root takes a leaf for lost: here it is slow, not gone."""

HOGGED_S: Final = (0.3, 1.0)
COLD_S: Final = (0.3, 1.0)
COLD_EVERY_S: Final = 0.02

HOGS: Final = 3
"""Processes beside a leaf on its processor: it gets a quarter."""

HOG: Final = "import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"

WARM_UP: Final = 300
"""Queries of each root before the first that counts."""


@dataclass(frozen=True, slots=True)
class Plan:
    """So many seconds of each kind, at so many queries a second of each root."""

    seconds: float = 20.0
    rate_per_s: float = 40.0
    seed: int = 1


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One root during one kind of trouble. ``extra_load``: attempts beyond the first, a leg."""

    summary: Summary
    figures_ms: dict[str, Estimate]
    extra_load: float
    curve_ms: Curve


class Spell(msgspec.Struct, frozen=True):
    """One kind: how often a leaf was in trouble, for how many seconds in all, and the arms."""

    spells: int
    troubled_s: float
    dropped_pages: int
    arms: dict[str, Arm]


class Result(msgspec.Struct, frozen=True):
    """By kind of trouble."""

    kinds: dict[str, Spell]


class Trouble:
    """Troubles one leaf of a fleet at a time, and counts."""

    def __init__(self, fleet: Fleet, leaves: int, random: Random) -> None:
        self.spells = 0
        self.troubled_s = 0.0
        self.dropped_pages = 0
        self._fleet = fleet
        self._leaves = leaves
        self._random = random

    async def run(self, kind: str) -> None:
        """Trouble leaves until cancelled; whatever was done is undone then."""
        deed = KINDS[kind]
        while True:
            await asyncio.sleep(self._random.uniform(*PAUSE_S))
            if deed is not None:
                self.spells += 1
                await deed(self, self._random.randrange(self._leaves))

    async def stop(self, leaf: int) -> None:
        """Freeze it."""
        self._fleet.stop(leaf)
        try:
            await self._last(STOPPED_S)
        finally:
            self._fleet.resume(leaf)

    async def hog(self, leaf: int) -> None:
        """Share one processor with it."""
        cpu = self._random.choice(sorted(os.sched_getaffinity(0)))
        hogs: list[subprocess.Popen[bytes]] = []
        with pinned(self._fleet.pid(leaf), {cpu}):
            try:
                hogs.extend(self._fleet.beside(HOG.format(cpu=cpu)) for _ in range(HOGS))
                await self._last(HOGGED_S)
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()

    async def cold(self, leaf: int) -> None:
        """Drop its files from memory."""
        index = self._fleet.index_of(leaf)
        assert index is not None  # noqa: S101 (an experiment on a real index)
        files = [path for path in sorted(index.rglob("*")) if path.is_file()]
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._random.uniform(*COLD_S)
        begun_s = loop.time()
        while loop.time() < end_s:
            self.dropped_pages += await asyncio.to_thread(drop, files)
            await asyncio.sleep(COLD_EVERY_S)
        self.troubled_s += loop.time() - begun_s

    async def _last(self, bounds_s: tuple[float, float]) -> None:
        lasts_s = self._random.uniform(*bounds_s)
        self.troubled_s += lasts_s
        await asyncio.sleep(lasts_s)


Deed = Callable[[Trouble, int], Awaitable[None]]

KINDS: Final[dict[str, Deed | None]] = {
    "calm": None,
    "stop": Trouble.stop,
    "hog": Trouble.hog,
    "cold": Trouble.cold,
}


@contextmanager
def pinned(pid: int, cpus: set[int]) -> Iterator[None]:
    """A process, with all its threads, on these processors alone; afterwards as before."""
    before = os.sched_getaffinity(pid)
    try:
        _pin(pid, cpus)
        yield
    finally:
        _pin(pid, before)


def _pin(pid: int, cpus: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)


def drop(files: Sequence[Path]) -> int:
    """Ask the system to forget these files' pages; return how many it did forget."""
    before = _cached_pages()
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return max(0, before - _cached_pages())


def _cached_pages() -> int:
    """Pages of files in memory, of the whole machine: coarse, and enough to tell none from all."""
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(" ")
        if name == "nr_file_pages":
            return int(value)
    return 0


def possible() -> bool:
    """Whether this system has what the troubles need."""
    return sys.platform.startswith("linux")


async def run(fleet: Fleet, leaves: int, queries: Sequence[str], plan: Plan) -> Result:
    """Go through all kinds, on a fleet whose root does not hedge."""
    hedging = await asyncio.to_thread(fleet.start_root, "--hedge", "adaptive")
    async with connected(fleet.root_url) as off, connected(hedging) as adaptive:
        clients = dict(zip(ARMS, (off, adaptive), strict=True))
        for client in clients.values():
            for number in range(WARM_UP):
                await client.search(queries[number % len(queries)])
        kinds = {kind: await _kind(fleet, leaves, kind, clients, queries, plan) for kind in KINDS}
    return Result(kinds)


async def _kind(
    fleet: Fleet,
    leaves: int,
    kind: str,
    clients: Mapping[str, Client],
    queries: Sequence[str],
    plan: Plan,
) -> Spell:
    trouble = Trouble(fleet, leaves, Random(f"{plan.seed}:{kind}"))
    before = {name: await _attempts(client) for name, client in clients.items()}
    recorders = {name: Recorder() for name in clients}
    troubling = asyncio.create_task(trouble.run(kind))
    try:
        await asyncio.gather(
            *(
                open_loop(
                    _schedule(plan, place),
                    _sender(client, _turned(queries, place)),
                    recorders[name],
                )
                for place, (name, client) in enumerate(clients.items())
            )
        )
    finally:
        troubling.cancel()
        await asyncio.gather(troubling, return_exceptions=True)
    arms = {
        name: _arm(recorders[name], before[name], await _attempts(client))
        for name, client in clients.items()
    }
    return Spell(trouble.spells, trouble.troubled_s, trouble.dropped_pages, arms)


def _schedule(plan: Plan, place: int) -> Schedule:
    """The arms ask by turns."""
    late_s = place / (plan.rate_per_s * len(ARMS))
    even = constant(plan.rate_per_s, plan.seconds)
    return Schedule(tuple(at_s + late_s for at_s in even.send_at_s))


def _turned(queries: Sequence[str], place: int) -> Sequence[str]:
    """The same queries from another one on: who asks what has just been asked finds it warm."""
    by = place * len(queries) // len(ARMS)
    return [*queries[by:], *queries[:by]]


def _sender(client: Client, queries: Sequence[str]) -> Callable[[int], Awaitable[Fate]]:
    async def send(number: int) -> Fate:
        return (await client.search(queries[number % len(queries)])).fate

    return send


async def _attempts(client: Client) -> dict[str, float]:
    return metrics.counter(await client.get_text("/metrics"), "hedgerow_attempts_sent", "kind")


def _arm(recorder: Recorder, before: Mapping[str, float], after: Mapping[str, float]) -> Arm:
    sent = {kind: count - before.get(kind, 0.0) for kind, count in after.items()}
    first = sent.get("primary", 0.0)
    return Arm(
        summary=recorder.summary(),
        figures_ms={f"p{p:g}": recorder.estimate_ms(p) for p in PERCENTILES},
        extra_load=(sum(sent.values()) - first) / max(first, 1.0),
        curve_ms=recorder.curve_ms(),
    )


def conditions(plan: Plan, leaves: int) -> report.Conditions:
    """What is asked, injected and real."""
    return report.Conditions(
        load=f"{plan.rate_per_s:g} queries/s of each of two roots, evenly spaced, by turns",
        injected="nothing",
        real=f"everything: {leaves} leaf processes on an index, signals, processors, page cache",
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print a line an arm and kind."""
    figures = [f"p{p:g}" for p in PERCENTILES]
    rows: list[list[object]] = []
    for kind, spell in result.kinds.items():
        for name, arm in spell.arms.items():
            complete = arm.summary.fates.get("complete", 0) / max(arm.summary.requests, 1)
            values = [arm.figures_ms[figure].value for figure in figures]
            spent = f"{arm.extra_load:.1%}"
            rows.append([f"{kind}, {name}", *values, f"{complete:.1%}", spent, spell.spells])
    columns = ["", *figures, "complete", "extra load", "spells"]
    report.show_table("real queries, milliseconds", columns, rows, console)
    for kind, spell in result.kinds.items():
        off, adaptive = (spell.arms[name] for name in ARMS)
        lower = ", ".join(
            f"{f} {1 - adaptive.figures_ms[f].value / off.figures_ms[f].value:.0%}" for f in figures
        )
        console.print(f"{kind}: adaptive is lower by {lower}", highlight=False, soft_wrap=True)
    console.print(
        f"pages dropped while cold: {result.kinds['cold'].dropped_pages}", highlight=False
    )
    runs = {
        f"{kind}, {name}": arm.summary
        for kind, spell in result.kinds.items()
        for name, arm in spell.arms.items()
    }
    report.show_validity(runs, console)


def draw(result: Result, path: Path, caption: str) -> None:
    """The distributions, a panel a kind."""
    with plots.page(path, "Real queries, one leaf in trouble", caption, (2, 2)) as axes:
        for panel, (kind, spell) in zip(axes, result.kinds.items(), strict=True):
            plots.tail(panel, {name: arm.curve_ms for name, arm in spell.arms.items()}, kind)
