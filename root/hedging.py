"""When a leg is late: the policies. Each is a small frozen value.

A policy answers one question, ``delay_s``: how long after its own send an attempt counts as
late, given the history of its query class and what this query has seen so far. Everything
else (candidates, budget, push-back, time left) is the gather's business and the same for
all policies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from root.latency import Latency

NEVER_S = math.inf

MIN_SAMPLES = 100
"""Legs to have seen before a learned trigger may fire: a p95 needs about that many."""


class Progress(Protocol):
    """What a policy may know of the query it decides about."""

    @property
    def legs(self) -> int:
        """How many shards the query was sent to."""
        ...

    @property
    def answered(self) -> int:
        """How many of them have been answered."""
        ...


class Policy(Protocol):
    """Decides when an attempt is late."""

    @property
    def name(self) -> str:
        """The word that selects it in a request or a setting."""
        ...

    @property
    def watches_siblings(self) -> bool:
        """Whether the answer changes as the query's own legs are answered."""
        ...

    def delay_s(self, history: Latency, progress: Progress) -> float:
        """Seconds from its own send after which an attempt is late; infinite for not yet."""
        ...


@dataclass(frozen=True, slots=True)
class Off:
    """Never hedges. Failures still move on to another replica."""

    name: str = "off"
    watches_siblings: bool = False

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Never."""
        return NEVER_S


@dataclass(frozen=True, slots=True)
class Fixed:
    """Hedges after a fixed delay: predictable, and wrong whenever the load changes."""

    after_s: float
    name: str = "fixed"
    watches_siblings: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a delay that is no time."""
        if not 0.0 <= self.after_s < NEVER_S:
            raise ValueError(f"after_s must be a time from 0, not {self.after_s}")

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Return the delay."""
        return self.after_s


@dataclass(frozen=True, slots=True)
class Quantile:
    """Hedges what takes longer than a share ``q`` of recent attempts of its class did."""

    q: float = 0.95
    name: str = "quantile"
    watches_siblings: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a share outside (0, 1)."""
        if not 0.0 < self.q < 1.0:
            raise ValueError(f"q must lie between 0 and 1, not {self.q}")

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Return the quantile, once there is a history."""
        if history.samples < MIN_SAMPLES:
            return NEVER_S
        quantile = history.quantile(self.q)
        return NEVER_S if quantile is None else quantile
