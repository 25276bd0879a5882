"""Schedules and the two ways to send."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import workload
from bench.recorder import Fate, Recorder
from bench.virtual_time import run


@given(st.integers(), st.floats(1, 1000), st.floats(0.1, 10))
def test_a_poisson_schedule_is_its_seed(seed: int, rate_per_s: float, duration_s: float) -> None:
    """The same seed gives the same schedule, inside the run."""
    one, two = (
        workload.poisson(rate_per_s, duration_s, random.Random(seed)).send_at_s for _ in range(2)
    )
    assert one == two
    assert all(0 < at_s < duration_s for at_s in one)


def test_a_poisson_schedule_has_its_rate() -> None:
    """Over a long run the mean rate is the one asked for."""
    schedule = workload.poisson(200, 100, random.Random(1))
    assert len(schedule.send_at_s) == pytest.approx(20_000, rel=0.03)


def test_a_constant_schedule_has_equal_gaps() -> None:
    """One request every 1/rate seconds, the first at once."""
    assert workload.constant(4, 1).send_at_s == (0, 0.25, 0.5, 0.75)


@pytest.mark.parametrize(("rate_per_s", "duration_s"), [(0, 1), (-1, 1), (1, 0), (float("inf"), 1)])
def test_a_senseless_rate_is_refused(rate_per_s: float, duration_s: float) -> None:
    """Rate and duration must be positive and finite."""
    with pytest.raises(ValueError, match="must be positive"):
        workload.constant(rate_per_s, duration_s)


def test_a_schedule_must_ascend() -> None:
    """A schedule that goes back in time cannot be made."""
    with pytest.raises(ValueError, match="ascend"):
        workload.Schedule((1, 0))


def test_a_slow_answer_delays_no_request() -> None:
    """An open run sends on schedule, and latency counts from the intended time."""
    sent_s: list[float] = []

    async def send(number: int) -> Fate:
        sent_s.append(asyncio.get_running_loop().time())
        await asyncio.sleep(10 if number == 0 else 0.001)
        return "complete"

    recorder = Recorder()
    run(workload.open_loop(workload.constant(10, 1), send, recorder))
    assert sent_s == pytest.approx([i / 10 for i in range(10)])
    summary = recorder.summary()
    assert summary.requests == 10
    assert summary.p50_ms == pytest.approx(1, rel=0.01)
    assert summary.max_ms == pytest.approx(10_000, rel=0.01)


def test_too_many_under_way_are_counted_and_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit a request is unsent, and the run says how many."""
    monkeypatch.setattr(workload, "IN_FLIGHT_MAX", 3)

    async def send(_: int) -> Fate:
        await asyncio.sleep(100)
        return "timeout"

    recorder = Recorder()
    run(workload.open_loop(workload.constant(10, 1), send, recorder))
    assert recorder.summary().fates == {"timeout": 3}
    assert recorder.summary().unsent == 7


def test_a_closed_run_sends_as_answers_come() -> None:
    """Two clients with answers in 100 ms make 20 requests a second."""
    numbers: list[int] = []

    async def send(number: int) -> Fate:
        numbers.append(number)
        await asyncio.sleep(0.1)
        return "complete"

    assert run(workload.closed_loop(2, 10, send, Recorder())) == pytest.approx(20)
    assert numbers == list(range(10))


def test_a_broken_benchmark_ends_the_run() -> None:
    """An exception while sending is not a result."""

    async def send(_: int) -> Fate:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        run(workload.open_loop(workload.constant(10, 1), send, Recorder()))
