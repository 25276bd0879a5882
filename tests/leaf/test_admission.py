"""The leaf's queue: who is served next, who is turned away, and that no leg is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from leaf.admission import (
    BATCH_TURN,
    BITE_LEGS_MAX,
    RETRY_S_MAX,
    AdmissionQueue,
    Depth,
)
from leaf.lines import STALE_GROUPS_MIN, Bite, Group
from leaf.protocol import Priority
from tests.leaf.admission_queues import group, numbers, queue


def test_legs_come_out_in_the_order_of_their_shards() -> None:
    """One group's legs are handed out in order, as many as asked for."""
    waiting = queue()
    waiting.offer(group(10, 5), now=0.0)
    assert numbers(waiting.take(2, now=0.0).bite) == [10, 11]
    assert numbers(waiting.take(9, now=0.0).bite) == [12, 13, 14]
    assert waiting.take(1, now=0.0).bite is None


def test_the_earliest_deadline_goes_first() -> None:
    """Within a class it is the deadline that counts, and for equal ones who came first."""
    waiting = queue()
    for first, deadline_s in ((0, 3.0), (1, 1.0), (2, 2.0), (3, 1.0)):
        waiting.offer(group(first, 1, deadline_s=deadline_s), now=0.0)
    assert [numbers(waiting.take(1, now=0.0).bite) for _ in range(4)] == [[1], [3], [2], [0]]


def test_interactive_goes_before_batch() -> None:
    """A batch leg with an earlier deadline still waits for an interactive one."""
    waiting = queue()
    waiting.offer(group(0, 1, deadline_s=1.0, priority="batch"), now=0.0)
    waiting.offer(group(1, 1, deadline_s=9.0), now=0.0)
    assert numbers(waiting.take(1, now=0.0).bite) == [1]


@pytest.mark.parametrize("legs_a_take", [1, 3, 16])
def test_batch_is_never_starved(legs_a_take: int) -> None:
    """While both classes wait, batch gets its stated share of the legs, no more and no less."""
    waiting = queue(legs_max=10_000)
    waiting.offer(group(0, 4_000), now=0.0)
    waiting.offer(group(4_000, 4_000, priority="batch"), now=0.0)
    taken: Counter[str] = Counter()
    while sum(taken.values()) < 2_000:
        bite = waiting.take(legs_a_take, now=0.0).bite
        assert bite is not None
        taken[bite.group.priority] += len(bite.legs)
    assert taken["batch"] * BATCH_TURN == pytest.approx(2_000, rel=0.02)


def test_what_does_not_fit_is_busy() -> None:
    """An ask is admitted in part: its first legs wait, the others are turned away."""
    waiting = queue(legs_max=10)
    assert waiting.offer(group(0, 8), now=0.0).admitted == 8
    assert waiting.offer(group(8, 8), now=0.0).admitted == 2
    refused = waiting.offer(group(16, 8), now=0.0)
    assert refused.admitted == 0
    assert 0 < refused.retry_s <= RETRY_S_MAX


def test_batch_leaves_half_of_the_queue_to_interactive() -> None:
    """However much batch work is offered, interactive legs still find room."""
    waiting = queue(legs_max=10)
    assert waiting.offer(group(0, 100, priority="batch"), now=0.0).admitted == 5
    assert waiting.offer(group(100, 100), now=0.0).admitted == 5


def test_expired_legs_are_never_handed_out() -> None:
    """A deadline that has come is too late to start; other groups go on."""
    waiting = queue()
    waiting.offer(group(0, 3, deadline_s=1.0), now=0.0)
    waiting.offer(group(3, 2, deadline_s=2.0), now=0.0)
    taken = waiting.take(9, now=1.0)
    assert [numbers(bite) for bite in taken.expired] == [[0, 1, 2]]
    assert numbers(taken.bite) == [3, 4]


def test_expired_legs_make_room_before_anyone_is_turned_away() -> None:
    """A queue full of legs past their deadline is not full."""
    waiting = queue(legs_max=4)
    waiting.offer(group(0, 4, deadline_s=1.0), now=0.0)
    offered = waiting.offer(group(4, 4), now=1.0)
    assert offered.admitted == 4
    assert [numbers(bite) for bite in offered.expired] == [[0, 1, 2, 3]]


def test_a_cancelled_leg_leaves_the_queue() -> None:
    """What was cancelled while it waited is never worked on, and its place is free again."""
    waiting = queue(legs_max=4)
    waiting.offer(group(0, 4), now=0.0)
    withdrawn = waiting.cancel(1, [1, 3, 1])
    assert [numbers(bite) for bite in withdrawn] == [[1], [3]]
    assert waiting.offer(group(4, 4), now=0.0).admitted == 2
    assert numbers(waiting.take(9, now=0.0).bite) == [0, 2]


def test_a_leg_in_hand_is_marked_when_it_is_cancelled() -> None:
    """Whoever works on the group sees which of its legs nobody waits for any more."""
    waiting = queue()
    asked = group(0, 3)
    waiting.offer(asked, now=0.0)
    waiting.take(2, now=0.0)
    assert [numbers(bite) for bite in waiting.cancel(1, [1, 2])] == [[2]]
    assert asked.revoked == {1}


def test_a_leg_in_hand_goes_on_where_only_those_that_wait_are_to_go() -> None:
    """Its twin has begun, but so has it."""
    waiting = queue()
    asked = group(0, 3)
    waiting.offer(asked, now=0.0)
    waiting.take(2, now=0.0)
    assert [numbers(bite) for bite in waiting.cancel(1, [1, 2], taken_too=False)] == [[2]]
    assert asked.revoked == set()


def test_a_cancel_of_an_unknown_leg_changes_nothing() -> None:
    """Answers and cancels cross on the wire; another channel's legs are not ours to cancel."""
    waiting = queue()
    waiting.offer(group(5, 2), now=0.0)
    assert waiting.cancel(1, [4, 7, 2**70, -1]) == []
    assert waiting.cancel(2, [5]) == []
    assert waiting.depth() == Depth(interactive=2, batch=0, running=0)


def test_a_lost_connection_takes_its_legs_along() -> None:
    """Only the legs of that channel go; one that is running is finished."""
    waiting = queue()
    waiting.offer(group(0, 3), now=0.0)
    waiting.offer(group(0, 2, channel=2, deadline_s=20.0), now=0.0)
    taken = waiting.take(1, now=0.0).bite
    assert taken is not None
    assert [numbers(bite) for bite in waiting.drop_channel(1)] == [[1, 2]]
    waiting.finished(taken.group, 1, took_s=0.001)
    assert waiting.drop_channel(1) == []
    assert waiting.depth() == Depth(interactive=2, batch=0, running=0)


def test_legs_must_be_numbered_upwards() -> None:
    """An illegal offer raises and changes nothing."""
    waiting = queue()
    waiting.offer(group(5, 2), now=0.0)
    with pytest.raises(ValueError, match="leg 5 is offered after leg 5"):
        waiting.offer(group(5, 1), now=0.0)
    assert waiting.waiting == 2


def test_bites_are_small_where_work_is_dear() -> None:
    """A worker takes many cheap legs at once, one dear one, and leaves the others their share."""
    waiting = queue(legs_max=1_000)
    asked = group(0, 500)
    waiting.offer(asked, now=0.0)
    for _ in range(200):
        waiting.take(1, now=0.0)
        waiting.finished(asked, 1, took_s=1e-6)
    assert waiting.bite_legs() == BITE_LEGS_MAX
    for _ in range(200):
        waiting.take(1, now=0.0)
        waiting.finished(asked, 1, took_s=0.01)
    assert waiting.bite_legs() == 1
    assert waiting.bites() == 100


def test_a_few_dear_legs_are_shared_out() -> None:
    """No worker takes two legs while another one has none."""
    few = queue(workers=4)
    few.offer(group(0, 5), now=0.0)
    assert few.bite_legs() == 2
    assert few.bites() == 3


def test_a_little_work_is_not_shared_out() -> None:
    """Legs that are done before another worker could be woken are one worker's."""
    cheap = queue(workers=4)
    warm = group(0, 100)
    cheap.offer(warm, now=0.0)
    for _ in range(100):
        cheap.take(1, now=0.0)
        cheap.finished(warm, 1, took_s=2e-6)
    cheap.offer(group(100, 10), now=0.0)
    assert cheap.bites() == 1


def test_emptied_groups_do_not_pile_up() -> None:
    """A root that asks and cancels without end, while no worker is free, costs no memory."""
    waiting = queue()
    for first in range(10 * STALE_GROUPS_MIN):
        waiting.offer(group(first, 1), now=0.0)
        waiting.cancel(1, [first])
    assert len(waiting._interactive._groups) <= STALE_GROUPS_MIN + 1
    assert waiting._registers == {}


CHANNELS = (1, 2)
LEGS_MAX = 12


class EveryLegOnce(RuleBasedStateMachine):
    """Whatever happens, each offered leg comes out exactly once and the bound holds."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: AdmissionQueue[Group] = AdmissionQueue(workers=2, legs_max=LEGS_MAX)
        self.now = 0.0
        self.next_leg = dict.fromkeys(CHANNELS, 0)
        self.offered: set[tuple[int, int]] = set()
        self.out: Counter[tuple[int, int]] = Counter()
        self.in_hand: list[Bite[Group]] = []

    def leave(self, bites: Iterable[Bite[Group]]) -> None:
        for bite in bites:
            assert bite.legs
            self.out.update((bite.group.channel, leg) for leg in numbers(bite))

    @rule(
        channel=st.sampled_from(CHANNELS),
        legs=st.integers(1, 8),
        budget_s=st.sampled_from([0.0, 0.5, 2.0, 50.0]),
        priority=st.sampled_from(["interactive", "batch"]),
    )
    def offer(self, channel: int, legs: int, budget_s: float, priority: Priority) -> None:
        first = self.next_leg[channel]
        self.next_leg[channel] += legs
        asked = Group(channel, first, legs, self.now + budget_s, priority)
        offered = self.queue.offer(asked, self.now)
        self.leave(offered.expired)
        assert 0 <= offered.admitted <= legs
        self.offered.update((channel, first + leg) for leg in range(offered.admitted))

    @rule(legs_max=st.integers(1, 5))
    def take(self, legs_max: int) -> None:
        waiting = self.queue.waiting
        taken = self.queue.take(legs_max, self.now)
        self.leave(taken.expired)
        for bite in taken.expired:
            assert bite.group.deadline_s <= self.now
        if taken.bite is None:
            assert waiting == sum(len(bite.legs) for bite in taken.expired)
            return
        assert 0 < len(taken.bite.legs) <= legs_max
        assert taken.bite.group.deadline_s > self.now
        self.leave([taken.bite])
        self.in_hand.append(taken.bite)

    @rule(data=st.data(), channel=st.sampled_from(CHANNELS))
    def cancel(self, data: st.DataObject, channel: int) -> None:
        legs = data.draw(st.lists(st.integers(0, self.next_leg[channel] + 1), max_size=4))
        withdrawn = self.queue.cancel(channel, legs)
        self.leave(withdrawn)
        assert {leg for bite in withdrawn for leg in numbers(bite)} <= set(legs)

    @rule(channel=st.sampled_from(CHANNELS))
    def drop(self, channel: int) -> None:
        self.leave(self.queue.drop_channel(channel))

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        bite = self.in_hand.pop(data.draw(st.integers(0, len(self.in_hand) - 1)))
        self.queue.finished(bite.group, len(bite.legs), took_s=0.001)

    @rule(step_s=st.sampled_from([0.1, 1.0, 5.0]))
    def time_passes(self, step_s: float) -> None:
        self.now += step_s

    @invariant()
    def bound_holds(self) -> None:
        assert 0 <= self.queue.waiting <= LEGS_MAX

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.waiting == len(self.offered) - self.out.total()
        assert self.queue.depth().running == sum(len(bite.legs) for bite in self.in_hand)

    @invariant()
    def nothing_comes_out_twice(self) -> None:
        assert all(times == 1 for times in self.out.values())
        assert self.out.keys() <= self.offered

    def teardown(self) -> None:
        self.now += 1_000.0
        self.leave(self.queue.expire(self.now))
        assert self.out.keys() == self.offered
        for bite in self.in_hand:
            self.queue.finished(bite.group, len(bite.legs), took_s=0.001)
        assert self.queue._registers == {}
        assert self.queue.depth() == Depth(interactive=0, batch=0, running=0)


EveryLegOnce.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestEveryLegOnce = EveryLegOnce.TestCase
