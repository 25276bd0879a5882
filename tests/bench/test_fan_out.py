"""The share of slow queries against the number of leaves."""

from __future__ import annotations

from pathlib import Path

import orjson
from click.testing import CliRunner

from bench.__main__ import main


def test_slow_queries_are_as_many_as_arithmetic_says(tmp_path: Path) -> None:
    """Within the interval's reach without hedging, and fewer with it; drawn and written."""
    path, picture = tmp_path / "r.json", tmp_path / "r.png"
    options = ["fan-out", "--simulate", "--quick", "--json", str(path), "--plot", str(picture)]
    done = CliRunner().invoke(main, options, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    points = orjson.loads(path.read_bytes())["points"]
    assert [point["leaves"] for point in points] == [1, 10, 100] * 2
    for point in points:
        reach = 2 * (point["high"] - point["low"])
        assert abs(point["slow"] - point["expected"]) < reach
        assert point["hedged_slow"] <= point["slow"]
    assert points[2]["slow"] > 0.5
    assert points[2]["hedged_slow"] < 0.5 * points[2]["slow"]
    assert picture.stat().st_size > 10_000
