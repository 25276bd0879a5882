"""The event loop of whatever is measured in real time: the root's own, whose clock is exact."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from root.clock import PreciseLoop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end, and return what it does."""
    return uvloop.run(main, loop_factory=PreciseLoop)
