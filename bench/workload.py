"""When requests are sent: decided before the run, whatever the answers do.

A generator that waits for an answer before it sends the next request sends fewest exactly
when the system is slowest, and hides what its users would have suffered. So an *open* run
follows a schedule fixed beforehand and measures each latency from the *intended* send time.
A *closed* run (so many clients, each sending as soon as it is answered) measures how much
the system carries, not how long a user waits.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from bench.recorder import Fate, Recorder, Recording

IN_FLIGHT_MAX: Final = 10_000
"""Requests an open run has under way: past it they are counted as unsent, not queued here.
At the 200/s of the usual run that is 50 s of silence from the system under test."""

Send = Callable[[int], Awaitable[Fate]]
"""Sends request number i and says what became of it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Intended send times in seconds from the start of the run, ascending."""

    send_at_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if any(
            late < early for early, late in zip(self.send_at_s, self.send_at_s[1:], strict=False)
        ):
            raise ValueError("send_at_s must ascend")


def poisson(rate_per_s: float, duration_s: float, rng: random.Random) -> Schedule:
    """Independent users: exponential gaps with the given mean rate."""
    _check(rate_per_s, duration_s)
    times_s: list[float] = []
    at_s = rng.expovariate(rate_per_s)
    while at_s < duration_s:
        times_s.append(at_s)
        at_s += rng.expovariate(rate_per_s)
    return Schedule(tuple(times_s))


def constant(rate_per_s: float, duration_s: float) -> Schedule:
    """Equal gaps: one request every ``1 / rate_per_s`` seconds, the first at 0."""
    _check(rate_per_s, duration_s)
    return Schedule(tuple(i / rate_per_s for i in range(int(rate_per_s * duration_s))))


def _check(rate_per_s: float, duration_s: float) -> None:
    if not (0 < rate_per_s < float("inf") and 0 < duration_s < float("inf")):
        raise ValueError(f"rate_per_s and duration_s must be positive: {rate_per_s}, {duration_s}")


async def open_loop(schedule: Schedule, send: Send, recording: Recording) -> None:
    """Send on schedule; return when the last request has ended.

    ``recording`` gets each latency from the intended send time, and the generator's own lag.
    An exception from ``send`` is a fault of the benchmark and ends the run.
    """
    loop = asyncio.get_running_loop()
    start_s = loop.time()

    async def one(number: int, intended_s: float, recorder: Recorder) -> None:
        fate = await send(number)
        recorder.record(fate, loop.time() - intended_s)

    in_flight: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:
        for number, offset_s in enumerate(schedule.send_at_s):
            intended_s = start_s + offset_s
            recorder = recording.at(offset_s)
            await asyncio.sleep(intended_s - loop.time())
            recorder.record_lag(loop.time() - intended_s)
            if len(in_flight) >= IN_FLIGHT_MAX:
                recorder.record_unsent()
                continue
            task = group.create_task(one(number, intended_s, recorder))
            in_flight.add(task)
            task.add_done_callback(in_flight.discard)


async def closed_loop(clients: int, requests: int, send: Send, recorder: Recorder) -> float:
    """Send ``requests`` in all from ``clients`` at a time; return requests a second."""
    if clients < 1 or requests < 1:
        raise ValueError(f"clients and requests must be positive: {clients}, {requests}")
    loop = asyncio.get_running_loop()
    numbers = iter(range(requests))
    start_s = loop.time()

    async def client() -> None:
        for number in numbers:
            sent_s = loop.time()
            recorder.record(await send(number), loop.time() - sent_s)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return requests / max(loop.time() - start_s, 1e-9)
