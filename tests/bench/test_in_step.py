"""What it is good for that leaves do their background work together."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.experiments import in_step
from bench.simulation.study import Plan


def test_in_step_most_queries_meet_no_pause() -> None:
    """At random half of the queries over a hundred leaves wait for a pause somewhere; in step
    the median is that of leaves that do nothing else. One leaf alone meets as many pauses.
    """
    arms = in_step.run(Plan("calm", 100, 2, 300), 500.0, 20.0).arms["off"]
    none, random, step = (arms[name] for name in in_step.MOMENTS)
    assert random.all_leaves.p50 > 3.0 * none.all_leaves.p50
    assert step.all_leaves.p50 < 1.1 * none.all_leaves.p50
    assert none.one_leaf is not None
    assert random.one_leaf is not None
    assert step.one_leaf is not None
    assert random.one_leaf.p99 > 3.0 * none.one_leaf.p99
    assert step.one_leaf.p99 > 3.0 * none.one_leaf.p99


def test_the_command_prints_every_arm_and_writes_them(tmp_path: Path) -> None:
    """Three rows each, and the same bytes for the same seed."""
    results = []
    for run in range(2):
        path = tmp_path / f"{run}.json"
        done = CliRunner().invoke(
            main, ["in-step", "--quick", "--leaves", "5", "--json", str(path)]
        )
        assert done.exit_code == 0, done.output
        assert done.output.count("at random") == 6
        results.append(orjson.loads(path.read_bytes()))
        assert results[-1].pop("header")["seed"] == 1
    assert results[0] == results[1]
    assert set(results[0]["arms"]) == {"off", "adaptive"}


@pytest.mark.parametrize("option", [["--period-ms", "0"], ["--lasts-ms", "2000"]])
def test_times_that_cannot_be_are_refused(option: list[str]) -> None:
    """Exit code 2 and one sentence that names the time."""
    done = CliRunner().invoke(main, ["in-step", "--quick", *option])
    assert done.exit_code == 2
    assert "_s must be" in done.output
