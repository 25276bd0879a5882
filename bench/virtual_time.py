"""An asyncio loop whose clock is a number: hours of a simulated fleet pass in seconds.

Nothing waits. When no callback is ready, a loop asks its selector to sleep until something
happens; this one moves the clock to the next timer instead. The timers are the loop's own: in
order of time, and of being set where that is equal. So a run depends on its seed alone.
What would tie it to the real world fails loudly: threads, sockets, processes, signals, and
waiting for something that no timer will ever bring about.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, NoReturn, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
A = TypeVarTuple("A")
Call = Callable[[Unpack[A]], object]

REFUSED: Final = (
    *("run_in_executor", "add_reader", "add_writer", "add_signal_handler"),
    *("create_connection", "create_server", "create_datagram_endpoint"),
    *("create_unix_connection", "create_unix_server", "subprocess_exec", "subprocess_shell"),
    *("sock_connect", "sock_accept", "sock_recv", "sock_recv_into", "sock_sendall"),
)


CANCELLED_MIN: Final = 100
"""Cancelled timers that are no burden."""

ROUNDS_MAX: Final = 100_000
"""Of the loop at one instant. A fleet of thousands of leaves has dozens; what goes round so often
sets itself a timer for now again and again, and would for ever."""


class NotVirtualError(RuntimeError):
    """Simulated code reached for the real world, or waits for ever."""


class _Clock(selectors.SelectSelector):
    """The time, and the timers: as (when, sequence number, handle)."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.due: list[asyncio.TimerHandle] = []
        self._round_s = 0.0
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Fill ``due``; with nothing else to do (no ``timeout``), after going on to the next."""
        timers = self.timers
        if timeout is None:
            if self.next_s() == math.inf:
                raise NotVirtualError("every task waits and no timer is set: this would never end")
            self.now_s = max(self.now_s, timers[0][0])
        while timers and timers[0][0] <= self.now_s:
            self.due.append(heapq.heappop(timers)[2])
        if self._round_s == self.now_s:
            self._rounds += 1
            if self._rounds > ROUNDS_MAX:
                raise NotVirtualError(f"time stands still at {self.now_s} s: this would never end")
        else:
            self._round_s = self.now_s
            self._rounds = 0
        return []

    def next_s(self) -> float:
        """When the next timer rings that has not been cancelled; infinite without any."""
        timers = self.timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        return timers[0][0] if timers else math.inf


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at 0 and jumps from timer to timer, in seconds."""

    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self._clock = _Clock()
        self._thread = threading.get_ident()
        self._set = 0
        self._cancelled = 0
        super().__init__(self._clock)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._clock.now_s

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        """Those that will ring, in no order."""
        return [timer for _, _, timer in self._clock.timers if not timer.cancelled()]

    def skip_to(self, when: float) -> bool:
        """Go on to an instant, in seconds, if nothing else is to happen before; say whether.

        For a callback that would set a timer for itself and return: the same, at less cost.
        """
        clock = self._clock
        if self._ready or clock.due or clock.next_s() <= when:
            return False
        clock.now_s = max(clock.now_s, when)
        return True

    def suspend(self, seconds: float) -> None:
        """Let time pass in which nothing happens, as on a machine that was suspended: all timers
        that have become due ring at once, in their order.
        """
        self._clock.now_s += seconds

    def call_at(
        self,
        when: float,
        callback: Call[*A],
        *args: *A,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in asyncio; a ``when`` that is not finite is refused."""
        if not math.isfinite(when):
            raise NotVirtualError(f"a timer at {when} never rings")
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001 (cancelling is told)
        self._set += 1
        heapq.heappush(self._clock.timers, (when, self._set, timer))
        return timer

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        """Drop cancelled timers when most of them are."""
        self._cancelled += 1
        clock = self._clock
        if self._cancelled > CANCELLED_MIN and 2 * self._cancelled > len(clock.timers):
            clock.timers = [timer for timer in clock.timers if not timer[2].cancelled()]
            heapq.heapify(clock.timers)
            self._cancelled = 0

    def _process_events(self, _: list[tuple[selectors.SelectorKey, int]]) -> None:
        """Called by asyncio with what ``select`` returned: make ready what is due."""
        self._ready.extend(self._clock.due)
        self._clock.due.clear()

    def call_soon_threadsafe(
        self, callback: Call[*A], *args: *A, context: Context | None = None
    ) -> asyncio.Handle:
        """As in asyncio; refused from another thread."""
        if threading.get_ident() != self._thread:
            raise NotVirtualError("another thread called: its timing is not virtual")
        return self.call_soon(callback, *args, context=context)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotVirtualError("threads, sockets, processes and signals are not virtual")


for _name in REFUSED:
    setattr(VirtualTimeLoop, _name, _refuse)


def running_loop() -> VirtualTimeLoop:
    """Return the loop that runs; raises NotVirtualError where it is a real one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise NotVirtualError("the running loop keeps real time")
    return loop


def run(main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, or a function that makes one, in virtual time; return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main() if callable(main) else main)
