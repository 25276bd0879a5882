"""The rows of the table: how long one leaf takes, and how long until most and all have finished.

one_leaf                 a request to one leaf alone
95_percent, 100_percent  from the start of a fan-out until so many of its legs are answered
random_leaf_in_fan_out   one leg of it, at random: no request alone, so slower than the first
first_leaf               its quickest leg
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from random import Random
from typing import Final

import msgspec

from bench.confidence import Curve, Estimate, curve, estimate

MOST: Final = 0.95
PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}

ROWS: Final = {
    "one_leaf": "one leaf finishes",
    "95_percent": "95 % of leaves finish",
    "100_percent": "100 % of leaves finish",
    "random_leaf_in_fan_out": "a random leaf of a fan-out",
    "first_leaf": "the first leaf of a fan-out",
}


class Rows:
    """Collects the legs of many queries; times in milliseconds."""

    def __init__(self, seed: int) -> None:
        """``seed`` decides which leg is the random one."""
        self._random = Random(f"{seed}:random-leaf")
        self.times_ms: dict[str, array[float]] = {name: array("d") for name in ROWS}

    def alone(self, took_ms: float) -> None:
        """A request to one leaf alone took so long."""
        self.times_ms["one_leaf"].append(took_ms)

    def fan_out(self, ended_ms: Sequence[float]) -> None:
        """The legs of a query were answered so long after its start."""
        in_order, times_ms = sorted(ended_ms), self.times_ms
        times_ms["95_percent"].append(in_order[math.ceil(len(in_order) * MOST) - 1])
        times_ms["100_percent"].append(in_order[-1])
        times_ms["first_leaf"].append(in_order[0])
        times_ms["random_leaf_in_fan_out"].append(
            in_order[int(self._random.random() * len(in_order))]
        )

    def extend(self, other: Rows) -> None:
        """Add what another has collected."""
        for name, times_ms in other.times_ms.items():
            self.times_ms[name].extend(times_ms)

    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """Every percentile of every row that has anything, with its interval."""
        return {
            row: {name: estimate(in_order, at, ordered=True) for name, at in PERCENTILES.items()}
            for row, times_ms in self.times_ms.items()
            if (in_order := sorted(times_ms))
        }

    def curve(self, row: str) -> Curve:
        """The distribution of a row, for a picture."""
        return curve(self.times_ms[row])


class Cells(msgspec.Struct, frozen=True):
    """Rows in figures: ``rows[row][percentile]`` in ms, and the interval of each."""

    rows: dict[str, dict[str, float]]
    intervals: dict[str, dict[str, tuple[float, float | None]]]

    @classmethod
    def of(cls, estimates: dict[str, dict[str, Estimate]]) -> Cells:
        """Take the estimates apart."""
        return cls(
            {
                row: {name: round(one.value, 4) for name, one in cells.items()}
                for row, cells in estimates.items()
            },
            {
                row: {name: (one.low, one.high) for name, one in cells.items()}
                for row, cells in estimates.items()
            },
        )
