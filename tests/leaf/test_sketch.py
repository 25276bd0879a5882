"""Counting what is different: close to the truth, and the same however the parts are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf.sketch import REGISTERS, STANDARD_ERROR, estimate, hashed, merged, sketch

HASHES = [hashed(i) for i in range(100_000)]


@pytest.mark.parametrize("count", [0, 1, 100, 5_000, 20_000, 50_000, 100_000])
def test_an_estimate_is_within_four_standard_errors(count: int) -> None:
    """From nothing to many times the number of registers."""
    assert abs(estimate(sketch(HASHES[:count])) - count) <= 4 * STANDARD_ERROR * count


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1)))
def test_a_merged_sketch_is_that_of_all_values(left: list[int], right: list[int]) -> None:
    """Whatever overlaps."""
    assert merged(sketch(left), sketch(right)) == sketch([*left, *right])
    assert len(sketch(left)) == REGISTERS


def test_hashes_tell_values_apart() -> None:
    """Neighbours too, and integers without losing a digit."""
    values: list[str | int | float | bool] = [2**63 - 1, 2**63 - 2, 0.1, "a", "b", True, False, ""]
    assert len({hashed(value) for value in values}) == len(values)
    assert len(set(HASHES)) == len(HASHES)
