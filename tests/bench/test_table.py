"""``python -m bench table`` and ``bigtable``: in virtual time, and what is made of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import live_arms
from bench.__main__ import main
from bench.experiments import bigtable, table
from bench.published import LEAVES_IN_A_FAN_OUT
from bench.rows import Rows
from leaf import plans
from leaf.interference import Arrival, Interference

URLS = ("http://a", "http://b")


def tiny(tmp_path: Path, *command: str) -> Any:
    """The JSON of a tiny run in virtual time, with its picture drawn."""
    path, picture = tmp_path / "result.json", tmp_path / "picture.png"
    options = ["--simulate", "--quick", "--json", str(path), "--plot", str(picture)]
    done = CliRunner().invoke(main, [*command, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    return orjson.loads(path.read_bytes())


def test_the_simulated_table_has_rows_intervals_and_arms(tmp_path: Path) -> None:
    """In the shape in which others read it."""
    result = tiny(tmp_path, "table")
    assert (result["experiment"], result["leaves"]) == ("table", 100)
    assert set(result["arms"]) == {"off", "adaptive", "tied", "clairvoyant"}
    off = result["arms"]["off"]
    assert off["extra_load"] == 0
    rows = ("one_leaf", "95_percent", "100_percent", "random_leaf_in_fan_out", "first_leaf")
    assert set(off["rows"]) == set(rows)
    for row in rows:
        for name in ("p50", "p95", "p99"):
            low, high = off["intervals"][row][name]
            assert low <= off["rows"][row][name]
            assert high is None or off["rows"][row][name] <= high
    slowest = {name: arm["rows"]["100_percent"]["p50"] for name, arm in result["arms"].items()}
    assert slowest["clairvoyant"] < slowest["adaptive"] < slowest["off"]


def test_tied_copies_gain_nothing_where_nothing_queues(tmp_path: Path) -> None:
    """The first one has begun when the second arrives, which then costs nothing."""
    arms = tiny(tmp_path, "table")["arms"]
    assert arms["tied"]["rows"]["100_percent"] == arms["off"]["rows"]["100_percent"]
    assert arms["tied"]["extra_load"] == 0


def test_bigtable_is_lower_by_the_published_factor(tmp_path: Path) -> None:
    """At most 2 % more requests by a fixed delay, and fewer by what is learned."""
    result = tiny(tmp_path, "bigtable")
    assert set(result["arms"]) == {"off", "fixed", "adaptive"}
    assert 0 < result["arms"]["fixed"]["extra_load"] <= bigtable.EXTRA_LOAD_MAX * 1.2
    assert set(result["reductions"]) == set(result["arms"])


def cells(factor: float) -> dict[str, dict[str, float]]:
    """Published figures, all off by a factor."""
    return {
        row: {name: figure * factor for name, figure in figures.items()}
        for row, figures in LEAVES_IN_A_FAN_OUT.rows.items()
    }


def test_a_cell_is_missed_by_more_than_is_allowed() -> None:
    """Each of the nine, and none within."""
    assert table.missed(cells(1.09), table.NEAR_SIMULATED) == []
    assert len(table.missed(cells(1.11), table.NEAR_SIMULATED)) == 9
    assert len(table.missed(cells(0.80), table.NEAR_LIVE)) == 6


def test_real_and_simulated_exclude_each_other() -> None:
    """Exit code 2 and a sentence."""
    done = CliRunner().invoke(main, ["table", "--real", "--simulate"])
    assert done.exit_code == 2
    assert "--real is about real processes" in done.output


# --- what is made of traces ---------------------------------------------------------------


def attempt(shard: int, replica: str, ended_ms: float, **more: Any) -> dict[str, Any]:
    """One attempt of a trace."""
    told = {"shard": shard, "replica": replica, "kind": "primary", "fate": "won", "sent_ms": 0.0}
    return {**told, "ended_ms": ended_ms, **more}


def answer(number: int, added_ms: float) -> dict[str, Any]:
    """A whole answer to the query with this number, each of whose legs was ``added_ms`` late."""
    injected = live_arms.Injected("tail-at-scale", URLS, seed=1)

    def leg(kind: Any, shard: int) -> dict[str, Any]:
        one = attempt(shard, URLS[shard % 2], 0.0)
        return {**one, "ended_ms": injected.ms(kind, number, one) + added_ms}

    legs = [leg("search", shard) for shard in range(10)]
    search = {"phase": "search", "started_ms": 0.0, "decided_ms": 9.0, "attempts": legs}
    fetch = {"phase": "fetch", "started_ms": 0.0, "decided_ms": 9.0, "attempts": [leg("fetch", 3)]}
    return {"coverage": {"complete": True}, "trace": [search, fetch]}


def measured(answers: list[dict[str, Any]]) -> live_arms.Measured:
    """An arm that got these answers, read."""
    arm = live_arms.Measured(Rows(1), Rows(1), answers=answers)
    live_arms._read(arm, live_arms.Injected("tail-at-scale", URLS, seed=1))
    return arm


def test_what_was_injected_is_what_the_leaf_injected() -> None:
    """A leg's trouble is worked out as the leaf with that address meets it."""
    (trouble,) = Interference(plans.profile("tail-at-scale"), leaf=1, seed=1, began_s=5.0).meet(
        Arrival("search", [7], 12), 6.0
    )
    injected = live_arms.Injected("tail-at-scale", URLS, seed=1)
    assert injected.ms("search", 12, attempt(7, URLS[1], 0.0)) == trouble.transit_s * 1e3


def test_what_the_system_adds_is_known_leg_by_leg() -> None:
    """All legs half a millisecond late: that is what is found."""
    arm = measured([answer(number, 0.5) for number in range(1, 21)])
    assert len(arm.rows.times_ms["100_percent"]) == 18  # the first tenth is not counted
    assert list(arm.added_ms) == pytest.approx([0.5] * 180)
    assert list(arm.added_alone_ms) == pytest.approx([0.5] * 18)
    assert arm.extra_load == arm.mistaken == arm.incomplete == 0


def test_a_query_whose_number_is_not_sure_tells_nothing_of_what_was_added() -> None:
    """Its times count all the same."""
    arm = measured([answer(number + 1, 0.0) for number in range(1, 21)])
    assert arm.mistaken > 9
    assert len(arm.rows.times_ms["100_percent"]) == 18
    assert len(arm.added_ms) == 10 * (18 - arm.mistaken)


def test_a_query_without_an_answer_counts_as_long_as_it_may_take() -> None:
    """Somebody waited."""
    arm = measured([{}, {}])
    assert arm.incomplete == 2
    assert list(arm.rows.times_ms["100_percent"]) == [live_arms.TIMEOUT_MS] * 2


def test_copies_that_were_dropped_unstarted_are_no_extra_load() -> None:
    """A hedge is, whether it won or not."""
    whole = answer(1, 0.0)
    whole["trace"][0]["attempts"] += [
        attempt(0, URLS[1], 5.0, kind="tied", fate="cancelled", reason="twin_began"),
        attempt(2, URLS[1], 5.0, kind="tied", fate="in_flight", service_ms=None),
        attempt(1, URLS[0], 5.0, kind="hedge", fate="lost"),
    ]
    arm = measured([whole])
    assert (arm.legs, arm.extra, arm.hedge_wins) == (11, 1, 0)


def test_the_slow_query_is_the_one_that_hedging_helped() -> None:
    """Of those near the 95th percentile of the first arm."""

    def taken(times_ms: list[float]) -> live_arms.Measured:
        phases = [{"phase": "search", "started_ms": 0.0, "decided_ms": ms} for ms in times_ms]
        return live_arms.Measured(Rows(1), Rows(1), answers=[{"trace": [p]} for p in phases])

    off = [float(ms) for ms in range(100)]
    arms = {"off": taken(off), "adaptive": taken([*off[:93], 10.0, *off[94:]])}
    found = live_arms.slow_query(arms, ("off", "adaptive"))
    assert found is not None
    assert found.number == 94
    assert {name: phase["decided_ms"] for name, phase in found.phases.items()} == {
        "off": 93.0,
        "adaptive": 10.0,
    }
    assert live_arms.slow_query({"off": taken([]), "adaptive": taken([])}, ("off", "adaptive")) is (
        None
    )


def test_a_live_result_says_what_the_system_adds() -> None:
    """In a table of its own, with the rows of what was injected alone."""
    arm = measured([answer(number, 0.5) for number in range(1, 40)])
    shown = table.of_measured(arm)
    result = table.Result(
        how="live",
        leaves=10,
        replicas=2,
        seeds=1,
        arms=dict.fromkeys(("off", "adaptive"), shown),
        added=table.added_by_the_system(arm),
    )
    console = Console(width=160, record=True)
    table.show(result, console)
    text = console.export_text()
    assert "what the live system adds" in text
    assert "off, injected alone" in text
    assert "adaptive leaves 1.00/1.00/1.00" in text
