"""Answers that are held back: each is handed on at its time, from a thread of its own.

Timers of an event loop resolve a millisecond; much of what is held back here is held for
less. A thread that sleeps resolves a twentieth of that, and what a blocked loop holds up is
then the loop's doing alone.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from leaf.asks import Finished, Sink

Put = Callable[[Sink, Finished], None]


class Courier:
    """Holds what is finished until it is due. Every method may be called on any thread."""

    def __init__(self, clock: Callable[[], float], put: Put) -> None:
        """``put`` hands on what is due; it must not raise."""
        self._clock = clock
        self._put = put
        self._held: list[tuple[float, int, Sink, Finished]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what is still held is not heard of again."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def hold(self, sink: Sink, finished: Finished, for_s: float) -> None:
        """Put what is finished into the sink after so many seconds."""
        entry = (self._clock() + for_s, next(self._numbers), sink, finished)
        with self._changed:
            heapq.heappush(self._held, entry)
            if self._held[0] is entry:
                self._changed.notify()

    def look(self) -> None:
        """Look at the clock again: it has been put forward."""
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._stopping or self._is_due()):
                    self._changed.wait(self._pause_s())
                if self._stopping:
                    return
                due = [heapq.heappop(self._held)]
                while self._is_due():
                    due.append(heapq.heappop(self._held))
            for _, _, sink, finished in due:
                self._put(sink, finished)

    def _is_due(self) -> bool:
        return bool(self._held) and self._held[0][0] <= self._clock()

    def _pause_s(self) -> float | None:
        return max(0.0, self._held[0][0] - self._clock()) if self._held else None
