"""``python -m bench swarm``: what it takes, tells and writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from bench.__main__ import main
from bench.experiments.swarm import SEEDS_MAX, seeds_in
from root.scatter import Flight


def swarm(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["swarm", *arguments], catch_exceptions=False)


def forget_to_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the driver: it carries out no cancel."""
    perform = Flight._perform

    def perform_sends(self: Flight, actions: Sequence[object]) -> None:
        perform(self, [action for action in actions if type(action).__name__ == "SendAttempt"])  # type: ignore[misc]

    monkeypatch.setattr(Flight, "_perform", perform_sends)


def test_seeds_are_one_or_a_range_that_includes_both_ends() -> None:
    """As 7, or 0..1999."""
    assert seeds_in("7") == range(7, 8)
    assert seeds_in("0..1999") == range(2000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "many"], "must be a number, or two as in 0..1999, not 'many'"),
        (["--seeds", ""], "not ''"),
        (["--seeds", "-1"], "not '-1'"),
        (["--seeds", "1..2..3"], "not '1..2..3'"),
        (["--seeds", "1.5"], "not '1.5'"),
        (["--seeds", "9" * 100], "not '9999"),
        (["--seeds", "٣"], "not '٣'"),
        (["--seeds", "5..4"], "ends before it begins"),
        (["--seeds", f"0..{SEEDS_MAX}"], f"more than {SEEDS_MAX}"),
        (["--seeds", "0..1", "--trace"], "of one seed, not of 2"),
        (
            ["--seeds", "0", "--json", "/nowhere/at/all.json"],
            "the folder /nowhere/at does not exist",
        ),
        (["--seeds", "0", "--jobs", "0"], "Invalid value for '--jobs'"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(arguments: list[str], said: str) -> None:
    """Before anything runs, with exit code 2."""
    refused = swarm(*arguments)
    assert refused.exit_code == 2
    assert said in refused.output
    assert "Traceback" not in refused.output


def test_a_good_run_says_what_it_ran(tmp_path: Path) -> None:
    """And writes it as JSON; more processes change nothing."""
    written = []
    for jobs in ("1", "2"):
        path = tmp_path / f"{jobs}.json"
        done = swarm("--seeds", "3..5", "--jobs", jobs, "--json", str(path))
        assert done.exit_code == 0
        assert "0 of 3 seeds failed" in done.output
        written.append(orjson.loads(path.read_bytes()))
    result = written[0]
    assert (result["experiment"], result["seeds"], result["failures"]) == ("swarm", [3, 5], [])
    assert result["queries"] > 100
    assert result["attempts"] == sum(result["kinds"].values()) == sum(result["fates"].values())
    for result in written:
        del result["header"]
    assert written[0] == written[1]


def test_a_seed_that_fails_is_told_with_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The seed, what did not hold, what was seen instead; exit code 1."""
    forget_to_cancel(monkeypatch)
    path = tmp_path / "result.json"
    done = swarm("--seeds", "0..1", "--json", str(path))
    assert done.exit_code == 1
    failures = orjson.loads(path.read_bytes())["failures"]
    assert {"seed", "invariant", "times", "seen", "replay"} == set(failures[0])
    assert "losers are cancelled at once" in {failure["invariant"] for failure in failures}
    for failure in failures:
        assert f"seed {failure['seed']}: {failure['invariant']}" in done.output
        assert failure["seen"] in done.output
        assert failure["replay"] == f"python -m bench swarm --seeds {failure['seed']} --trace"
        assert failure["replay"] in done.output


def test_the_trace_tells_everything_in_order_and_what_did_not_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Faults, searches, attempts, in the order of time; the same run as without."""
    told = swarm("--seeds", "1", "--trace").output
    lines = [line for line in told.splitlines() if line[:10].strip().replace(".", "").isdigit()]
    times_s = [float(line[:10]) for line in lines]
    assert times_s == sorted(times_s)
    for what in ("arrives", "primary", "hedge", "is sent", "won after", "is cancelled", "over"):
        assert any(what in line for line in lines), what
    forget_to_cancel(monkeypatch)
    failed = swarm("--seeds", "1", "--trace")
    assert failed.exit_code == 1
    assert "seed 1: losers are cancelled at once" in failed.output


def test_a_run_without_end_is_a_failure_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that waits for ever does not hang the command."""
    monkeypatch.setattr(Flight, "settle", lambda self: self._take_replies())
    failed = swarm("--seeds", "0")
    assert failed.exit_code == 1
    assert "seed 0: the run comes to its end" in failed.output
