"""When requests are sent: decided before the run, whatever the answers do.

A generator that waits for an answer before it sends the next request sends fewest exactly
when the system is slowest, and hides what its users would have suffered. So an *open* run
follows a schedule fixed beforehand and measures each latency from the *intended* send time.
A *closed* run (so many clients, each sending as soon as it is answered) measures how much
the system carries, not how long a user waits.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

import uvloop

from bench.recorder import Fate, Recorder, Recording

IN_FLIGHT_MAX: Final = 10_000
"""Requests an open run has under way: past it they are counted as unsent, not queued here.
At the 200/s of the usual run that is 50 s of silence from the system under test."""

SPIN_S: Final = 0.0005
"""libuv's timers ring up to half a millisecond late, or early: the last of the way to a send time
is gone by asking the clock, round by round of the loop. At 200/s that is a tenth of a core."""

Send = Callable[[int], Awaitable[Fate]]
"""Sends request number i and says what became of it."""


# --- schedules ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Schedule:
    """Intended send times in seconds from the start of the run, ascending."""

    send_at_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if any(
            late < early for early, late in zip(self.send_at_s, self.send_at_s[1:], strict=False)
        ):
            raise ValueError("send_at_s must ascend")


@dataclass(frozen=True, slots=True)
class Phase:
    """So many requests a second, rising or falling evenly from one rate to another."""

    from_per_s: float
    to_per_s: float
    lasts_s: float

    def __post_init__(self) -> None:
        rates = (self.from_per_s, self.to_per_s)
        if not (all(0 <= rate < math.inf for rate in rates) and max(rates) > 0):
            raise ValueError(f"rates must be positive, or one of them 0: {rates}")
        if not 0 < self.lasts_s < math.inf:
            raise ValueError(f"the time must be positive: {self.lasts_s}")

    @property
    def requests(self) -> float:
        """How many it comes to."""
        return (self.from_per_s + self.to_per_s) / 2 * self.lasts_s

    def until(self, requests: float) -> float:
        """After how many seconds so many are expected: where the area under the rate is so large.

        Of the solutions of a quadratic equation the one that also holds for equal rates.
        """
        if requests <= 0:
            return 0.0
        slope = (self.to_per_s - self.from_per_s) / self.lasts_s
        root = math.sqrt(max(0.0, self.from_per_s**2 + 2 * slope * requests))
        return 2 * requests / (self.from_per_s + root)


def scheduled(phases: Sequence[Phase], gaps: Iterator[float]) -> Schedule:
    """One phase after the other. ``gaps`` are those of a rate of one, in requests: the same
    stretched to every rate (so a Poisson process stays one).
    """
    times_s: list[float] = []
    begin_s, begin = 0.0, 0.0
    number = next(gaps)
    for phase in phases:
        while number - begin < phase.requests:
            times_s.append(begin_s + phase.until(number - begin))
            number += next(gaps)
        begin_s += phase.lasts_s
        begin += phase.requests
    return Schedule(tuple(times_s))


def independent(rng: random.Random) -> Iterator[float]:
    """Gaps of independent users: exponential, which makes a Poisson process."""
    while True:
        yield rng.expovariate(1.0)


def equal() -> Iterator[float]:
    """Equal gaps, the first request at once."""
    return chain((0.0,), repeat(1.0))


def poisson(rate_per_s: float, duration_s: float, rng: random.Random) -> Schedule:
    """Independent users: exponential gaps with the given mean rate."""
    return scheduled([Phase(rate_per_s, rate_per_s, duration_s)], independent(rng))


def constant(rate_per_s: float, duration_s: float) -> Schedule:
    """Equal gaps: one request every ``1 / rate_per_s`` seconds, the first at 0."""
    return scheduled([Phase(rate_per_s, rate_per_s, duration_s)], equal())


# --- sending ------------------------------------------------------------------------------


class Clock:
    """The time of the running loop, and waiting for an instant of it. Timers of libuv ring by whole
    milliseconds, so the last of the way is gone round by round.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time
        self._spin_s = SPIN_S if isinstance(loop, uvloop.Loop) else 0.0

    async def until(self, when_s: float) -> None:
        """Return at an instant, or at once, though not without letting others run."""
        await asyncio.sleep(when_s - self.now() - self._spin_s)
        while self._spin_s and self.now() < when_s:
            await asyncio.sleep(0)


async def open_loop(
    schedule: Schedule, send: Send, recording: Recording, in_flight_max: int = IN_FLIGHT_MAX
) -> None:
    """Send on schedule; return when the last request has ended.

    ``recording`` gets each latency from the intended send time, and the generator's own lag.
    An exception from ``send`` is a fault of the benchmark and ends the run.
    """
    clock = Clock()
    start_s = clock.now()

    async def one(number: int, intended_s: float, recorder: Recorder) -> None:
        fate = await send(number)
        recorder.record(fate, clock.now() - intended_s)

    in_flight: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:
        for number, offset_s in enumerate(schedule.send_at_s):
            intended_s = start_s + offset_s
            recorder = recording.at(offset_s)
            await clock.until(intended_s)
            recorder.record_lag(clock.now() - intended_s)
            if len(in_flight) >= in_flight_max:
                recorder.record_unsent()
                continue
            task = group.create_task(one(number, intended_s, recorder))
            in_flight.add(task)
            task.add_done_callback(in_flight.discard)


async def closed_loop(clients: int, requests: int, send: Send, recorder: Recorder) -> float:
    """Send ``requests`` in all from ``clients`` at a time; return requests a second."""
    if clients < 1 or requests < 1:
        raise ValueError(f"clients and requests must be positive: {clients}, {requests}")
    clock = Clock()
    numbers = iter(range(requests))
    start_s = clock.now()

    async def client() -> None:
        for number in numbers:
            sent_s = clock.now()
            recorder.record(await send(number), clock.now() - sent_s)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return requests / max(clock.now() - start_s, 1e-9)


async def paced_loop(
    schedule: Schedule, clients: int, send: Send, corrected: Recorder, uncorrected: Recorder
) -> None:
    """Send on schedule from ``clients`` connections, in turn, each of which has to wait for its
    answer before it can send again. Both recorders get every request: the one from the instant
    at which it was to be sent, the other from the one at which it was.
    """
    if clients < 1:
        raise ValueError(f"clients must be positive: {clients}")
    clock = Clock()
    start_s = clock.now()

    async def client(place: int) -> None:
        for number in range(place, len(schedule.send_at_s), clients):
            intended_s = start_s + schedule.send_at_s[number]
            await clock.until(intended_s)
            sent_s = clock.now()
            fate = await send(number)
            corrected.record(fate, clock.now() - intended_s)
            uncorrected.record(fate, clock.now() - sent_s)

    async with asyncio.TaskGroup() as group:
        for place in range(clients):
            group.create_task(client(place))
