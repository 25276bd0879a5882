"""The table of published and measured figures."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bench.comparison import Comparison, interval, show_comparison
from bench.confidence import Estimate


def shown(*comparisons: Comparison, source: str = "") -> str:
    """The table as it is printed."""
    out = io.StringIO()
    show_comparison("T", comparisons, Console(file=out, width=120), source=source)
    return out.getvalue()


def test_a_figure_stands_beside_the_published_one_with_its_ratio() -> None:
    """Name, published, measured, from where to where, measured over published."""
    line = next(
        line
        for line in shown(Comparison.of("p99", 140, Estimate(126.0, 120.0, 131.0))).splitlines()
        if "p99" in line
    )
    assert [part.strip() for part in line.strip("│").split("│")] == [
        *("p99, ms", "140", "126", "120 to 131", "0.90")
    ]


def test_what_nobody_published_has_no_ratio() -> None:
    """An empty cell each, and arms in a column of their own where there are any."""
    text = shown(Comparison("p99", None, 126.0, arm="adaptive"), source="somewhere")
    assert Comparison("p99", None, 126.0).ratio is None
    assert Comparison("p99", 0.0, 126.0).ratio is None
    assert "adaptive" in text
    assert "arm" in text
    assert "arm" not in shown(Comparison("p99", None, 126.0, unit=""))
    assert "published: somewhere" in text


@pytest.mark.parametrize(
    ("low", "high", "said"), [(None, None, ""), (1.5, None, "from 1.5"), (1.0, 2.0, "1 to 2")]
)
def test_an_interval_may_be_open(low: float | None, high: float | None, said: str) -> None:
    """Nothing where none is known, no end where too few values were measured."""
    assert interval(low, high) == said
