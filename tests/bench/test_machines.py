"""What befalls simulated leaves."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from bench.simulation.machines import Machines, Speed, episodes

SLOW = Machines(1, 0, 0.5, spell_every_s=10.0, spell_s=2.0, spell_factor=4.0)


def test_episodes_follow_one_another_and_last_as_long_as_they_should() -> None:
    """In order, apart, and in the long run with the means that were asked for."""
    drawn = list(itertools.islice(episodes(Random("spells"), 10.0, 2.0), 5000))
    ends = [0.0, *(to_s for _, to_s in drawn)]
    assert all(before < begins < to for before, (begins, to) in zip(ends, drawn, strict=False))
    assert sum(to - begins for begins, to in drawn) / 5000 == pytest.approx(2.0, rel=0.05)
    assert ends[-1] / 5000 == pytest.approx(12.0, rel=0.05)


def test_what_never_comes_has_no_episode() -> None:
    """Without a rate there are none."""
    assert list(episodes(Random("spells"), float("inf"), 2.0)) == []


def test_work_takes_longer_in_a_spell_and_only_there() -> None:
    """Before, across its beginning, within, across its end, and over a whole spell."""
    begins_s, ends_s = next(episodes(Random("spells"), 10.0, 2.0))

    def end_of(work_s: float, now: float) -> float:
        return Speed(4.0, episodes(Random("spells"), 10.0, 2.0)).end_of(work_s, now)

    length_s = ends_s - begins_s
    assert end_of(0.1, begins_s - 0.2) == pytest.approx(begins_s - 0.1)
    assert end_of(0.1, begins_s - 0.08) == pytest.approx(begins_s + 0.02 * 4.0)
    assert end_of(0.01, begins_s) == pytest.approx(begins_s + 0.04)
    assert end_of(0.1, ends_s - 0.04) == pytest.approx(ends_s + 0.09)
    assert end_of(length_s / 4.0 + 0.2, begins_s - 0.1) == pytest.approx(ends_s + 0.1)
    assert Speed(4.0, iter([])).end_of(0.1, 5.0) == pytest.approx(5.1)


def test_the_stretch_is_what_spells_do_on_average() -> None:
    """So much work, begun at once and done in a row, takes so much longer."""
    speed = Speed(4.0, episodes(Random("spells"), 10.0, 2.0))
    assert speed.end_of(50_000.0, 0.0) / 50_000.0 == pytest.approx(SLOW.stretch, rel=0.03)
    assert Machines(1, 0, 0.5).stretch == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("workers", 0), ("utilisation", 0.0), ("error_share", 1.5), ("spell_factor", 0.5)],
)
def test_machines_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    """Machines that exist can be simulated."""
    given = {"workers": 1, "queue_legs": 0, "utilisation": 0.5, name: value}
    with pytest.raises(ValueError, match=f"^{name} must be from"):
        Machines(**given)  # type: ignore[arg-type]
