"""Whether the event loop of this process turns, and what holds it up: of roots and leaves.

The loop beats: it calls ``Pulse.beat`` at fixed intervals and says how late it came. A thread
(``Watchdog``) looks on. When a beat is overdue by more than the limit it logs the stack that
the loop is in, once an episode; the beat that comes at last logs how long it was. A loop held
up by code that keeps the interpreter to itself is seen only afterwards: no thread can look.

Pauses of the garbage collector are counted beside, for they hold up everything.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from leaf.durations import Histogram

log = logging.getLogger(__name__)

BLOCKED_MS: Final = 200.0
"""A loop later than this did not answer pings in time for anyone to tell it from a dead one."""

BLOCKED_MS_MAX: Final = 60_000.0
"""A loop that stands still for a minute is not slow but dead."""

LOOKS_AN_EPISODE: Final = 4
"""The watchdog looks so many times within the limit: its stack is at most a quarter late."""

FRAMES_SHOWN: Final = 20
"""Innermost frames of a stack that are logged: what blocks is among them."""


class Pulse:
    """How late the loop came to its own timers, and how long it stood still.

    ``blocked_ms``: a beat later than this is an episode. The loop calls ``expect`` and ``beat``
    in turn; everything may be read from any thread.
    """

    def __init__(
        self, blocked_ms: float = BLOCKED_MS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock`` gives seconds, on any thread. Raises ValueError for a limit out of range."""
        if not 1.0 <= blocked_ms <= BLOCKED_MS_MAX:
            raise ValueError(f"blocked_ms must be from 1 to {BLOCKED_MS_MAX:g}, not {blocked_ms:g}")
        self.clock = clock
        self.limit_s = blocked_ms / 1000.0
        self.lag = Histogram()
        self.pauses = Histogram()
        self.blocked_s = 0.0
        self.episodes = 0
        self._due_s: float | None = None
        self._seen_due_s: float | None = None

    def expect(self, in_s: float) -> None:
        """Note that the loop means to beat again so many seconds from now."""
        self._due_s = self.clock() + in_s

    def beat(self) -> None:
        """The loop has come to its timer. Nothing, where none was expected."""
        if self._due_s is None:
            return
        late_s = max(0.0, self.clock() - self._due_s)
        self.lag.add(int(late_s * 1e6))
        if late_s > self.limit_s:
            self.blocked_s += late_s
            self.episodes += 1
            seen = self._seen_due_s == self._due_s
            log.warning(
                "the event loop turns again after %.0f ms%s",
                late_s * 1000.0,
                "" if seen else ", in which no other thread could run either",
            )
        self._due_s = None

    def overdue_s(self) -> float | None:
        """How late the loop is, when it is an episode that has not been told yet, else None."""
        due_s, now = self._due_s, self.clock()
        if due_s is None or now - due_s <= self.limit_s or self._seen_due_s == due_s:
            return None
        self._seen_due_s = due_s
        return now - due_s

    def paused(self, took_s: float) -> None:
        """The garbage collector has stopped everything for so long."""
        self.pauses.add(int(took_s * 1e6))


class Watchdog:
    """Looks at a pulse from a thread of its own. Make it on the thread of the loop."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._loop_thread = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking, and wait until it has."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Log where the loop is, if it is overdue and that has not been told."""
        late_s = self._pulse.overdue_s()
        if late_s is not None:
            log.warning(
                "the event loop has been held up for %.0f ms; it is here:\n%s",
                late_s * 1000.0,
                stack_of(self._loop_thread),
            )

    def _run(self) -> None:
        while not self._stop.wait(self._pulse.limit_s / LOOKS_AN_EPISODE):
            self.look()


def stack_of(thread: int) -> str:
    """The innermost frames that a thread is in now; empty when it has ended."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, and the only way
    return "".join(traceback.format_stack(frame)[-FRAMES_SHOWN:]).rstrip() if frame else ""


class CollectorPauses:
    """Tells a pulse of each pause of the garbage collector, from ``start`` to ``stop``.

    The collector calls in the middle of anything: nothing here takes a lock.
    """

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._began_s = 0.0

    def start(self) -> None:
        """Begin to count."""
        gc.callbacks.append(self._collecting)

    def stop(self) -> None:
        """Count no more."""
        gc.callbacks.remove(self._collecting)

    def _collecting(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._began_s = self._pulse.clock()
        else:
            self._pulse.paused(self._pulse.clock() - self._began_s)


@contextmanager
def watched(pulse: Pulse) -> Iterator[None]:
    """Watch the loop of this thread, and the collector, until the block ends."""
    watchdog, pauses = Watchdog(pulse), CollectorPauses(pulse)
    watchdog.start()
    pauses.start()
    try:
        yield
    finally:
        pauses.stop()
        watchdog.stop()
