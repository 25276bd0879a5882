"""Comparing a page with the right one."""

from __future__ import annotations

import pytest

from bench.client import Answer, Hit
from bench.experiments.agree import difference, score_error

WANTED = Answer("complete", (Hit("a", 2.0), Hit("b", 1.0)), 7)


def test_equal_pages_have_no_difference() -> None:
    """Rounding is no difference, and is measured."""
    found = Answer("complete", (Hit("a", 2.0), Hit("b", 1.0005)), 7)
    assert difference(found, WANTED) == ""
    assert score_error(found, WANTED) == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("found", "how"),
    [
        (Answer("partial", WANTED.hits, 7, "shard 3"), "partial: shard 3"),
        (Answer("complete", WANTED.hits, 6), "total 6, not 7"),
        (Answer("complete", (Hit("b", 2.0), Hit("a", 1.0)), 7), "place 1: b, not a"),
        (Answer("complete", WANTED.hits[:1], 7), "1 hits, not 2"),
        (Answer("complete", (Hit("a", 2.0), Hit("b", 1.1)), 7), "scores differ by 0.1"),
    ],
)
def test_the_first_difference_is_said(found: Answer, how: str) -> None:
    """Fate, total, order, length and scores, in this order."""
    assert difference(found, WANTED).startswith(how)
