"""The published figures agree with each other where arithmetic binds them."""

from __future__ import annotations

import pytest

from bench import published
from bench.published import Published

SETS = [value for value in vars(published).values() if isinstance(value, Published)]


@pytest.mark.parametrize("figures", SETS, ids=lambda one: one.source[:30])
def test_every_figure_has_a_source(figures: Published) -> None:
    """Who published it, and rows that are not empty."""
    assert figures.source
    assert all(figures.rows.values())


def test_there_are_all_sets() -> None:
    """Nine, for the experiments that reproduce them."""
    assert len(SETS) == 9


def test_percentiles_ascend() -> None:
    """Within each row that has several."""
    for figures in SETS:
        for row in figures.rows.values():
            named = ((name[1:], value) for name, value in row.items() if name.startswith("p"))
            numbers = [(float(p), value) for p, value in named if p.replace(".", "").isdigit()]
            values = [value for _, value in sorted(numbers)]
            assert values == sorted(values)


def test_the_shares_of_a_fan_out_follow_from_those_of_its_legs() -> None:
    """One minus the probability that no leg is slow."""
    for leaves, row in published.FAN_OUT.rows.items():
        assert 1 - (1 - row["leg_slow"]) ** int(leaves) == pytest.approx(row["slow"], abs=0.0015)


def test_a_figure_that_is_not_there_is_none() -> None:
    """By row and by name."""
    table = published.LEAVES_IN_A_FAN_OUT
    assert table.figure("100_percent", "p99") == 140
    assert table.figure("first_leaf", "p99") is None
    assert table.figure("100_percent", "p99.9") is None
