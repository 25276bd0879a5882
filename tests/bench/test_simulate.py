"""``python -m bench simulate`` and ``policies``, tiny."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.experiments import policies
from bench.simulation.study import Plan

REPOSITORY: Final = Path(__file__).parent.parent.parent
TINY: Final = ("--queries", "60", "--leaves", "30", "--seed", "7")


def result_of(folder: Path, *command: str) -> Any:
    """The JSON of a run that ends well."""
    path = folder / "result.json"
    done = CliRunner().invoke(main, [*command, "--json", str(path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return orjson.loads(path.read_bytes())


@pytest.mark.parametrize("profile", ["tail-at-scale", "bigtable", "queues"])
@pytest.mark.parametrize("policy", ["off", "fixed", "adaptive"])
def test_simulate_writes_the_rows_and_the_cost(profile: str, policy: str, tmp_path: Path) -> None:
    """One leaf, most of them, all of them: each slower than the one before."""
    result = result_of(tmp_path, "simulate", "--policy", policy, "--profile", profile, *TINY)
    assert (result["experiment"], result["policy"], result["leaves"]) == ("simulate", policy, 30)
    arm = result["arm"]
    rows = [arm[name] for name in ("one_leaf", "95_percent", "100_percent")]
    assert [row["p50"] for row in rows] == sorted(row["p50"] for row in rows)
    assert set(rows[0]) == {"p50", "p95", "p99", "p99.9"}
    assert (arm["extra_load"] > 0.0) == (policy != "off")


def test_a_tree_writes_what_both_levels_cost(tmp_path: Path) -> None:
    """Rows of the top root, none of one leaf alone; and how fast it ran, in the header."""
    result = result_of(tmp_path, "simulate", "--tree", "3", *TINY)
    assert result["tree"] == 3
    assert result["arm"]["one_leaf"] is None
    assert result["arm"]["leaf_extra_load"] >= result["arm"]["mid_extra_load"] > 0.0
    assert "legs" in result["header"]["speed"]
    assert "speed" not in result


def test_policies_writes_every_arm_at_every_cost(tmp_path: Path) -> None:
    """With the bounds, none of which any policy beats at its cost in the mean of its rows."""
    result = result_of(tmp_path, "policies", *TINY)
    arms = result["arms"]
    spending = ("fixed", "quantile", "sibling", "adaptive", "clairvoyant")
    at_cost = [f"{name}@{share}" for share in ("0.01", "0.02", "0.05") for name in spending]
    assert list(arms) == ["off", *at_cost, "together", "fastest"]
    assert (result["experiment"], result["profile"]) == ("policies", "tail-at-scale")
    assert arms["off"]["extra_load"] == 0.0
    assert arms["together"]["100_percent"] == arms["fastest"]["100_percent"]
    assert all(
        arm["100_percent"]["p50"] <= arms["off"]["100_percent"]["p50"] for arm in arms.values()
    )


def test_a_storm_shows_what_was_set_before_it() -> None:
    """One arm more for each policy that is set once: it spends far more than it was set to."""
    plan = Plan("slow-queries", leaves=30, queries=200)
    arms = policies.run(plan, [0.05]).arms
    assert arms["fixed-as-set@0.05"].extra_load > 1.4 * 0.05
    assert arms["adaptive@0.05"].extra_load <= 0.05 + 150 / (30 * 200)
    assert "quantile-as-set@0.05" in arms


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--policy", "magic"], "hedge must be"),
        (["--max-extra-load", "2"], "must be from 0 to 1"),
        (["--tree", "31"], "tree must be from 0 to 30, not 31"),
        (["--tree", "-1"], "'--tree'"),
        (["--profile", "magic"], "'--profile'"),
        (["--replicas", "0"], "'--replicas'"),
        (["--leaves", "0"], "'--leaves'"),
        (["--queries", "0"], "'--queries'"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(
    option: list[str], said: str, tmp_path: Path
) -> None:
    """Exit code 2, and no file."""
    path = tmp_path / "result.json"
    done = CliRunner().invoke(main, ["simulate", *TINY, *option, "--json", str(path)])
    assert done.exit_code == 2
    assert said in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_result_without_a_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """For hours of simulation it would be too late."""
    path = tmp_path / "nowhere" / "result.json"
    done = CliRunner().invoke(main, ["simulate", *TINY, "--json", str(path)])
    assert done.exit_code == 2
    assert "does not exist" in done.output
    assert "leaves finish" not in done.output


def test_leaves_with_queues_are_not_compared_at_equal_cost() -> None:
    """What hedging costs there is not its extra attempts alone."""
    done = CliRunner().invoke(main, ["policies", "--profile", "queues", *TINY])
    assert done.exit_code == 2
    assert "'queues' is not one of" in done.output


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", *TINY),
        ("simulate", "--profile", "queues", *TINY),
        ("simulate", "--profile", "failures", "--tree", "3", *TINY),
        ("policies", "--quick", "--queries", "20", "--leaves", "5", "--profile", "slow-queries"),
        ("overload", "--quick", "--leaves", "2"),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_the_same_seed_gives_the_same_bytes(command: tuple[str, ...], tmp_path: Path) -> None:
    """Of the JSON, its header apart: twice in a row, and under any hash seed."""
    hashes = set()
    for run, hash_seed in enumerate(("1", "1", "2")):
        path = tmp_path / f"{run}.json"
        subprocess.run(
            [sys.executable, "-m", "bench", *command, "--json", str(path)],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            timeout=100,
        )
        result = orjson.loads(path.read_bytes())
        assert result.pop("header")["seed"] in {1, 7}
        hashes.add(hashlib.sha256(orjson.dumps(result)).hexdigest())
    assert len(hashes) == 1
