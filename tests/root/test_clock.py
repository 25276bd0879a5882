"""The clock of a root's event loop."""

from __future__ import annotations

import asyncio
import time

import uvloop

from root.clock import PreciseLoop


def test_the_loop_tells_the_time_between_milliseconds() -> None:
    """It is the monotonic clock's, read when it is asked, and libuv's is the same but coarse."""

    async def times() -> tuple[float, float, float]:
        loop = asyncio.get_running_loop()
        return time.monotonic(), loop.time(), time.monotonic()

    before_s, now_s, after_s = uvloop.run(times(), loop_factory=PreciseLoop)
    assert before_s <= now_s <= after_s
