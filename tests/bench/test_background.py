"""Background work of simulated leaves: equal amounts, at random or in step."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bench.simulation.background import Background, Pauses
from bench.simulation.profiles import PROFILES, Draws

EVERY_SECOND = Background(1.0, 0.1, in_step=True)


def stepped(work_s: float, now: float) -> float:
    """The same in small steps: pauses from 0.3 to 0.4 of every second."""
    step_s, took_s = 0.001, 0.0
    while work_s > step_s / 2:
        if not 0.3 - 1e-9 <= (now + took_s) % 1.0 < 0.4 - 1e-9:
            work_s -= step_s
        took_s += step_s
    return took_s


@pytest.mark.parametrize("now", [0.0, 0.299, 0.3, 0.35, 0.4, 0.7, 5.999])
@pytest.mark.parametrize("work_s", [0.001, 0.2, 0.89, 0.91, 2.5])
def test_work_takes_as_long_as_it_is_and_the_pauses_in_it(work_s: float, now: float) -> None:
    """Whether it begins before, in or after one, and however many it meets."""
    took_s = Pauses(0.3, 1.0, 0.1).took_s(work_s, now)
    assert took_s == pytest.approx(stepped(work_s, now), abs=0.0025)


def test_leaves_in_step_pause_together_and_others_whenever() -> None:
    """In step within the skew of clocks; at random all over the period."""

    def paused(background: Background, now: float) -> int:
        leaves = [background.of(Random(f"leaf-{number}")) for number in range(200)]
        return sum(leaf.took_s(0.001, now) > 0.0015 for leaf in leaves)

    assert [paused(EVERY_SECOND, now) for now in (7.5, 7.01, 7.9)] == [0, 200, 0]
    at_random = replace(EVERY_SECOND, in_step=False)
    assert all(8 <= paused(at_random, now) <= 35 for now in (7.5, 7.01, 7.9))


def test_all_leaves_do_as_much_background_work_either_way() -> None:
    """Over many moments a short request waits equally often."""
    for in_step in (True, False):
        leaf = replace(EVERY_SECOND, in_step=in_step).of(Random("leaf"))
        waited = sum(leaf.took_s(0.0001, now / 997.0) > 0.0002 for now in range(9970))
        assert waited / 9970 == pytest.approx(0.1, abs=0.005)


def test_a_leafs_pauses_depend_on_seed_and_name_alone() -> None:
    """Policies compared under one seed meet the same pauses; without any, work is undisturbed."""
    calm = PROFILES["calm"]
    random = replace(calm, background=replace(EVERY_SECOND, in_step=False))
    one, other = Draws(random, 4, seed=1), Draws(random, 4, seed=1)
    other.took_s("leaf-2-0", 0.01, 3.0)
    moments = [now / 50 for now in range(50)]
    for name in ("leaf-0-0", "leaf-0-1"):
        assert [one.took_s(name, 0.01, now) for now in moments] == [
            other.took_s(name, 0.01, now) for now in moments
        ]
    assert [one.took_s("leaf-0-0", 0.01, now) for now in moments] != [
        one.took_s("leaf-0-1", 0.01, now) for now in moments
    ]
    assert Draws(calm, 4, seed=1).took_s("leaf-0-0", 0.01234567, 3.0) == 0.01234567


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"period_s": 0.0}, "period_s"),
        ({"lasts_s": 0.0}, "lasts_s"),
        ({"lasts_s": 1.0}, "lasts_s"),
        ({"skew_s": -0.1}, "skew_s"),
        ({"skew_s": 1.0}, "skew_s"),
    ],
)
def test_background_work_out_of_range_is_refused_by_name(
    change: dict[str, float], named: str
) -> None:
    """What exists can be simulated."""
    with pytest.raises(ValueError, match=f"^{named} must be"):
        replace(EVERY_SECOND, **change)  # type: ignore[arg-type]


def test_leaves_with_queues_have_troubles_of_their_own() -> None:
    """A profile has the one or the other."""
    with pytest.raises(ValueError, match="without queues"):
        replace(PROFILES["queues"], background=EVERY_SECOND)
