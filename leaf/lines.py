"""What waits in a leaf's queue: groups of legs, in lines by when their turn comes.

Pure, as all of the queue (`leaf.admission`, which has the rules).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from leaf.protocol import Priority

SLOT_S: Final = 0.05
"""How finely deadlines are told apart where the work ahead of one is added up."""

STALE_GROUPS_MIN: Final = 64
"""Emptied groups stay in the heap up to this many before it is worth sweeping them out."""


class Group:
    """The legs of one ask while the leaf has them. Subclasses add the work itself.

    ``channel`` identifies the connection and ``first`` is the number of its first leg there;
    inside the leaf a leg is named by its index in the group. ``waiting`` and ``running`` count
    legs; ``revoked`` holds the indices cancelled after they were taken: the queue adds to it,
    whoever works on the group looks; ``setback_s`` is by how much its turn comes later than its
    deadline says. Only the queue writes these.
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
        "setback_s",
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
        self.setback_s = 0.0
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


_Entry = tuple[float, int, GroupT]
"""When a group is due, in which order it came, and the group."""


class Line(Generic[GroupT]):
    """The groups of one priority: whose turn it is, and who expires next."""

    __slots__ = ("_expiring", "_groups", "_slots", "waiting")

    def __init__(self) -> None:
        self._groups: list[_Entry[GroupT]] = []
        self._expiring: list[_Entry[GroupT]] = []
        self._slots: dict[int, int] = {}
        self.waiting = 0

    def push(self, group: GroupT, sequence: int) -> None:
        """Add a group; ``sequence`` rises with every one."""
        self._sweep()
        entry = (group.deadline_s, sequence, group)
        heapq.heappush(self._groups, entry)
        heapq.heappush(self._expiring, entry)
        self._count(group, group.waiting)

    def _sweep(self) -> None:
        """Drop emptied groups when they must be more than half: each other has a waiting leg."""
        for heap in (self._groups, self._expiring):
            if len(heap) > STALE_GROUPS_MIN + 2 * self.waiting:
                heap[:] = [entry for entry in heap if entry[2].waiting]
                heapq.heapify(heap)

    def head(self) -> GroupT | None:
        """Return the group to serve next, passing over those that cancels have emptied."""
        groups = self._groups
        while groups:
            due_s, sequence, group = groups[0]
            if not group.waiting:
                heapq.heappop(groups)
            elif due_s < group.deadline_s + group.setback_s:
                # It has been set back since it was put here; it never comes forward.
                due_s = group.deadline_s + group.setback_s
                heapq.heapreplace(groups, (due_s, sequence, group))
            else:
                return group
        return None

    def expired(self, now: float) -> GroupT | None:
        """Return a group whose deadline has passed, if there is one."""
        expiring = self._expiring
        while expiring:
            deadline_s, _, group = expiring[0]
            if group.waiting:
                return group if deadline_s <= now else None
            heapq.heappop(expiring)
        return None

    def ahead(self, deadline_s: float) -> int:
        """How many legs wait that are due no later, or hardly."""
        last = int(deadline_s / SLOT_S)
        return sum(legs for slot, legs in self._slots.items() if slot <= last)

    def cut(self, group: GroupT, legs_max: int) -> Sequence[int]:
        """Take the next waiting legs off a group of the line."""
        legs = group.cut(legs_max)
        self._count(group, -len(legs))
        return legs

    def lose(self, group: GroupT) -> None:
        """Note that a leg of the group waits no more."""
        self._count(group, -1)

    def _count(self, group: GroupT, legs: int) -> None:
        self.waiting += legs
        slot = int(group.deadline_s / SLOT_S)
        left = self._slots.get(slot, 0) + legs
        if left:
            self._slots[slot] = left
        else:
            del self._slots[slot]


class Register(Generic[GroupT]):
    """The groups of one channel by the number of their first leg, so that cancels find them."""

    __slots__ = ("firsts", "groups")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.groups: list[GroupT] = []

    def add(self, group: GroupT) -> None:
        """Add a group. Raises ValueError when its legs are not numbered above the others."""
        if self.firsts and group.first <= self.firsts[-1]:
            message = f"leg {group.first} is offered after leg {self.firsts[-1]}"
            raise ValueError(message)
        self.firsts.append(group.first)
        self.groups.append(group)

    def find(self, leg: int) -> GroupT | None:
        """Return the group that has the leg with this number, if any has."""
        at = bisect_right(self.firsts, leg) - 1
        if at < 0 or leg >= self.firsts[at] + self.groups[at].legs:
            return None
        return self.groups[at]

    def remove(self, group: GroupT) -> None:
        """Forget a group."""
        at = bisect_left(self.firsts, group.first)
        del self.firsts[at]
        del self.groups[at]
