"""How the disk profiles were found, and how far they are from what was published.

See ``bench.simulation.disk_fit`` for model and search.
"""

from __future__ import annotations

from typing import Final

import msgspec
from rich.console import Console

from bench import report
from bench.progress import progress
from bench.simulation.disk_fit import READS, SHIPPED, Disk, Fit, as_shipped, fit

TRIALS: Final = 150
"""About so many are needed: for the progress bar alone."""


class Result(msgspec.Struct, frozen=True):
    """By environment: what the profiles have, and the best that the search finds."""

    reads: int
    shipped: dict[str, Fit]
    fitted: dict[str, Fit]


def run(seed: int, reads: int = READS) -> Result:
    """Judge what is shipped, and fit anew."""
    with progress("fitting", TRIALS) as advance:
        fitted = fit(seed, reads, lambda: advance(1))
    return Result(reads, dict(as_shipped(seed, reads)), fitted)


def show(result: Result, console: Console) -> None:
    """Print parameters and residuals."""
    names = Disk.__struct_fields__
    short = ["reads/s", "median ms", "sigma", "sort share", "median ms", "sigma", "busy"]
    rows = [
        [
            f"{_short(environment)}, {which}",
            *(getattr(one.disk, name) for name in names),
            f"{one.busy:.0%}",
        ]
        for environment in SHIPPED
        for which, one in _both(result, environment)
    ]
    report.show_table("parameters", ["", *short], rows, console)
    residuals = list(result.shipped["idle"].residuals)
    rows = [
        [
            f"{_short(environment)}, {which}",
            *(f"{one.residuals[name]:+.1%}" for name in residuals),
            f"{one.error:.1%}",
        ]
        for environment in SHIPPED
        for which, one in _both(result, environment)
    ]
    title = "measured over published, less one"
    report.show_table(title, ["", *residuals, "all, RMS"], rows, console)


def _both(result: Result, environment: str) -> list[tuple[str, Fit]]:
    return [("shipped", result.shipped[environment]), ("fitted", result.fitted[environment])]


def _short(environment: str) -> str:
    return "idle" if environment == "idle" else "sort"
