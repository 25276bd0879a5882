"""Every benchmark runs, tiny: none rots."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.fleet import POLL_S, Fleet

pytestmark = pytest.mark.live

REPOSITORY: Final = Path(__file__).parent.parent.parent


def quick(folder: Path, *command: str) -> Any:
    """The JSON of a tiny run."""
    path = folder / "result.json"
    options = ["--quick", "--json", str(path)]
    done = CliRunner().invoke(main, [*command, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return orjson.loads(path.read_bytes())


@pytest.mark.parametrize("experiment", ["search", "agree", "chaos", "watching"])
def test_an_experiment_runs_and_writes_its_result(
    experiment: str, index: Path, tmp_path: Path
) -> None:
    """A quick run ends well and its JSON names the experiment and how to repeat it."""
    result = quick(tmp_path, experiment, "--seed", "3", "--index", str(index))
    assert result["experiment"] == experiment
    assert result["header"]["seed"] == 3


def test_a_leg_is_measured_in_three_ways(tmp_path: Path) -> None:
    """The result has the cost of a leg of each arm."""
    result = quick(tmp_path, "leg-cost", "--shards", "20")
    assert (result["experiment"], result["shards"]) == ("leg-cost", 20)
    assert set(result["arms"]) == {"hedgerow", "post_per_leg", "echo_floor"}
    assert all(arm["us_per_leg"] > 0 for arm in result["arms"].values())


@pytest.mark.parametrize("command", [("table",), ("table", "--real"), ("bigtable",)])
def test_arms_are_measured_over_the_same_leaves(command: tuple[str, ...], tmp_path: Path) -> None:
    """Every arm has its rows from the traces of its own root, and no query was lost."""
    result = quick(tmp_path, *command)
    assert result["how"] == ("real" if "--real" in command else "live")
    for arm in result["arms"].values():
        assert arm["incomplete"] == 0
        assert 0 < arm["rows"]["one_leaf"]["p50"] < arm["rows"]["100_percent"]["p99"]
    assert bool(result["added"]) == ("--real" not in command)


def test_a_fan_out_is_real_as_far_as_it_can_be(tmp_path: Path) -> None:
    """Up to 200 leaves on real processes, and past that in virtual time, in one table."""
    points = quick(tmp_path, "fan-out")["points"]
    assert [(point["leaves"], point["live"]) for point in points] == [
        (1, True),
        (20, True),
        (500, False),
    ] * 2
    for point in points:
        assert point["queries"] > 0
        # A busy machine makes more of them slow, and never fewer.
        assert point["high"] >= point["expected"]


def test_a_leaf_is_driven_beyond_what_it_can_do(index: Path, tmp_path: Path) -> None:
    """At four times its load it answers some in time, refuses others, and every leg is told of."""
    result = quick(tmp_path, "saturation", "--index", str(index))
    for budget in ("1600", "100"):
        overload = result["budgets"][budget]["loads"]["4x"]
        fates = dict(overload["legs"])
        assert fates.pop("offered") == sum(fates.values())
        assert overload["goodput"] > 0
    assert result["budgets"]["100"]["loads"]["4x"]["legs"]["busy"] > 0
    assert set(result["classes"]["comparisons"]) == {"mix", "batch"}


@pytest.mark.parametrize("experiment", ["tied", "mirrored-reads", "together", "capacity"])
@pytest.mark.parametrize("simulated", [False, True])
def test_experiments_about_copies_run(experiment: str, simulated: bool, tmp_path: Path) -> None:
    """On real leaves and in virtual time, with a picture."""
    picture = tmp_path / "picture.png"
    options = ["--simulate"] if simulated else []
    result = quick(tmp_path, experiment, *options, "--plot", str(picture))
    assert (result["experiment"], result["simulated"]) == (experiment, simulated)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_leaf_does_not_see_that_its_loop_is_blocked(index: Path, tmp_path: Path) -> None:
    """Its own times stay far below what users wait, and its lag and the root's ratio tell. Which
    bars a tiny run on a busy machine reaches is not for a test.
    """
    path, picture = tmp_path / "result.json", tmp_path / "picture.png"
    command = ["blind-spot", "--quick", "--index", str(index)]
    done = CliRunner().invoke(
        main, [*command, "--json", str(path), "--plot", str(picture)], catch_exceptions=True
    )
    result = orjson.loads(path.read_bytes())
    assert result["lookups"] > 0, done.output
    assert set(result["client"]["during"]["fates"]) == {"complete"}
    assert result["client"]["during"]["p95_ms"] > 300.0 > result["leaf"]["during"]["own_p95_ms"]
    assert result["leaf"]["during"]["loop_lag_ms"] > 20 * result["leaf"]["before"]["loop_lag_ms"]
    ratio = {when: leaf["seen_to_reported"] for when, leaf in result["leaf"].items()}
    assert ratio["during"] > ratio["before"]
    stall = result["omission"]["stall"]
    assert stall["corrected"]["max_ms"] > 1000.0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_trouble_made_of_real_leaves_is_over_afterwards(index: Path, tmp_path: Path) -> None:
    """Every kind has been gone through, every query was answered, and nothing is left: neither
    processes nor copies of the index.
    """
    own = tmp_path / "index"
    own.symlink_to(index)
    result = quick(tmp_path, "pressure", "--index", str(own))
    assert set(result["kinds"]) == {"calm", "stop", "hog", "cold"}
    for kind in result["kinds"].values():
        for arm in kind["arms"].values():
            assert set(arm["summary"]["fates"]) == {"complete"}
    assert not commands_with("while True: pass")
    assert not list(Path(tempfile.gettempdir()).glob("hedgerow-fleet-*-indexes"))


def test_load_is_recorded_and_replayed(fleet: Fleet, tmp_path: Path) -> None:
    """A root answers every request of a ramp; the replay sends as many again."""
    url, script = f"{fleet.root_url}/search?q=a", tmp_path / "run.jsonl"
    first = quick(tmp_path, "load", url, "--ramp", "5:50:1", "--record", str(script))
    assert set(first["statuses"]) == {"200"}
    assert first["summary"]["fates"] == {"complete": first["summary"]["requests"]}
    again = quick(tmp_path, "load", fleet.root_url, "--replay", str(script))
    assert again["statuses"] == first["statuses"]
    assert "run.jsonl" in again["header"]["load"]


def test_a_missing_index_is_one_sentence(tmp_path: Path) -> None:
    """An index directory without an index: exit code 2, nothing started."""
    done = CliRunner().invoke(main, ["search", "--index", str(tmp_path)])
    assert done.exit_code == 2
    assert "There is no index" in done.output


def test_a_killed_benchmark_leaves_nothing_behind(index: Path, tmp_path: Path) -> None:
    """Where no code of ours can run any more, the system ends what was started."""
    script = (
        "import sys, time; from pathlib import Path; from bench.fleet import Shape, running\n"
        "with running(Shape(Path(sys.argv[1]))): print('ready', flush=True); time.sleep(60)"
    )
    own = tmp_path / "index"
    own.symlink_to(index)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(own)], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as benchmark:
        assert benchmark.stdout is not None
        assert benchmark.stdout.readline() == b"ready\n"
        assert len(commands_with(str(own))) == 5
        benchmark.kill()
    deadline_s = time.monotonic() + 3
    while commands_with(str(own)) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)
    assert not commands_with(str(own))


def commands_with(text: str) -> list[bytes]:
    """Command lines of the running processes that contain ``text``."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in (command := file.read_bytes()):
                found.append(command)
    return found


def test_the_system_counts_what_one_index_does(tmp_path: Path) -> None:
    """On short documents with filter and facets: all totals agree, every figure has its bar."""
    result = quick(tmp_path, "search", "--documents", "1000", "--facets")
    assert (result["selected"], result["differing"]) == (True, 0)
    assert set(result["arms"]) == {"closed", "open", "oracle", "all_cores"}
    assert [bar["measured"] > 0 for bar in result["bars"]] == [True] * 3


def test_facets_without_their_fields_are_refused(index: Path) -> None:
    """One sentence, before anything is started."""
    for options in (["--facets"], ["--documents", "1000", "--index", str(index)]):
        done = CliRunner().invoke(main, ["search", *options])
        assert done.exit_code == 2
        assert "--documents" in done.output
