"""What has happened in the last minute, for those who watch: constant memory, whoever asks.

Three histograms of fan-outs say when one leaf, 95 % and 100 % of a query's leaves had answered,
counted from the start of the fan-out at the root; one says what whole requests took, from their
arrival. Counters of attempts, and of each leaf's answers, are looked at once a second and the
differences kept.

A fan-out costs its share of a sort, so at most ``LEGS_PER_S`` legs a second are looked at: every
n-th request by its number, which says nothing about how long it takes. Which requests end first
would.

Plain synchronous code. Times are seconds unless named otherwise.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple

from root.latency import BINS, EDGES_S
from root.ledger import Ledger
from root.pursuit import Phase

WINDOW_S: Final = 5.0
WINDOWS: Final = 13
"""Twelve whole windows make a minute, and the current one is added to them."""

SECONDS: Final = 60
"""How many differences of counters are kept."""

LEGS_PER_S: Final = 20_000.0
"""A leg costs up to 0.25 µs, so all of it half a per cent of a core."""

MOST: Final = 0.95
"""The share of a query's leaves of the middle row."""

BINS_A_BAR: Final = 6
"""Ten bars of the distribution a decade."""

PERCENTILES: Final = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


class Minute:
    """Times of the last minute, to two per cent."""

    __slots__ = ("_began_s", "_current", "_windows")

    def __init__(self, now: float) -> None:
        """Start empty."""
        self._current = [0] * BINS
        self._windows: deque[list[int]] = deque([self._current], maxlen=WINDOWS)
        self._began_s = now

    def record(self, seconds: float) -> None:
        """Add one."""
        self._current[max(0, min(BINS, bisect_right(EDGES_S, seconds)) - 1)] += 1

    def rotate(self, now: float) -> None:
        """Forget what is older; to be called at least once a second."""
        turns = int((now - self._began_s) / WINDOW_S)
        self._began_s += turns * WINDOW_S
        for _ in range(min(turns, WINDOWS)):
            self._current = [0] * BINS
            self._windows.append(self._current)

    def counts(self) -> list[int]:
        """Return how many fell into each bin of ``root.latency``."""
        return [sum(column) for column in zip(*self._windows, strict=True)]


class Second(NamedTuple):
    """Totals at one instant; from two of them follows what happened in between."""

    at_s: float
    requests: int
    firsts: int
    """Attempts that there would be without hedging: one a leg."""
    extra: int
    """Attempts beyond: hedges, failovers, tied copies and probes."""
    hedges: int
    wins: int
    denied: int


class Live:
    """The last minute of one root."""

    def __init__(
        self, random: Random, now: float, answers: Callable[[], Mapping[str, int]]
    ) -> None:
        """``random`` draws the one leaf of a fan-out; ``answers`` counts the legs that each leaf
        has answered so far.
        """
        self._random = random
        self._answers = answers
        self._by_leaf: deque[Mapping[str, int]] = deque([answers()], maxlen=SECONDS + 1)
        self._one = Minute(now)
        self._most = Minute(now)
        self._all = Minute(now)
        self._requests = Minute(now)
        self._every = 1
        self._answered = 0
        self._seconds: deque[Second] = deque(maxlen=SECONDS + 1)
        self._seconds.append(Second(now, 0, 0, 0, 0, 0, 0))

    def answered(self, took_s: float) -> None:
        """Learn what a search took from its arrival."""
        self._answered += 1
        self._requests.record(took_s)

    def fanned_out(self, phase: Phase, number: int) -> None:
        """Learn from a fan-out that is done; ``number`` is its request's.

        A shard that has not answered was waited for until the end: it took at least that.
        """
        outcome = phase.outcome
        if number % self._every or not (outcome.replies or outcome.missing):
            return
        ends_s = [attempt.ended_s for attempt in phase.attempts if attempt.fate == "won"]
        ends_s += [outcome.decided_s] * len(outcome.missing)
        ends_s.sort()
        began_s = phase.started_s
        self._one.record(self._random.choice(ends_s) - began_s)
        self._most.record(ends_s[math.ceil(MOST * len(ends_s)) - 1] - began_s)
        self._all.record(ends_s[-1] - began_s)

    def tick(self, ledger: Ledger, now: float) -> None:
        """Look at the counters; once a second."""
        for minute in (self._one, self._most, self._all, self._requests):
            minute.rotate(now)
        self._by_leaf.append(self._answers())
        last = self._seconds[-1]
        firsts = ledger.sent["primary"]
        second = Second(
            at_s=now,
            requests=self._answered,
            firsts=firsts,
            extra=sum(ledger.sent.values()) - firsts,
            hedges=ledger.sent["hedge"] + ledger.sent["tied"],
            wins=ledger.hedge_wins,
            denied=ledger.denied,
        )
        self._seconds.append(second)
        if now > last.at_s:
            legs_per_s = (firsts - last.firsts) / (now - last.at_s)
            self._every = max(1, math.ceil(legs_per_s / LEGS_PER_S))

    def legs(self) -> dict[str, int]:
        """Return how many legs each leaf has answered in the last minute."""
        before, after = self._by_leaf[0], self._by_leaf[-1]
        return {leaf: count - before.get(leaf, 0) for leaf, count in after.items()}

    def picture(self) -> dict[str, Any]:
        """Return the last minute as JSON has it; times in milliseconds, None without any."""
        first, last = self._seconds[0], self._seconds[-1]
        requests = self._requests.counts()
        return {
            "seconds": round(last.at_s - first.at_s, 3),
            "requests": {"count": last.requests - first.requests, **_row(requests)},
            "fan_outs": {
                "one_leaf": _row(self._one.counts()),
                "most_leaves": _row(self._most.counts()),
                "all_leaves": _row(self._all.counts()),
            },
            "distribution": _bars(requests),
            "attempts": {
                "first": last.firsts - first.firsts,
                "extra": last.extra - first.extra,
                "hedges": last.hedges - first.hedges,
                "hedge_wins": last.wins - first.wins,
                "denied": last.denied - first.denied,
            },
            "history": {
                "requests": self._differences("requests"),
                "first": self._differences("firsts"),
                "extra": self._differences("extra"),
            },
        }

    def _differences(self, name: str) -> list[int]:
        """Return a counter's growth in each second, oldest first."""
        totals = [getattr(second, name) for second in self._seconds]
        return [after - before for before, after in pairwise(totals)]


def _row(counts: Sequence[int]) -> dict[str, float | None]:
    return {name: _quantile_ms(counts, q) for name, q in PERCENTILES.items()}


def _quantile_ms(counts: Sequence[int], q: float) -> float | None:
    """Return the middle of the bin in which the quantile lies."""
    wanted = q * sum(counts)
    if not wanted:
        return None
    seen, i = counts[0], 0
    while seen < wanted:
        i += 1
        seen += counts[i]
    return round(1000.0 * math.sqrt(EDGES_S[i] * EDGES_S[i + 1]), 3)


def _bars(counts: Sequence[int]) -> dict[str, list[float] | list[int]]:
    """Return counts by bar, from the first that has any to the last, and the bars' edges."""
    bars = [sum(counts[i : i + BINS_A_BAR]) for i in range(0, BINS, BINS_A_BAR)]
    edges_ms = [round(1000.0 * edge, 4) for edge in (*EDGES_S[::BINS_A_BAR], EDGES_S[-1])]
    used = [i for i, count in enumerate(bars) if count]
    if not used:
        return {"edges_ms": [], "counts": []}
    return {
        "edges_ms": edges_ms[used[0] : used[-1] + 2],
        "counts": bars[used[0] : used[-1] + 1],
    }
