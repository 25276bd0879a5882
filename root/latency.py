"""How long attempts take: a quantile estimator that is honest about losers.

Two mistakes make a learned hedging trigger useless. Leaving cancelled losers out pulls the
estimate down (only the fast are ever seen); recording a hedged leg at its total time, or a
loser at the moment the winner came, pushes it to where hedging stops. Here a winner counts
at its own time from its own send, and a loser as a *censored* sample: at least this long.
Quantiles come from the Kaplan-Meier product-limit estimate over both:

    S(t) = product over bins up to t of (1 - finished / at_risk)

(E. L. Kaplan, P. Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958).
Where every sample is finished this is the plain empirical distribution.

Memory is constant: geometric bins, in a few windows that rotate so that the estimate follows
the system. Failures are never recorded: a fast error says nothing about how long work takes.
"""

from __future__ import annotations

import math

BIN_GROWTH = 1.04
"""Each bin is 4 % wider than the last: a quantile is right within that, in 510 bins."""
SMALLEST_S = 10e-6
"""No leg is faster than the system calls that carry it; the largest is beyond any timeout."""
LARGEST_S = 5_000.0

_SCALE = 1.0 / math.log(BIN_GROWTH)
_OFFSET = -math.log(SMALLEST_S) * _SCALE
BINS = int(math.log(LARGEST_S) * _SCALE + _OFFSET) + 2

WINDOWS = 6
WINDOW_S = 5.0
"""Half a minute of history: long enough for a p99 at ten legs a second, short enough to forget
a bad spell before a person has noticed it is over."""

WINDOW_SAMPLES_MIN = 25
"""A window that has seen fewer goes on: at one leg a second, half a minute is no history, and
nothing would ever be hedged. So there are at least a hundred in the windows before it."""

IDLE_S = 60.0
"""Each such time without a query takes the oldest window along: what is left of a history after
some minutes of silence speaks for another day."""

REFRESH_S = 0.1
"""The curve is recomputed when it is older than this. That takes about 150 µs, so at 10,000
legs a second 0.15 µs a leg, and no trigger needs to be fresher."""

EDGES_S = [math.exp((i - _OFFSET) / _SCALE) for i in range(BINS + 1)]


def _bin(seconds: float) -> int:
    if seconds <= SMALLEST_S:
        return 0
    return min(BINS - 1, int(math.log(seconds) * _SCALE + _OFFSET))


class _Window:
    __slots__ = ("censored", "finished")

    def __init__(self) -> None:
        self.finished = [0] * BINS
        self.censored = [0] * BINS


class Latency:
    """Attempt times of one query class. Times are seconds; ``now`` need only never go back."""

    __slots__ = (
        "_closed",
        "_current",
        "_curve",
        "_curve_at_s",
        "_finished",
        "_last_bin",
        "_last_s",
        "_rotated_at_s",
        "_windows",
        "samples",
    )

    def __init__(self, now: float) -> None:
        """Start without any history."""
        self._windows = [_Window()]
        self._current = self._windows[0]
        self._finished = self._current.finished
        self._rotated_at_s = now
        self._curve: list[tuple[float, float]] = []
        self._curve_at_s = now
        self._last_s = 0.0
        self._last_bin = 0
        self._closed = 0
        self.samples = 0

    def finished(self, seconds: float) -> None:
        """Record an attempt that was answered after ``seconds``."""
        # What one frame answers was mostly sent together, so the same time comes many times.
        if seconds != self._last_s:
            self._last_s = seconds
            self._last_bin = _bin(seconds)
        self._finished[self._last_bin] += 1
        self.samples += 1

    def at_least(self, seconds: float) -> None:
        """Record an attempt that was given up, unanswered, after ``seconds``."""
        self._current.censored[_bin(seconds)] += 1
        self.samples += 1

    def rotate(self, now: float) -> None:
        """Forget what is older than the windows; call now and then, at least once a query."""
        turns = int((now - self._curve_at_s) / IDLE_S)
        if now - self._curve_at_s >= REFRESH_S:
            self._curve = []
            self._curve_at_s = now
        if now - self._rotated_at_s >= WINDOW_S and (
            self.samples - self._closed >= WINDOW_SAMPLES_MIN
        ):
            turns += 1
        if turns <= 0:
            return
        for _ in range(min(turns, WINDOWS)):
            self._windows.append(_Window())
        self._windows = self._windows[-WINDOWS:]
        self._current = self._windows[-1]
        self._finished = self._current.finished
        self._rotated_at_s = now
        self.samples = sum(sum(w.finished) + sum(w.censored) for w in self._windows)
        self._closed = self.samples

    def quantile(self, q: float) -> float | None:
        """Return the time within which a share ``q`` of attempts finish; None without history.

        Where so many of the slowest were given up that the share was never seen to finish, it
        is the longest time that was: the quantile is at least that.
        """
        seconds = None
        for share, seconds in self._distribution():  # noqa: B007
            if share >= q:
                break
        return seconds

    def _distribution(self) -> list[tuple[float, float]]:
        """Return (share finished, within seconds) in rising order, cached between refreshes."""
        if not self._curve:
            self._curve = self._product_limit()
        return self._curve

    def _product_limit(self) -> list[tuple[float, float]]:
        finished = [
            sum(column) for column in zip(*(w.finished for w in self._windows), strict=True)
        ]
        censored = [
            sum(column) for column in zip(*(w.censored for w in self._windows), strict=True)
        ]
        at_risk = sum(finished) + sum(censored)
        surviving = 1.0
        curve = []
        for i in range(BINS):
            if finished[i]:
                surviving *= 1.0 - finished[i] / at_risk
                curve.append((1.0 - surviving, EDGES_S[i + 1]))
            at_risk -= finished[i] + censored[i]
        return curve
