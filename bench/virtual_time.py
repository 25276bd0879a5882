"""An asyncio loop whose clock is a number: hours of a simulated fleet pass in seconds.

Nothing waits. When no callback is ready, a loop asks its selector to sleep until the next
timer; this selector moves the clock there instead. So a run depends on its seed alone.
What would tie it to the real world fails loudly: threads, sockets, processes, signals, and
waiting for something that no timer will ever bring about.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
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


class NotVirtualError(RuntimeError):
    """Simulated code reached for the real world, or waits for ever."""


class _Clock(selectors.SelectSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NotVirtualError("every task waits and no timer is set: this would never end")
        self.now_s += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at 0 and jumps from timer to timer, in seconds."""

    def __init__(self) -> None:
        self._clock = _Clock()
        self._thread = threading.get_ident()
        super().__init__(self._clock)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._clock.now_s

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
        return super().call_at(when, callback, *args, context=context)

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


def run(main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, or a function that makes one, in virtual time; return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main() if callable(main) else main)
