"""The rows of the table."""

from __future__ import annotations

import pytest

from bench.rows import Cells, Rows


def test_a_query_adds_to_four_rows() -> None:
    """Its 95th leg of a hundred, its last, its first, and one of them."""
    rows = Rows(seed=1)
    rows.fan_out([float(leg) for leg in range(100, 0, -1)])
    times_ms = {name: list(values) for name, values in rows.times_ms.items()}
    assert times_ms["95_percent"] == [95.0]
    assert times_ms["100_percent"] == [100.0]
    assert times_ms["first_leaf"] == [1.0]
    assert 1.0 <= times_ms["random_leaf_in_fan_out"][0] <= 100.0
    assert times_ms["one_leaf"] == []


def test_the_random_leaf_is_any_of_them_and_the_same_for_the_same_seed() -> None:
    """So that arms are compared leg by leg."""
    one, other = Rows(seed=1), Rows(seed=1)
    for rows in (one, other):
        for _ in range(200):
            rows.fan_out([1.0, 2.0, 3.0, 4.0])
    drawn = one.times_ms["random_leaf_in_fan_out"]
    assert drawn == other.times_ms["random_leaf_in_fan_out"]
    assert set(drawn) == {1.0, 2.0, 3.0, 4.0}


def test_cells_have_their_intervals_and_empty_rows_are_left_out() -> None:
    """Of what nobody measured nothing is said."""
    rows = Rows(seed=1)
    for took_ms in range(1, 1001):
        rows.alone(float(took_ms))
    cells = Cells.of(rows.estimates())
    assert set(cells.rows) == {"one_leaf"}
    assert cells.rows["one_leaf"]["p50"] == pytest.approx(500.0)
    low, high = cells.intervals["one_leaf"]["p99"]
    assert high is not None
    assert low < 990.0 < high


def test_the_curve_rises() -> None:
    """From the quickest to the slowest."""
    rows = Rows(seed=1)
    for took_ms in (3.0, 1.0, 2.0):
        rows.fan_out([took_ms])
    values = [value for _, value in rows.curve("100_percent")]
    assert values == sorted(values)
    assert values[0] == 1.0
