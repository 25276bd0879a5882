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

REPOSITORY: Final = Path(__file__).parent.parent.parent
TINY: Final = ("--queries", "60", "--leaves", "30", "--seed", "7")


def result_of(folder: Path, *command: str) -> Any:
    """The JSON of a run that ends well."""
    path = folder / "result.json"
    done = CliRunner().invoke(main, [*command, "--json", str(path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return orjson.loads(path.read_bytes())


@pytest.mark.parametrize("profile", ["tail-at-scale", "bigtable"])
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


def test_a_storm_shows_what_was_set_before_it(tmp_path: Path) -> None:
    """One arm more for each policy that is set once: it spends far more than it was set to."""
    storm = ("--profile", "slow-queries", "--queries", "400", "--leaves", "50")
    arms = result_of(tmp_path, "policies", *storm)["arms"]
    assert arms["fixed-as-set@0.05"]["extra_load"] > 1.4 * 0.05
    assert arms["adaptive@0.05"]["extra_load"] <= 0.05 + 500 / (50 * 400)
    assert "quantile-as-set@0.01" in arms


@pytest.mark.parametrize("option", [["--policy", "magic"], ["--max-extra-load", "2"]])
def test_what_cannot_be_simulated_is_refused_in_a_sentence(option: list[str]) -> None:
    """Exit code 2."""
    done = CliRunner().invoke(main, ["simulate", *option, *TINY])
    assert done.exit_code == 2
    assert "must be" in done.output


def test_the_same_seed_gives_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    """Of the JSON, its header apart."""
    results = []
    for hash_seed in ("1", "2"):
        path = tmp_path / f"{hash_seed}.json"
        subprocess.run(
            [sys.executable, "-m", "bench", "simulate", *TINY, "--json", str(path)],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            timeout=60,
        )
        result = orjson.loads(path.read_bytes())
        del result["header"]
        results.append(hashlib.sha256(orjson.dumps(result)).hexdigest())
    assert results[0] == results[1]
