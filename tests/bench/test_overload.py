"""``python -m bench overload``, tiny, and what it tells."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.simulation.overload import Course, Seen, _told


def test_every_policy_goes_through_every_scenario(tmp_path: Path) -> None:
    """And what is written says so."""
    path = tmp_path / "result.json"
    command = ["overload", "--quick", "--leaves", "2", "--json", str(path)]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    scenarios = orjson.loads(path.read_bytes())["scenarios"]
    assert list(scenarios) == ["load", "shard"]
    for recoveries in scenarios.values():
        assert list(recoveries) == ["off", "quantile", "adaptive"]
        assert recoveries["off"]["trouble_extra_load"] == 0.0
        assert len(recoveries["off"]["p95_ms"]) == 8


@pytest.mark.parametrize(("slow_until_s", "recovered_s"), [(4.0, 1.0), (5.0, 2.0), (9.0, None)])
def test_it_is_as_before_with_the_first_second_that_is(
    slow_until_s: float, recovered_s: float | None
) -> None:
    """Counted from the end of the trouble to the end of that second."""
    course = Course(before_s=2.0, trouble_s=2.0, after_s=3.0, leaves=10)
    times_s = [i / 10.0 for i in range(70)]
    seen = [Seen(t, 0.5 if 2.0 <= t < slow_until_s else 0.1, 10, 0) for t in times_s]
    told = _told(seen, course)
    assert told.recovered_s == recovered_s
    assert told.p95_ms[1:3] == [100.0, 500.0]


def test_what_queries_missed_and_cost_is_told_of_the_trouble_alone() -> None:
    """Complete counts whole queries, coverage their shards."""
    course = Course(before_s=2.0, trouble_s=2.0, after_s=2.0, leaves=10)
    seen = [Seen(i / 10.0, 0.1, 10, 0) for i in range(60)]
    seen[20:30] = [Seen(one.sent_s, 0.4, 5, 1) for one in seen[20:30]]
    told = _told(seen, course)
    assert (told.trouble_complete, told.trouble_coverage) == (0.5, 0.75)
    assert (told.trouble_extra_load, told.after_complete) == (0.05, 1.0)


def test_a_budget_that_is_none_is_refused_in_a_sentence() -> None:
    """Exit code 2."""
    done = CliRunner().invoke(main, ["overload", "--quick", "--max-extra-load", "2"])
    assert done.exit_code == 2
    assert "must be from 0 to 1" in done.output
