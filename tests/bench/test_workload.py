"""Schedules and the ways to send."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import realtime, workload
from bench.recorder import Fate, Recorder
from bench.virtual_time import run
from bench.workload import Phase


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


def test_a_ramp_reaches_its_rate_evenly() -> None:
    """From 5 to 50 requests a second in 30 s: 825 in all, a quarter as many in the first half."""
    times_s = workload.scheduled([Phase(5, 50, 30)], workload.equal()).send_at_s
    first = [at_s for at_s in times_s if at_s < 15]
    assert len(times_s) == 825
    assert len(first) == pytest.approx((5 + 27.5) / 2 * 15, abs=1)
    assert times_s[1] - times_s[0] == pytest.approx(1 / 5, rel=0.05)
    assert times_s[-1] - times_s[-2] == pytest.approx(1 / 50, rel=0.01)


@pytest.mark.parametrize(("begin", "end"), [(0, 10), (10, 0), (10, 10), (3, 7)])
def test_a_phase_has_passed_when_all_its_requests_are_sent(begin: float, end: float) -> None:
    """Up, down or level: the area under the rate."""
    phase = Phase(begin, end, 4)
    assert phase.until(0) == 0
    assert phase.until(phase.requests) == pytest.approx(4)
    half_s = phase.until(phase.requests / 2)
    assert (begin + (begin + (end - begin) * half_s / 4)) / 2 * half_s == pytest.approx(
        phase.requests / 2
    )


def test_phases_follow_each_other_without_a_gap() -> None:
    """The gap that a phase ends in goes on in the next, at its rate."""
    phases = [Phase(10, 10, 0.95), Phase(20, 20, 1)]
    times_s = workload.scheduled(phases, workload.equal()).send_at_s
    assert times_s[9:12] == pytest.approx((0.9, 0.975, 1.025))
    assert times_s[-1] < 1.95


def test_a_ramp_of_independent_users_has_its_rates() -> None:
    """Four times as many requests in the last quarter as in the first one of a ramp from 0."""
    rng = random.Random(1)
    times_s = workload.scheduled([Phase(0, 100, 100)], workload.independent(rng)).send_at_s
    counts = [sum(1 for at_s in times_s if low <= at_s < low + 25) for low in (0, 25, 50, 75)]
    assert [count / 312.5 for count in counts] == pytest.approx([1, 3, 5, 7], rel=0.12)


@pytest.mark.parametrize("phase", [(0, 0, 1), (-1, 5, 1), (5, 50, 0), (5, float("inf"), 1)])
def test_a_senseless_phase_is_refused(phase: tuple[float, float, float]) -> None:
    """No requests at all, fewer than none, no time."""
    with pytest.raises(ValueError, match="must be positive"):
        Phase(*phase)


def test_the_clock_of_a_real_run_is_finer_than_its_loops() -> None:
    """Libuv's own would take requests for sent that it has not come to yet."""

    async def seen() -> tuple[int, float]:
        clock = workload.Clock()
        start_s = clock.now()
        instants = {clock.now() for _ in range(1000)}
        await clock.until(start_s + 0.003)
        return len(instants), clock.now() - start_s

    instants, waited_s = realtime.run(seen())
    assert instants > 100
    assert waited_s >= 0.003


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


def test_too_many_under_way_are_counted_and_not_sent() -> None:
    """Past the limit a request is unsent, and the run says how many."""

    async def send(_: int) -> Fate:
        await asyncio.sleep(100)
        return "timeout"

    recorder = Recorder()
    run(workload.open_loop(workload.constant(10, 1), send, recorder, in_flight_max=3))
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


def test_a_paced_run_is_read_in_two_ways() -> None:
    """A client that waits sends too late whatever comes due meanwhile: from the intended time
    those waited, too; from the time of sending only the one that was slow did.
    """

    async def send(number: int) -> Fate:
        await asyncio.sleep(1.0 if number == 0 else 0.0)
        return "complete"

    corrected, uncorrected = Recorder(), Recorder()
    run(workload.paced_loop(workload.constant(10, 2), 2, send, corrected, uncorrected))
    assert corrected.summary().requests == uncorrected.summary().requests == 20
    assert uncorrected.latency_ms(90) < 1.0
    assert uncorrected.latency_ms(100) == pytest.approx(1000, rel=0.01)
    waited_ms = [corrected.latency_ms(p) for p in (80, 85, 90, 95, 100)]
    assert waited_ms == pytest.approx([200, 400, 600, 800, 1000], rel=0.01)


def test_a_broken_benchmark_ends_the_run() -> None:
    """An exception while sending is not a result."""

    async def send(_: int) -> Fate:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        run(workload.open_loop(workload.constant(10, 1), send, Recorder()))
