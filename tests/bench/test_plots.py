"""The pictures: what is drawn is what was measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle

from bench import plots
from bench.comparison import Comparison
from bench.confidence import Estimate, curve
from bench.plots import Span

PNG = b"\x89PNG\r\n"


def test_a_picture_is_a_png_file(tmp_path: Path) -> None:
    """Of as many panels as were asked for, under the name that was asked for."""
    path = tmp_path / "picture.png"
    with plots.page(path, "A title", "how to repeat it", (2, 1)) as panels:
        assert len(panels) == 2
        plots.tail(panels[0], {"off": curve([1.0, 2.0, 3.0]), "empty": []})
    assert path.read_bytes().startswith(PNG)


def test_a_distribution_is_drawn_on_a_tail_axis(tmp_path: Path) -> None:
    """The 99th percentile stands twice as high as the 90th, at its latency."""
    with plots.page(tmp_path / "p.png", "") as (axes,):
        plots.tail(axes, {"off": curve(list(range(1, 10_001)))})
        (line,) = axes.get_lines()
        points = {round(float(y), 6): float(x) for x, y in np.asarray(line.get_xydata())}
        assert (points[1.0], points[2.0]) == (9000, 9900)
        assert axes.get_xscale() == "log"
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            *("0", "50", "90", "99", "99.9", "99.99")
        ]


def test_arms_differ_by_more_than_their_colour(tmp_path: Path) -> None:
    """Each has a colour of its own and a line of its own."""
    with plots.page(tmp_path / "p.png", "") as (axes,):
        plots.tail(axes, {name: curve([1.0, 2.0]) for name in ("off", "adaptive@0.05", "mine")})
        lines = axes.get_lines()
        assert len({line.get_color() for line in lines}) == 3
        assert len({line.get_linestyle() for line in lines}) == 3
    assert plots.colours(["adaptive@0.05"])["adaptive@0.05"] == plots.COLOURS["adaptive"]


def test_lines_join_points_by_name(tmp_path: Path) -> None:
    """At the values given, on the axes asked for."""
    with plots.page(tmp_path / "p.png", "") as (axes,):
        plots.lines(axes, {"off": [(1, 10), (2, 20)], "new": []}, "T", "x", "y", log="y")
        assert [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()] == [
            [10, 20],
            [],
        ]
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")


def test_bars_stand_beside_the_published_ones(tmp_path: Path) -> None:
    """One for the published figure where there is one, one for each arm, with its interval."""
    figures = [
        Comparison.of("p50", 40, Estimate(39.0, 38.0, 41.0), arm="off"),
        Comparison("p50", 40, 20.0, arm="adaptive"),
        Comparison("p99.9", None, 1500.0, arm="off"),
    ]
    with plots.page(tmp_path / "p.png", "") as (axes,):
        plots.bars(axes, figures)
        drawn = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        heights = sorted(patch.get_height() for patch in drawn)
        assert [height for height in heights if height] == [20.0, 39.0, 40, 1500.0]
        assert {text.get_text() for text in axes.texts} == {"20", "39", "40", "1500"}
        assert len(axes.containers) == len(axes.patches) + 1


def test_a_waterfall_shows_the_latest_legs(tmp_path: Path) -> None:
    """A bar an attempt, from its sending to its end; a leg ends with the answer that won."""
    attempts = [Span(shard, "primary", "won", 0.0, 1.0 + shard) for shard in range(50)]
    attempts += [
        Span(50, "primary", "cancelled", 0.0, 60.0),
        Span(50, "hedge", "won", 30.0, 55.0),
    ]
    with plots.page(tmp_path / "p.png", "") as (axes,):
        plots.waterfall(axes, attempts, "with")
        assert len(axes.patches) == plots.ROWS_MAX + 1
        assert {text.get_text() for text in axes.texts} == {"55 ms"}


def test_a_trace_becomes_spans() -> None:
    """What is still in flight ends, for the query, when that is decided."""
    attempt = {"shard": 3, "kind": "primary", "sent_ms": 0.2, "replica": "leaf0"}
    traced = {
        "phase": "search",
        "decided_ms": 9.0,
        "attempts": [
            {**attempt, "fate": "cancelled", "ended_ms": None},
            {**attempt, "kind": "hedge", "fate": "won", "ended_ms": 8.5},
        ],
    }
    assert plots.spans(traced) == [
        Span(3, "primary", "cancelled", 0.2, 9.0),
        Span(3, "hedge", "won", 0.2, 8.5),
    ]


def test_who_draws_nothing_needs_no_matplotlib() -> None:
    """The commands of the benchmarks do not import it."""
    script = "import sys, bench.__main__, bench.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"False\n"
