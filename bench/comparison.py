"""Published figures beside measured ones: a table of published / measured / ratio."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console

from bench import report
from bench.confidence import Estimate


class Comparison(msgspec.Struct, frozen=True):
    """One figure. ``published`` is None where nobody has published it; ``arm`` says which
    variant was measured where there are several; without an interval, ``measured`` alone.
    """

    name: str
    published: float | None
    measured: float
    low: float | None = None
    high: float | None = None
    arm: str = ""
    unit: str = "ms"

    @classmethod
    def of(
        cls,
        name: str,
        published: float | None,
        measured: Estimate,
        *,
        arm: str = "",
        unit: str = "ms",
    ) -> Comparison:
        """One with its confidence interval."""
        return cls(name, published, measured.value, measured.low, measured.high, arm, unit)

    @property
    def ratio(self) -> float | None:
        """Measured over published; None where there is nothing to divide by."""
        return self.measured / self.published if self.published else None


def show_comparison(
    title: str, comparisons: Sequence[Comparison], console: Console, *, source: str = ""
) -> None:
    """Print a line a figure, and below where the published ones stand."""
    arms = any(one.arm for one in comparisons)
    columns = ["", *(["arm"] if arms else []), "published", "measured", "95 % interval", "ratio"]
    rows = [
        [
            f"{one.name}, {one.unit}" if one.unit else one.name,
            *([one.arm] if arms else []),
            "" if one.published is None else report.figure(one.published),
            one.measured,
            interval(one.low, one.high),
            "" if one.ratio is None else f"{one.ratio:.2f}",
        ]
        for one in comparisons
    ]
    report.show_table(title, columns, rows, console)
    if source:
        console.print(f"published: {source}", highlight=False, soft_wrap=True, markup=False)


def interval(low: float | None, high: float | None) -> str:
    """An interval in words; open where there were too few values to close it."""
    if low is None:
        return ""
    if high is None:
        return f"from {report.figure(low)}"
    return f"{report.figure(low)} to {report.figure(high)}"
