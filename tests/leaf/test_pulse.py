"""A loop that stands still is noticed, told of once, and counted."""

from __future__ import annotations

import gc
import logging
import threading

import pytest

from leaf.pulse import CollectorPauses, Pulse, Watchdog, stack_of, watched

LIMIT_S = 0.2


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        """Return seconds."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s."""
    return Clock()


@pytest.fixture
def pulse(clock: Clock) -> Pulse:
    """A pulse with a limit of 200 ms."""
    return Pulse(LIMIT_S * 1000.0, clock)


def beats(pulse: Pulse, clock: Clock, late_s: float) -> None:
    """Let a beat come so late."""
    pulse.expect(0.05)
    clock.now_s += 0.05 + late_s
    pulse.beat()


def test_lateness_is_always_measured_and_counts_as_blocked_above_the_limit(
    pulse: Pulse, clock: Clock
) -> None:
    """Early, late, on the limit, above it: four beats, one episode, its whole length."""
    for late_s in (-0.001, 0.001, LIMIT_S - 1e-6, 0.5):
        beats(pulse, clock, late_s)
    assert sum(pulse.lag.counts) == 4
    assert pulse.episodes == 1
    assert pulse.blocked_s == pytest.approx(0.5)


def test_a_beat_that_nobody_expects_is_no_lateness(pulse: Pulse, clock: Clock) -> None:
    """The time between two runs of a loop is nobody's fault."""
    pulse.beat()
    beats(pulse, clock, 0.0)
    clock.now_s += 1000.0
    pulse.beat()
    assert sum(pulse.lag.counts) == 1
    assert pulse.blocked_s == 0.0


def test_an_episode_is_told_once_with_its_stack_and_its_length(
    pulse: Pulse, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """While it lasts, where the loop is; when it ends, how long it was."""
    dog = Watchdog(pulse)
    pulse.expect(0.05)
    clock.now_s += 0.24
    dog.look()
    assert not caplog.records
    for _ in range(3):
        clock.now_s += 0.1
        dog.look()
    clock.now_s += 0.1
    pulse.beat()
    held_up, turns_again = (record.getMessage() for record in caplog.records)
    assert "held up for 290 ms" in held_up
    assert "test_an_episode_is_told_once" in held_up
    assert turns_again == "the event loop turns again after 590 ms"


def test_an_episode_that_no_thread_could_see_is_told_afterwards(
    pulse: Pulse, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Code that keeps the interpreter to itself stops the watchdog as well."""
    beats(pulse, clock, 0.7)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "700 ms, in which no other thread could run either" in record.getMessage()


def test_the_next_episode_is_told_again(
    pulse: Pulse, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once an episode is not once for ever."""
    dog = Watchdog(pulse)
    for _ in range(2):
        pulse.expect(0.05)
        clock.now_s += 1.0
        dog.look()
        pulse.beat()
    assert len(caplog.records) == 4
    assert pulse.episodes == 2


def test_a_stack_is_that_of_the_thread_asked_for() -> None:
    """And a thread that has ended has none."""
    inside, leave = threading.Event(), threading.Event()

    def waits_in_here() -> None:
        inside.set()
        leave.wait()

    thread = threading.Thread(target=waits_in_here)
    thread.start()
    inside.wait()
    assert thread.ident is not None
    assert "waits_in_here" in stack_of(thread.ident)
    leave.set()
    thread.join()
    assert stack_of(thread.ident) == ""


def test_pauses_of_the_collector_are_counted_while_watched(pulse: Pulse) -> None:
    """Every collection between start and stop, and none after."""
    pauses = CollectorPauses(pulse)
    pauses.start()
    gc.collect()
    counted = sum(pulse.pauses.counts)
    pauses.stop()
    gc.collect()
    assert counted >= 1
    assert sum(pulse.pauses.counts) == counted


def test_nothing_is_left_when_nobody_watches_any_more(pulse: Pulse) -> None:
    """Neither the thread nor the collector's hook."""
    hooks = len(gc.callbacks)
    with watched(pulse):
        assert "watchdog" in {thread.name for thread in threading.enumerate()}
    assert "watchdog" not in {thread.name for thread in threading.enumerate()}
    assert len(gc.callbacks) == hooks


@pytest.mark.parametrize("blocked_ms", [0.0, -1.0, 60_001.0, float("nan"), float("inf")])
def test_a_limit_out_of_range_is_refused_by_name(blocked_ms: float) -> None:
    """It would log always, or never."""
    with pytest.raises(ValueError, match="blocked_ms must be from 1 to 60000"):
        Pulse(blocked_ms)
