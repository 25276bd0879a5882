"""What tests of the leaf's queue have in common."""

from __future__ import annotations

from leaf.admission import AdmissionQueue
from leaf.lines import Bite, Group
from leaf.protocol import Priority


def group(
    first: int,
    legs: int,
    *,
    deadline_s: float = 10.0,
    priority: Priority = "interactive",
    channel: int = 1,
) -> Group:
    """So many legs of one ask, numbered from ``first``."""
    return Group(channel, first, legs, deadline_s, priority)


def queue(legs_max: int = 100, workers: int = 2) -> AdmissionQueue[Group]:
    """An empty one."""
    return AdmissionQueue(workers=workers, legs_max=legs_max)


def numbers(bite: Bite[Group] | None) -> list[int]:
    """The numbers of the legs that a worker takes; it takes some."""
    assert bite is not None
    return [bite.group.first + leg for leg in bite.legs]
