"""Every benchmark runs, tiny: none rots."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main

pytestmark = pytest.mark.live


@pytest.mark.parametrize("experiment", ["search", "agree", "chaos"])
def test_an_experiment_runs_and_writes_its_result(
    experiment: str, index: Path, tmp_path: Path
) -> None:
    """A quick run ends well and its JSON names the experiment and how to repeat it."""
    path = tmp_path / "result.json"
    options = ["--quick", "--seed", "3", "--index", str(index), "--json", str(path)]
    done = CliRunner().invoke(main, [experiment, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = orjson.loads(path.read_bytes())
    assert result["experiment"] == experiment
    assert result["header"]["seed"] == 3


def test_a_missing_index_is_one_sentence(tmp_path: Path) -> None:
    """An index directory without an index: exit code 2, nothing started."""
    done = CliRunner().invoke(main, ["search", "--index", str(tmp_path)])
    assert done.exit_code == 2
    assert "There is no index" in done.output
