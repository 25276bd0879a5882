"""What is to happen in a simulated fleet, in the order of time: one timer for all of it.

A timer of the loop for every leg would cost more than the root's own work on it. Here the
loop has one, for the earliest event; and where nothing else is to happen in between, the
clock goes on to the next event without one.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from typing import Protocol

from bench.virtual_time import running_loop


class Event(Protocol):
    """Something that happens at an instant."""

    def happen(self, when: float) -> None:
        """Come to pass: ``when`` is the instant it was entered for, which is now."""
        ...


class Agenda:
    """Events by time, and by the order of entry where that is equal. Made on a running loop."""

    __slots__ = ("_entered", "_events", "_happening", "_loop", "_timer", "_timer_at_s")

    def __init__(self) -> None:
        """Start with nothing to happen."""
        self._loop = running_loop()
        self._events: list[tuple[float, int, Event]] = []
        self._entered = 0
        self._happening = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_s = math.inf

    def enter(self, when: float, event: Event) -> None:
        """Let something happen at an instant, in seconds: never within this call."""
        self._entered += 1
        heapq.heappush(self._events, (when, self._entered, event))
        if when < self._timer_at_s and not self._happening:
            self._set_timer(when)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)
        self._timer_at_s = when

    def _ring(self) -> None:
        events, skip_to = self._events, self._loop.skip_to
        self._timer, self._timer_at_s = None, math.inf
        self._happening = True
        while True:
            when, _, event = heapq.heappop(events)
            event.happen(when)
            if not events or not skip_to(events[0][0]):
                break
        self._happening = False
        if events:
            self._set_timer(events[0][0])
