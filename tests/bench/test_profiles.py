"""How long simulated leaves take."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bench.simulation.profiles import PROFILES, TICKS_PER_S, Draws

TAIL = PROFILES["tail-at-scale"]


def test_what_a_leg_takes_depends_on_seed_query_copy_and_leg_alone() -> None:
    """Whatever was drawn before, and whether or not it is kept."""
    one, other = Draws(TAIL, 10, seed=1), Draws(TAIL, 10, seed=1, keep=True)
    one.legs_s(4, 1)
    for _ in range(2):
        assert list(one.legs_s(3, 0)) == list(other.legs_s(3, 0))
        assert one.alone_s(3, 0) == other.alone_s(3, 0)
    drawn = [list(one.legs_s(query, copy)) for query in (3, 4) for copy in (0, 1)]
    drawn.append(list(Draws(TAIL, 10, seed=2).legs_s(3, 0)))
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


def test_copies_share_the_component_of_their_query() -> None:
    """With nothing but a component that all legs have whole, all attempts take as long."""
    whole = replace(TAIL, base_median_ms=1e-9, component_share_power=1e-9, stall_share=0.0)
    draws = Draws(whole, 5, seed=1)
    for query in range(3):
        assert len({*draws.legs_s(query, 0), *draws.legs_s(query, 1)}) == 1
    assert draws.legs_s(0, 0) != draws.legs_s(1, 0)


def test_a_dear_query_is_slow_on_all_leaves() -> None:
    """Every leg of it, copies included, takes so many times as long."""
    dear = replace(TAIL, stall_share=0.0, slow_query_share=1.0, slow_query_factor=5.0)
    usual = replace(dear, slow_query_share=0.0)
    for copy in (0, 1):
        slow_s, usual_s = (Draws(one, 50, seed=1).legs_s(3, copy) for one in (dear, usual))
        assert list(slow_s) == pytest.approx([5.0 * leg_s for leg_s in usual_s], abs=0.0005)


def test_calm_traffic_differs_from_a_storm_in_its_dear_queries_alone() -> None:
    """Leg by leg the same, but for the queries that are dear; without any there is no storm."""
    storm = Draws(PROFILES["slow-queries"], 20, seed=1)
    calm = storm.calm()
    assert calm is not None
    assert calm.calm() is None
    same = [list(storm.legs_s(query, 0)) == list(calm.legs_s(query, 0)) for query in range(500)]
    assert 0.86 < sum(same) / 500 < 0.94


def test_a_stall_is_long() -> None:
    """A leg that stalls takes at least as long as the shortest stall."""
    stalled = replace(TAIL, stall_share=1.0)
    assert min(stalled.legs_s(Random("legs"), 0.0, 1000)) >= 0.024


def test_times_are_whole_ticks() -> None:
    """What ends together comes together."""
    legs_s = TAIL.legs_s(Random("legs"), 0.010, 1000)
    assert all(leg_s * TICKS_PER_S == pytest.approx(round(leg_s * TICKS_PER_S)) for leg_s in legs_s)


@pytest.mark.parametrize(
    ("name", "value"),
    [("stall_share", 1.1), ("bad_query_share", -0.1), ("base_median_ms", 0.0), ("stall_alpha", 0)],
)
def test_a_parameter_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    """A profile that exists is legal."""
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        replace(TAIL, **{name: value})  # type: ignore[arg-type]
