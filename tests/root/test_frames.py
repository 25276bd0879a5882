"""What a tick has for a leaf, as frames: none too large, none lost."""

from __future__ import annotations

import pytest

from root.frames import ASKS_BYTES_MAX, Group, how_many_fit
from root.scatter import Ask


def group(body_bytes: int, legs: int = 1) -> Group:
    """Legs of an ask with a body of that size."""
    return Ask("search", "g", b"x" * body_bytes, 1.0), 0, list(range(legs))


@pytest.mark.parametrize(
    ("sizes", "fit"),
    [
        ([10], 1),
        ([10, 10, 10], 3),
        ([ASKS_BYTES_MAX + 1], 1),
        ([ASKS_BYTES_MAX + 1, 10], 1),
        ([ASKS_BYTES_MAX // 2, ASKS_BYTES_MAX // 4, ASKS_BYTES_MAX // 2], 2),
    ],
)
def test_asks_are_cut_into_frames_that_a_leaf_takes(sizes: list[int], fit: int) -> None:
    """As many as stay below the limit, and always one."""
    assert how_many_fit([group(size) for size in sizes]) == fit
