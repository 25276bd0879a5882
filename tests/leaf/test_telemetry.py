"""What a leaf counts: every leg once, under one outcome."""

from __future__ import annotations

from leaf.pulse import Pulse
from leaf.telemetry import Ledger, Uncounted


def test_answers_and_refusals_are_told_apart() -> None:
    """A cancelled leg that was begun is wasted work, one that waited is not."""
    ledger = Ledger(Pulse())
    ledger.answered("search", [(0, 5, 10, 1, [1.0], [1])], heard=True)
    ledger.answered("fetch", [(1, 5, 100, [])], heard=False)
    ledger.refused("search", [(2, 5, 0, "cancelled"), (3, 5, 1000, "cancelled"), (4, 5, 0, "busy")])
    ledger.abandoned("lookup", 3)
    assert ledger.legs == {
        ("search", "answered"): 1,
        ("fetch", "abandoned_running"): 1,
        ("search", "cancelled"): 1,
        ("search", "cancelled_running"): 1,
        ("search", "busy"): 1,
        ("lookup", "abandoned_queued"): 3,
    }
    assert ledger.wasted_us == 1100
    assert sum(ledger.queue.counts) == 5
    assert sum(ledger.service.counts) == 3


def test_a_leaf_that_is_not_watched_counts_no_leg() -> None:
    """Whatever becomes of legs and frames."""
    ledger = Uncounted(Pulse())
    ledger.answered("search", [(0, 5, 10, 1, [1.0], [1])], heard=False)
    ledger.refused("search", [(2, 5, 7, "cancelled")])
    ledger.abandoned("lookup", 3)
    ledger.frame("in", 100)
    counted = [ledger.legs, ledger.frames, ledger.wasted_us, sum(ledger.queue.counts)]
    assert not any(counted)
