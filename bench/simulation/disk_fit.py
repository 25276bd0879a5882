"""Fits the profiles ``disk-queue`` and ``disk-queue-with-background-sort`` to table 2 of
J. Dean, L. A. Barroso, *The Tail at Scale*, CACM 56(2), 2013.

The model: three disks, each works on one read at a time, first come, first served. A read comes
to one of them at random, and its tied copy a millisecond later to another; the copy that can
begin first is the one that is done. Reads take a log-normal time; while something sorts, some of
them also a log-normal time that they wait for the sort. Load is not published, so it is a
parameter: how many reads a second come to a disk. With and without the sort it is the same, and
so are the reads.

Two fits, one after the other, each by a pattern search over the logarithms of its parameters,
from the best point of a coarse grid: first rate, median and sigma to the idle disks, then share,
median and sigma of the sort's waits to the others, with rate and reads as found. What is made
small is the root mean square of the logarithms of measured over published, over all eight figures
of an environment. The search draws the same numbers for every trial, so that a difference between
two is one of parameters.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from random import Random
from statistics import fmean
from typing import Final

import msgspec

from bench.confidence import estimate
from bench.published import TIED_BESIDE_A_SORT, TIED_IDLE, Published

DISKS: Final = 3
SECOND_COPY_MS: Final = 1.0
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)

READS: Final = 100_000
"""Of a trial: the 99.9th percentile is then off by two per cent."""

STEP: Final = 0.2
STEP_MIN: Final = 0.02
"""The search begins with steps of a fifth of a parameter, and ends with steps of a fiftieth: finer
than the published figures, which are whole milliseconds, can tell."""


BUSY_GRID: Final = (0.3, 0.4, 0.5)
SIGMA_GRID: Final = (0.2, 0.4, 0.6)
SHARE_GRID: Final = (0.08, 0.16, 0.32)
"""Where the searches may begin."""

GRID_MEDIAN_MS: Final = 15.0


class Disk(msgspec.Struct, frozen=True):
    """The parameters. ``sort_share`` 0 is a disk that nothing else uses."""

    reads_per_s: float
    read_median_ms: float
    read_sigma: float
    sort_share: float = 0.0
    sort_median_ms: float = 1.0
    sort_sigma: float = 1.0


SHIPPED: Final = {
    "idle": Disk(25.0, 14.8, 0.4),
    "with_background_sort": Disk(25.0, 14.8, 0.4, 0.16, 16.3, 0.6),
}
"""What the profiles have."""


class Fit(msgspec.Struct, frozen=True):
    """One environment: a disk, what reads from it take, and how far that is from what was
    published. ``off_ms`` and ``tied_ms`` by percentile; ``residuals`` are measured over published
    less one, in that order.
    """

    disk: Disk
    busy: float
    off_ms: dict[str, float]
    tied_ms: dict[str, float]
    residuals: dict[str, float]
    error: float


class Draws:
    """Everything that chance decides in a trial, the same for each."""

    def __init__(self, seed: int, reads: int = READS) -> None:
        random = Random(f"{seed}:disks")
        self.gaps = array("d", (random.expovariate(1.0) for _ in range(reads)))
        self.lengths = array("d", (random.gauss(0.0, 1.0) for _ in range(reads)))
        self.waits = array("d", (random.gauss(0.0, 1.0) for _ in range(reads)))
        self.chances = array("d", (random.random() for _ in range(reads)))
        first = [random.randrange(DISKS) for _ in range(reads)]
        self.disks = [(one, (one + random.randrange(1, DISKS)) % DISKS) for one in first]


def work_ms(disk: Disk, draws: Draws) -> list[float]:
    """What each read keeps its disk busy for."""
    exp, share = math.exp, disk.sort_share
    works = [disk.read_median_ms * exp(disk.read_sigma * z) for z in draws.lengths]
    if share:
        for read, (chance, z) in enumerate(zip(draws.chances, draws.waits, strict=True)):
            if chance < share:
                works[read] += disk.sort_median_ms * exp(disk.sort_sigma * z)
    return works


def reads_ms(disk: Disk, draws: Draws, *, tied: bool) -> list[float]:
    """How long each read takes from its arrival, waiting included."""
    now, gap_ms = 0.0, 1000.0 / (DISKS * disk.reads_per_s)
    free_ms = [0.0] * DISKS
    took_ms: list[float] = []
    for gap, work, (first, second) in zip(
        draws.gaps, work_ms(disk, draws), draws.disks, strict=True
    ):
        now += gap * gap_ms
        at, begins_ms = first, max(now, free_ms[first])
        if tied:
            other_ms = max(now + SECOND_COPY_MS, free_ms[second])
            if other_ms < begins_ms:
                at, begins_ms = second, other_ms
        free_ms[at] = begins_ms + work
        took_ms.append(free_ms[at] - now)
    return took_ms


def judged(disk: Disk, published: Published, draws: Draws) -> Fit:
    """How well a disk explains what was published."""
    rows = {name: figures(reads_ms(disk, draws, tied=name == "tied")) for name in ("off", "tied")}
    ratios = {
        f"{name} {figure}": value / published.rows[name][figure]
        for name, row in rows.items()
        for figure, value in row.items()
    }
    return Fit(
        disk,
        busy=disk.reads_per_s * fmean(work_ms(disk, draws)) / 1000.0,
        off_ms=rows["off"],
        tied_ms=rows["tied"],
        residuals={name: ratio - 1.0 for name, ratio in ratios.items()},
        error=math.sqrt(fmean(math.log(ratio) ** 2 for ratio in ratios.values())),
    )


def figures(took_ms: Sequence[float]) -> dict[str, float]:
    """The published percentiles of measured times."""
    in_order = sorted(took_ms)
    return {f"p{p:g}": estimate(in_order, p, ordered=True).value for p in PERCENTILES}


def fitted(
    disk: Disk, names: Sequence[str], published: Published, draws: Draws, tell: Callable[[], None]
) -> Fit:
    """Vary the parameters with these names, from where ``disk`` has them, to the best fit.

    ``tell`` is called after each trial.
    """
    best, step = judged(disk, published, draws), STEP
    while step >= STEP_MIN:
        before = best
        for name in names:
            for factor in (1.0 + step, 1.0 / (1.0 + step)):
                found = judged(_varied(best.disk, name, factor), published, draws)
                tell()
                if found.error < best.error:
                    best = found
        if best is before:
            step /= 2.0
    return best


def _varied(disk: Disk, name: str, factor: float) -> Disk:
    """One parameter changed; where it is how long reads take, as busy as before: then one
    parameter does not have to make up for the change of another.
    """
    varied = msgspec.structs.replace(disk, **{name: getattr(disk, name) * factor})
    if name in {"read_median_ms", "read_sigma"}:
        rate_per_s = disk.reads_per_s * _mean_read_ms(disk) / _mean_read_ms(varied)
        return msgspec.structs.replace(varied, reads_per_s=rate_per_s)
    return varied


def _mean_read_ms(disk: Disk) -> float:
    return disk.read_median_ms * math.exp(0.5 * disk.read_sigma**2)


def fit(seed: int, reads: int = READS, tell: Callable[[], None] = lambda: None) -> dict[str, Fit]:
    """Fit both environments, from far away: by name, as in ``SHIPPED``."""
    draws = Draws(seed, reads)

    def best(disks: Iterable[Disk], published: Published, names: Sequence[str]) -> Fit:
        found = [judged(disk, published, draws) for disk in disks]
        start = min(found, key=attrgetter("error")).disk
        return fitted(start, names, published, draws, tell)

    grid = (
        Disk(1000.0 * busy / _mean_read_ms(disk), GRID_MEDIAN_MS, sigma)
        for busy in BUSY_GRID
        for sigma in SIGMA_GRID
        for disk in [Disk(1.0, GRID_MEDIAN_MS, sigma)]
    )
    idle = best(grid, TIED_IDLE, ("reads_per_s", "read_median_ms", "read_sigma"))
    beside = (
        msgspec.structs.replace(
            idle.disk, sort_share=share, sort_median_ms=GRID_MEDIAN_MS, sort_sigma=sigma
        )
        for share in SHARE_GRID
        for sigma in SIGMA_GRID
    )
    names = ("sort_share", "sort_median_ms", "sort_sigma")
    return {"idle": idle, "with_background_sort": best(beside, TIED_BESIDE_A_SORT, names)}


def as_shipped(seed: int, reads: int = READS) -> Mapping[str, Fit]:
    """The same of the parameters that the profiles have."""
    draws = Draws(seed, reads)
    published = {"idle": TIED_IDLE, "with_background_sort": TIED_BESIDE_A_SORT}
    return {name: judged(disk, published[name], draws) for name, disk in SHIPPED.items()}
