"""How the leaf's queue counts work: who would be late, who is dear, what batch may take."""

from __future__ import annotations

import pytest

from leaf.admission import BATCH_TURN, PATIENCE, SERVICE_START_S
from tests.leaf.admission_queues import group, numbers, queue


def test_batch_gets_its_share_of_the_work_however_dear_it_is() -> None:
    """Batch legs that take twenty times as long as the others get no more of the time."""
    waiting = queue(legs_max=10_000, workers=1)
    waiting.offer(group(0, 4_000, deadline_s=1e6), now=0.0)
    waiting.offer(group(4_000, 4_000, deadline_s=1e6, priority="batch"), now=0.0)
    took_s = {"interactive": 0.0, "batch": 0.0}
    for _ in range(2_000):
        bite = waiting.take(1, now=0.0).bite
        assert bite is not None
        leg_s = 0.002 if bite.group.priority == "batch" else 0.0001
        waiting.finished(bite.group, 1, leg_s)
        took_s[bite.group.priority] += leg_s
    assert took_s["batch"] * BATCH_TURN == pytest.approx(sum(took_s.values()), rel=0.06)


def test_what_could_not_be_begun_in_time_is_busy() -> None:
    """Legs that the work ahead would keep for more than half of their time are turned away at
    once, and those with more time are not.
    """
    waiting = queue(legs_max=10_000, workers=2)
    in_time = int(PATIENCE * 0.1 * 2 / SERVICE_START_S)
    assert waiting.offer(group(0, 3_000, deadline_s=0.1), now=0.0).admitted == in_time
    refused = waiting.offer(group(3_000, 16, deadline_s=0.1), now=0.0)
    assert refused.admitted == 0
    assert refused.retry_s > 0
    assert waiting.offer(group(3_016, 16, deadline_s=1.0), now=0.0).admitted == 16


def test_what_waits_with_a_later_deadline_is_in_nobodys_way() -> None:
    """Who is in a hurry goes first, so the others' work is not counted against him."""
    waiting = queue(legs_max=10_000)
    waiting.offer(group(0, 5_000, deadline_s=10.0), now=0.0)
    assert waiting.offer(group(5_000, 16, deadline_s=0.1), now=0.0).admitted == 16
    assert waiting.offer(group(5_016, 16, deadline_s=0.1, priority="batch"), now=0.0).admitted == 0


def test_a_wrong_estimate_is_found_out() -> None:
    """After work that took seconds a leg, whoever finds a free worker is let in: so it is seen
    that work takes less.
    """
    waiting = queue(legs_max=1_000, workers=2)
    slow = group(0, 40, deadline_s=1e6)
    waiting.offer(slow, now=0.0)
    for _ in range(40):
        waiting.take(1, now=0.0)
        waiting.finished(slow, 1, took_s=5.0)
    legs = 40
    for _ in range(400):
        quick = group(legs, 16, deadline_s=0.1)
        admitted = waiting.offer(quick, now=0.0).admitted
        assert admitted >= waiting.workers
        legs += 16
        for _ in range(admitted):
            waiting.take(1, now=0.0)
            waiting.finished(quick, 1, took_s=1e-4)
    assert waiting.offer(group(legs, 16, deadline_s=0.1), now=0.0).admitted == 16


def test_a_dear_query_lets_later_ones_pass_between_its_units() -> None:
    """Once it is known to be dear, queries that come later go first, for some time."""
    waiting = queue(workers=1)
    waiting.offer(group(0, 20), now=0.0)
    for _ in range(10):
        bite = waiting.take(1, now=0.0).bite
        assert bite is not None
        waiting.finished(bite.group, 1, took_s=1e-4)
    dear = group(20, 4, deadline_s=9.0)
    waiting.offer(dear, now=0.0)
    assert numbers(waiting.take(1, now=0.0).bite) == [20]
    waiting.finished(dear, 1, took_s=0.01)
    waiting.offer(group(24, 1, deadline_s=9.05), now=0.05)
    waiting.offer(group(25, 1, deadline_s=9.5), now=0.5)
    assert numbers(waiting.take(1, now=0.5).bite) == [24]
    assert numbers(waiting.take(3, now=0.5).bite) == [21, 22, 23]


def test_a_dear_query_still_expires_at_its_deadline() -> None:
    """What set it back changes nothing about when it is too late."""
    waiting = queue(workers=1)
    dear = group(0, 4, deadline_s=1.0)
    waiting.offer(dear, now=0.0)
    waiting.take(1, now=0.0)
    waiting.finished(dear, 1, took_s=0.5)
    waiting.offer(group(4, 1, deadline_s=2.0), now=0.5)
    taken = waiting.take(1, now=1.0)
    assert [numbers(bite) for bite in taken.expired] == [[1, 2, 3]]
    assert numbers(taken.bite) == [4]
