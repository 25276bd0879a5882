"""A request on its way: what its phases come to."""

from __future__ import annotations

import pytest

from bench.simulation.scripted_fleet import card
from root.gather import Outcome
from root.ledger import Tally
from root.pursuit import Phase, Pursuit
from root.race import Attempt
from root.requests import SearchRequest
from root.topology import View
from tests.root.conftest import leaves


@pytest.mark.parametrize(
    ("hints_ms", "after_s"), [([], 1), ([0], 1), ([1], 1), ([1000], 1), ([30, 1001], 2)]
)
def test_whoever_was_refused_is_told_to_wait_as_long_as_the_leaves_say(
    hints_ms: list[int], after_s: int
) -> None:
    """The longest of their hints, in whole seconds; one where they gave none."""
    (leaf,) = leaves(1)
    attempts = [
        Attempt(i, i, i, leaf, "primary", 0.0, fate="failed", reason="busy", retry_ms=ms)
        for i, ms in enumerate(hints_ms)
    ]
    view = View(card(4), ((leaf,),) * 4)
    pursuit = Pursuit(view, 0.0, 1.0, SearchRequest(q="a"))
    outcome = Outcome([], {}, {}, 0.5)
    pursuit.note(Phase("search", "search-short", outcome, attempts, 0.0, Tally()))
    assert pursuit.retry_after_s == after_s
