"""What a leaf does besides answering, on a thread of its own: round after round.

A round collects garbage (in step only), opens what has been built or is placed here now, and
has the leaf let go of what nobody needs here any more.

*Free* rounds follow one another at an interval from the leaf's own start, and the collector
comes when it thinks fit. *In step* rounds are at moments that follow from the time of day
alone, so that all leaves whose clocks agree do such work at once: a query that asks a hundred
leaves then meets it rarely, instead of nearly always somewhere. A few milliseconds between
clocks do no harm; nothing is compared over the wire, and a clock that is wrong makes its leaf
one that is out of step, no more.
"""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration, Supply

log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
"""Between rounds: each lists one folder and reads one small file a generation."""

GARBAGE_MAX: Final = 500_000
"""Objects. In step the collector comes of itself only for so many between two moments: some
hundred megabytes, which only a round that takes very long could leave behind."""


def until_next_s(now_s: float, period_s: float = ROUND_S) -> float:
    """Return the seconds from a time of day to the next whole multiple of the period, which is
    at least half a period away: nobody who wakes early, or late, comes to two moments at once.
    """
    return math.ceil(now_s / period_s + 0.5) * period_s - now_s


class Keeping(Protocol):
    """The leaf, as its background work sees it. Every method is called on the thread of that."""

    def held(self) -> Mapping[str, HeldGeneration]:
        """Return what is held at this moment, by name."""

    def hold(self, generation: HeldGeneration) -> None:
        """Have this generation held, or replace the one of its name."""

    def let_go(self) -> None:
        """Have what nobody needs here let go of."""

    def fail(self, error: BadSetting) -> None:
        """End: there is nothing to serve."""


class Background:
    """The rounds of one leaf.

    ``fail`` is called only where nothing at all could be opened, without which the leaf is of
    no use. What cannot be opened later is logged, once for each different reason, and the leaf
    goes on with what it has.
    """

    def __init__(
        self, supply: Supply, leaf: Keeping, *, in_step: bool, wall: Callable[[], float] = time.time
    ) -> None:
        """``wall`` tells the time of day in seconds, by which leaves are in step."""
        self._supply = supply
        self._leaf = leaf
        self._in_step = in_step
        self._wall = wall
        self._complaints: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)

    def start(self) -> None:
        """Start with a first round at once."""
        self._thread.start()

    def stop(self) -> None:
        """End; a round under way is not waited for."""
        self._stop.set()

    @property
    def pause_s(self) -> float:
        """Seconds from now to the next round."""
        return until_next_s(self._wall()) if self._in_step else ROUND_S

    def round(self) -> None:
        """Do one round."""
        if self._in_step:
            gc.collect()
        self._look()
        self._leaf.let_go()

    def _look(self) -> None:
        """Open what is to be held."""
        held = self._leaf.held()
        opened: list[HeldGeneration] = []
        problems: list[BadSetting] = []
        try:
            for found in self._supply.changes(held):
                if isinstance(found, BadSetting):
                    problems.append(found)
                else:
                    opened.append(found)
        except Exception as error:  # an index of the wrong bytes can fail in any way
            log.exception("opening the index failed")
            problems.append(BadSetting(f"the index cannot be opened: {error}"))
        if opened:
            self._hold(opened)
        if problems and not held and not opened:
            self._leaf.fail(problems[-1])
        else:
            self._complain({str(problem) for problem in problems})

    def _hold(self, opened: Sequence[HeldGeneration]) -> None:
        """Have all held that was opened: a leaf that comes back with one generation while roots
        search the other would only refuse them.
        """
        # What an index keeps in memory lives as long as the leaf: the collector need not
        # walk through it again and again, with every worker waiting.
        gc.collect()
        gc.freeze()
        for generation in opened:
            self._leaf.hold(generation)

    def _complain(self, complaints: set[str]) -> None:
        for complaint in sorted(complaints - self._complaints):
            log.warning("still serving what is open: %s", complaint)
        self._complaints = complaints

    def _run(self) -> None:
        self.round()
        while not self._stop.wait(self.pause_s):
            self.round()
