"""The event loop of a root: libuv's, with a clock that is read when it is asked.

libuv looks at the clock once a turn of the loop and keeps whole milliseconds of it. What a
leg takes is often less: its time would be 0 or 1 ms, and a leaf's smoothed latency noise.
Timers still ring by libuv's milliseconds.
"""

from __future__ import annotations

import time

import uvloop


class PreciseLoop(uvloop.Loop):
    """Tells the time to the microsecond."""

    def time(self) -> float:
        """Seconds of the monotonic clock, which is the one that libuv rounds."""
        return time.monotonic()
