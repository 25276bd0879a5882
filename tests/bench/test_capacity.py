"""Throughput against latency: where hedging stops paying, and what a small simulated run says."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.experiments import capacity

PLAN = replace(capacity.SIMULATED, loads=(0.3, 1.2), rounds=2, turn_s=6.0, closed=300)


@pytest.fixture(name="result", scope="module")
def result_fixture() -> capacity.Result:
    """A load at which there is time for hedges, and one at which there is none."""
    return capacity.simulate(PLAN)


def said(result: capacity.Result) -> str:
    """What is printed."""
    text = StringIO()
    capacity.show(result, Console(file=text, width=140))
    return text.getvalue()


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([(0.1, 0.6), (0.5, 0.25), (0.7, -0.15)], 0.6),
        ([(0.1, 0.6), (0.5, 0.05), (0.7, 0.4)], 0.5),
        ([(0.1, 0.0), (0.5, 0.4)], 0.1),
        ([(0.1, 0.6), (0.5, 0.2)], None),
        ([(0.1, 0.6)], None),
    ],
)
def test_hedging_stops_paying_where_its_gain_is_gone_first(
    gains: list[tuple[float, float]], expected: float | None
) -> None:
    """On the line between two loads; at the lowest where it does not pay there; None if always."""
    assert capacity.stops_paying(gains) == (None if expected is None else pytest.approx(expected))


def test_both_arms_get_the_same_requests_and_answer_all(result: capacity.Result) -> None:
    """At each load, however late; hedges keep to their budget."""
    for one in result.loads:
        off, adaptive = one.arms["off"], one.arms["adaptive"]
        assert off.summary.requests == adaptive.summary.requests
        assert set(off.summary.fates) == set(adaptive.summary.fates) == {"complete"}
        assert off.extra_load == 0.0
        assert 0.0 < adaptive.extra_load < 0.10


def test_a_fleet_answers_what_it_is_asked_until_it_cannot(result: capacity.Result) -> None:
    """Below capacity all of it; above, capacity, and the wait grows."""
    calm, full = result.loads
    for name in ("off", "adaptive"):
        assert calm.answered_per_s[name] == pytest.approx(calm.offered_per_s, rel=0.25)
        assert full.answered_per_s[name] < 1.1 * result.capacity_per_s
        assert full.arms[name].figures_ms["p50"].value > 3 * calm.arms[name].figures_ms["p50"].value


def test_hedging_pays_while_there_is_time_for_it(result: capacity.Result) -> None:
    """And what stops it is in the table, in words, and in the picture."""
    calm, full = result.loads
    assert calm.gain > 0.2 > full.gain
    assert said(msgspec.structs.replace(result, stops_at=0.87)).count("87%") == 2
    assert "pays up to 120%" in said(msgspec.structs.replace(result, stops_at=None))


@pytest.mark.parametrize("stops_at", [0.87, None])
def test_the_picture_is_drawn(
    result: capacity.Result, stops_at: float | None, tmp_path: Path
) -> None:
    """With a line where hedging stops paying, if it does."""
    path = tmp_path / "capacity.png"
    capacity.draw(msgspec.structs.replace(result, stops_at=stops_at), path, "caption")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_run(result: capacity.Result) -> None:
    """To the last digit."""
    assert capacity.simulate(PLAN) == result
