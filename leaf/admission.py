"""The leaf's queue: which leg is worked on next, and which is turned away.

The rules, in order:

1. The queue is bounded, counted in legs. What does not fit is refused ``busy`` at once. An
   ask may be admitted in part: its legs are separate races at the root, so turning away
   those that fit would help nobody, and an ask larger than the queue could never enter.
2. ``interactive`` goes before ``batch``, but while both wait, one leg in ``BATCH_TURN``
   is a batch leg, so batch is slow and never starved. Batch may fill only half the queue,
   so that it cannot keep interactive legs out.
3. Within a class the earliest deadline goes first, then the earlier offer.
4. A leg whose deadline has passed is never started; it comes out as expired. There is no
   guess at who *would* be late: an estimate that once went high would refuse everything
   and never see the sample that corrects it.
5. A cancelled leg leaves the queue. One that was taken already is marked, and whoever
   works on it sees the mark.

Every offered leg comes out exactly once: refused, taken, expired, cancelled, or dropped
with its channel.

Pure: no clock, no thread, no loop. Entries are groups (one ask's legs), so that offering
costs O(log groups) an ask and taking O(1) a leg. Times in seconds, any one clock.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from leaf.protocol import Priority

BATCH_TURN: Final = 8
"""One leg in eight is batch while both classes wait: batch advances at an eighth of the
leaf's speed, and an interactive leg is set back by at most that."""

BATCH_QUEUE_SHARE: Final = 0.5
"""How much of the queue batch legs may fill."""

QUEUE_LEGS_MAX: Final = 8_192
"""Default bound of the queue. At the 60 µs that a small shard takes, two workers empty it
in a quarter of a second; who waits longer than that is better off with another replica."""

BITE_LEGS_MAX: Final = 64
BITE_WORK_S: Final = 200e-6
"""A worker takes several cheap legs under one lock, but no more than this much work (by
the recent mean): so long a leg in hand cannot be taken by a worker that is free."""

SHARE_WORK_S: Final = 150e-6
"""Less work than this is not shared out: waking another thread costs 20 to 50 µs."""

SERVICE_WEIGHT: Final = 0.05
"""Weight of a new bite in the mean service time: about the last twenty bites count."""

SERVICE_START_S: Final = 100e-6
"""The mean before anything was measured: a two-word search on a shard of 500 documents."""

SERVICE_S_MIN: Final = 1e-6
"""The finest time that is told apart, and more than nothing."""

RETRY_S_MIN: Final = 0.001
RETRY_S_MAX: Final = 1.0
"""Bounds of the hint with ``busy``: below is another replica's business, above a guess."""

STALE_GROUPS_MIN: Final = 64
"""Emptied groups stay in the heap up to this many before it is worth sweeping them out."""


class Group:
    """The legs of one ask while the leaf has them. Subclasses add the work itself.

    ``channel`` identifies the connection and ``first`` is the number of its first leg there;
    inside the leaf a leg is named by its index in the group. ``waiting`` and ``running`` count
    legs; ``revoked`` holds the indices cancelled after they were taken: the queue adds to it,
    whoever works on the group looks. Only the queue writes these.
    """

    __slots__ = (
        "channel",
        "deadline_s",
        "first",
        "legs",
        "next",
        "priority",
        "revoked",
        "running",
        "waiting",
        "withdrawn",
    )

    def __init__(
        self, channel: int, first: int, legs: int, deadline_s: float, priority: Priority
    ) -> None:
        self.channel = channel
        self.first = first
        self.legs = legs
        self.deadline_s = deadline_s
        self.priority: Priority = priority
        self.next = 0
        self.waiting = 0
        self.running = 0
        self.revoked: set[int] = set()
        self.withdrawn: set[int] = set()

    def cut(self, legs_max: int) -> Sequence[int]:
        """Take the next ``legs_max`` waiting legs (or what is left) off the group."""
        start, last = self.next, self.legs
        if not self.withdrawn:
            self.next = stop = min(start + legs_max, last)
            self.waiting -= stop - start
            return range(start, stop)
        cut: list[int] = []
        while start < last and len(cut) < legs_max:
            if start not in self.withdrawn:
                cut.append(start)
            start += 1
        self.next = start
        self.waiting -= len(cut)
        return cut

    def withdraw(self, leg: int) -> bool:
        """Cancel one leg; True when it still waited. A leg in hand is marked as revoked."""
        if leg < self.next:
            self.revoked.add(leg)
            return False
        if leg in self.withdrawn:
            return False
        self.withdrawn.add(leg)
        self.waiting -= 1
        return True


GroupT = TypeVar("GroupT", bound=Group)


class Bite(NamedTuple, Generic[GroupT]):
    """Some legs of one group: ``legs`` are indices, ascending."""

    group: GroupT
    legs: Sequence[int]


class Offered(NamedTuple, Generic[GroupT]):
    """The first ``admitted`` legs wait; the others are busy, with a hint when to retry.

    ``expired`` are legs of other groups that had to go before room was refused.
    """

    admitted: int
    retry_s: float
    expired: Sequence[Bite[GroupT]]


class Taken(NamedTuple, Generic[GroupT]):
    """What a worker is to do now (None: nothing waits), and what expired unstarted."""

    bite: Bite[GroupT] | None
    expired: Sequence[Bite[GroupT]]


@dataclass(frozen=True, slots=True)
class Depth:
    """How full the queue is, in legs; ``running`` have been taken and not finished."""

    interactive: int
    batch: int
    running: int


class _Line(Generic[GroupT]):
    """The groups of one priority, earliest deadline first."""

    __slots__ = ("groups", "waiting")

    def __init__(self) -> None:
        self.groups: list[tuple[float, int, GroupT]] = []
        self.waiting = 0

    def push(self, group: GroupT, sequence: int) -> None:
        self._sweep()
        heapq.heappush(self.groups, (group.deadline_s, sequence, group))
        self.waiting += group.waiting

    def _sweep(self) -> None:
        """Drop emptied groups when they must be more than half: each other has a waiting leg."""
        if len(self.groups) > STALE_GROUPS_MIN + 2 * self.waiting:
            self.groups = [entry for entry in self.groups if entry[2].waiting]
            heapq.heapify(self.groups)

    def head(self) -> GroupT | None:
        """Return the group to serve next, passing over those that cancels have emptied."""
        groups = self.groups
        while groups:
            group = groups[0][2]
            if group.waiting:
                return group
            heapq.heappop(groups)
        return None

    def cut(self, group: GroupT, legs_max: int) -> Sequence[int]:
        legs = group.cut(legs_max)
        self.waiting -= len(legs)
        return legs


class _Register(Generic[GroupT]):
    """The groups of one channel by the number of their first leg, so that cancels find them."""

    __slots__ = ("firsts", "groups")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.groups: list[GroupT] = []

    def add(self, group: GroupT) -> None:
        if self.firsts and group.first <= self.firsts[-1]:
            message = f"leg {group.first} is offered after leg {self.firsts[-1]}"
            raise ValueError(message)
        self.firsts.append(group.first)
        self.groups.append(group)

    def find(self, leg: int) -> GroupT | None:
        at = bisect_right(self.firsts, leg) - 1
        if at < 0 or leg >= self.firsts[at] + self.groups[at].legs:
            return None
        return self.groups[at]

    def remove(self, group: GroupT) -> None:
        at = bisect_left(self.firsts, group.first)
        del self.firsts[at]
        del self.groups[at]


class AdmissionQueue(Generic[GroupT]):
    """The queue of one leaf, by the rules above. Not thread-safe: its owner holds a lock."""

    def __init__(self, *, workers: int, legs_max: int = QUEUE_LEGS_MAX) -> None:
        self.workers = workers
        self.legs_max = legs_max
        self._interactive: _Line[GroupT] = _Line()
        self._batch: _Line[GroupT] = _Line()
        self._registers: dict[int, _Register[GroupT]] = {}
        self._sequence = 0
        self._running = 0
        self._since_batch = 0
        self._service_s = SERVICE_START_S

    # --- the loop's side -----------------------------------------------------------------

    def offer(self, group: GroupT, now: float) -> Offered[GroupT]:
        """Admit as many of the group's legs as there is room for, the first ones.

        Raises ValueError, and changes nothing, when its legs are not numbered above those
        the channel has in the queue already.
        """
        expired: Sequence[Bite[GroupT]] = ()
        room = self._room(group.priority)
        if room < group.legs:
            expired = self.expire(now)
            room = self._room(group.priority)
        admitted = min(group.legs, room)
        if admitted:
            self._registers.setdefault(group.channel, _Register()).add(group)
            group.legs = group.waiting = admitted
            self._sequence += 1
            self._line(group).push(group, self._sequence)
        return Offered(admitted, self.retry_s(), expired)

    def cancel(
        self, channel: int, legs: Iterable[int], *, taken_too: bool = True
    ) -> list[Bite[GroupT]]:
        """Take these legs out of the queue and return those that still waited in it.

        Legs in hand are marked revoked if ``taken_too``; unknown and finished ones are passed
        over, for a cancel and an answer may cross.
        """
        withdrawn: list[Bite[GroupT]] = []
        register = self._registers.get(channel)
        for leg in legs if register else ():
            assert register is not None  # noqa: S101 - for the type checker alone
            group = register.find(leg)
            if group is None or not (taken_too or leg - group.first >= group.next):
                continue
            if group.withdraw(leg - group.first):
                self._line(group).waiting -= 1
                withdrawn.append(Bite(group, (leg - group.first,)))
                self._forget_when_done(group)
        return withdrawn

    def drop_channel(self, channel: int) -> list[Bite[GroupT]]:
        """Take out everything that waits for a connection that is gone, and return it."""
        register = self._registers.get(channel)
        groups = list(register.groups) if register else []
        return [self._cut_all(group) for group in groups if group.waiting]

    def expire(self, now: float) -> list[Bite[GroupT]]:
        """Take out the legs whose deadline has passed."""
        expired: list[Bite[GroupT]] = []
        for line in (self._interactive, self._batch):
            while (group := line.head()) is not None and group.deadline_s <= now:
                expired.append(self._cut_all(group))
        return expired

    # --- the workers' side ---------------------------------------------------------------

    def take(self, legs_max: int, now: float) -> Taken[GroupT]:
        """Hand out up to ``legs_max`` legs of the group whose turn it is."""
        expired = self.expire(now)
        line, share = self._turn(legs_max)
        group = line.head()
        if group is None:
            return Taken(None, expired)
        legs = line.cut(group, share)
        self._count_turn(line, len(legs))
        group.running += len(legs)
        self._running += len(legs)
        return Taken(Bite(group, legs), expired)

    def finished(self, group: GroupT, legs: int, took_s: float) -> None:
        """Note that ``legs`` taken legs of a group are done, ``took_s`` seconds in all."""
        group.running -= legs
        self._running -= legs
        self._service_s += SERVICE_WEIGHT * (max(took_s / legs, SERVICE_S_MIN) - self._service_s)
        self._forget_when_done(group)

    # --- what it knows -------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Legs in the queue."""
        return self._interactive.waiting + self._batch.waiting

    def depth(self) -> Depth:
        """Return how full the queue is."""
        return Depth(self._interactive.waiting, self._batch.waiting, self._running)

    def bite_legs(self) -> int:
        """How many legs a worker should take: its share, and no more than a moment's work."""
        share = -(-self.waiting // self.workers)
        unshared = int(SHARE_WORK_S / self._service_s)
        moment = int(BITE_WORK_S / self._service_s)
        return max(1, min(max(share, unshared), moment, BITE_LEGS_MAX))

    def bites(self) -> int:
        """How many workers can find something to do."""
        return -(-self.waiting // self.bite_legs())

    def retry_s(self) -> float:
        """When the legs that wait now should be done."""
        estimate_s = self.waiting * self._service_s / self.workers
        return min(max(estimate_s, RETRY_S_MIN), RETRY_S_MAX)

    # --- within --------------------------------------------------------------------------

    def _line(self, group: GroupT) -> _Line[GroupT]:
        return self._batch if group.priority == "batch" else self._interactive

    def _room(self, priority: Priority) -> int:
        room = self.legs_max - self.waiting
        if priority == "batch":
            room = min(room, int(self.legs_max * BATCH_QUEUE_SHARE) - self._batch.waiting)
        return max(room, 0)

    def _turn(self, legs_max: int) -> tuple[_Line[GroupT], int]:
        """Return whose turn it is and how many legs it may have."""
        if not self._interactive.waiting:
            return self._batch, legs_max
        owed = self._since_batch // (BATCH_TURN - 1)
        if self._batch.waiting and owed:
            return self._batch, min(legs_max, owed)
        return self._interactive, legs_max

    def _count_turn(self, line: _Line[GroupT], legs: int) -> None:
        if not (self._batch.waiting and self._interactive.waiting):
            self._since_batch = 0
        elif line is self._batch:
            self._since_batch = max(0, self._since_batch - legs * (BATCH_TURN - 1))
        else:
            self._since_batch += legs

    def _cut_all(self, group: GroupT) -> Bite[GroupT]:
        bite = Bite(group, self._line(group).cut(group, group.legs))
        self._forget_when_done(group)
        return bite

    def _forget_when_done(self, group: GroupT) -> None:
        if group.waiting or group.running:
            return
        register = self._registers[group.channel]
        register.remove(group)
        if not register.groups:
            del self._registers[group.channel]
