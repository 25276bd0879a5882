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

TIED_ROUND_TRIPS = 2.0
"""By so many round trips the second of two tied copies follows the first. A leaf that begins
at once says so to the other within one, so that on an idle fleet nothing is done twice."""

MIN_SAMPLES = 100
"""Legs to have seen before a learned trigger may fire: a p95 needs about that many."""

PRICED_SHARE_MAX = 0.16
"""``adaptive`` charges a query for no more than this share of its legs. A query that hardly
anybody has answered is in the far tail, where it is worth more than its legs. On the simulated
profile tail-at-scale at 5 % extra load, a fourteenth takes 4 % off the slowest query in a
hundred and adds as much to the median."""

HEARD_KEPT = 0.8
"""What each answer leaves of the time for which a query has been silent, see ``heard_s``. The
gap after one answer is chance, that after the last few is not: on that profile at 5 %, 0.6
takes as long in the median and 1 % longer in the 99th percentile, 0.87 as long in both."""

INDEPENDENT_LEAVES = 3
"""Where so many leaves or more are asked and none has answered, ``adaptive`` blames the query:
that each of them is in trouble of its own is far less likely. Two replicas of everything are
two leaves, and both can have one reason to be late."""


class Progress(Protocol):
    """What a policy may know of the query it decides about."""

    @property
    def legs(self) -> int:
        """How many shards the query was sent to."""
        ...

    @property
    def leaves(self) -> int:
        """How many leaves it has been sent to."""
        ...

    @property
    def open_legs(self) -> int:
        """How many of them are undecided: neither answered nor given up."""
        ...

    @property
    def answered(self) -> int:
        """How many of them have been answered, failures apart. As what follows, it is told to
        policies that watch siblings only.
        """
        ...

    @property
    def heard_s(self) -> float:
        """Seconds from its start to its latest answers: their mean, in which each weighs
        1 - HEARD_KEPT and all before it the rest; 0 before the first.
        """
        ...

    @property
    def latest_s(self) -> float:
        """Seconds from its start to its latest answer; 0 before the first."""
        ...

    @property
    def round_trip_s(self) -> float:
        """Seconds to the farthest leaf that may be asked and back, as pings take them."""
        ...

    @property
    def quorum_s(self) -> float | None:
        """Seconds until the policy's ``quorum`` of legs had been answered; None before that.
        A failure is no answer.
        """
        ...

    @property
    def price_s(self) -> float | None:
        """What an extra attempt costs in seconds, see ``root.pace``; None before it is known."""
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

    @property
    def quorum(self) -> float:
        """The share of legs whose time it wants to know: ``Progress.quorum_s``."""
        ...

    @property
    def paced(self) -> bool:
        """Whether it lives by the price, so that the price may be learned from it."""
        ...

    def delay_s(self, history: Latency, progress: Progress) -> float:
        """Seconds from its own send after which an attempt is late; infinite for not yet."""
        ...


@dataclass(frozen=True, slots=True)
class Off:
    """Never hedges. Failures still move on to another replica."""

    name: str = "off"
    watches_siblings: bool = False
    quorum: float = 1.0
    paced: bool = False

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Never."""
        return NEVER_S


@dataclass(frozen=True, slots=True)
class Shadow(Off):
    """Never hedges; what hedging would have done is worked out afterwards: ``root.rehearsal``."""

    name: str = "shadow"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Hedges after a fixed delay: predictable, and wrong whenever the load changes."""

    after_s: float
    name: str = "fixed"
    watches_siblings: bool = False
    quorum: float = 1.0
    paced: bool = False

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
    quorum: float = 1.0
    paced: bool = False

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


@dataclass(frozen=True, slots=True)
class Sibling:
    """Hedges what is late among its own siblings: once a share ``quorum`` of a query's legs
    have been answered, the others are late at ``factor`` times the time that took.

    A query that is slow everywhere is slow for all its legs, and none of them is late.
    """

    quorum: float = 0.5
    factor: float = 2.0
    name: str = "sibling"
    watches_siblings: bool = True
    paced: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError, naming the parameter, for one out of range."""
        if not 0.0 < self.quorum < 1.0:
            raise ValueError(f"quorum must lie between 0 and 1, not {self.quorum}")
        if not 1.0 <= self.factor < NEVER_S:
            raise ValueError(f"factor must be a number from 1, not {self.factor}")

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Never before the quorum has answered."""
        quorum_s = progress.quorum_s
        return NEVER_S if quorum_s is None else self.factor * quorum_s


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Hedges all that holds a query up once the query has been silent long enough to pay for it.

    While answers keep coming, the legs that are open are as slow as their siblings; when no
    more come, they are late because of their machines. The silence is measured from the latest
    few answers, so that neither a gap nor a straggler decides alone. How long it must be depends
    on what ending it costs: one price for each open leg, but at most so many. The price is
    learned so that the whole comes to the budget, see ``root.pace``.

    A query that several leaves were asked and none has answered is slow by nature, and copies
    would be as slow. Once somebody has, a pause no longer than those between the answers so
    far is no silence.
    """

    name: str = "adaptive"
    watches_siblings: bool = True
    quorum: float = 1.0
    paced: bool = True

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Never before there is a price, nor before anybody has answered."""
        price_s = progress.price_s
        if price_s is None:
            return NEVER_S
        answered = progress.answered
        if not answered and progress.leaves >= INDEPENDENT_LEAVES:
            return NEVER_S
        priced = min(progress.open_legs, PRICED_SHARE_MAX * progress.legs + 1.0)
        delay_s = progress.heard_s + price_s * priced
        if not answered:
            return delay_s
        pause_s = progress.latest_s / answered
        return max(delay_s, progress.latest_s + pause_s)


@dataclass(frozen=True, slots=True)
class Together:
    """Sends to as many replicas as allowed at once: the least delay, at full cost."""

    name: str = "together"
    watches_siblings: bool = False
    quorum: float = 1.0
    paced: bool = False

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """At once."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Tied:
    """Puts every leg into the queues of two leaves that know of each other: the one that begins
    has the other drop its copy. What is saved is waiting in queues, see ``root.race``.
    """

    name: str = "tied"
    watches_siblings: bool = False
    quorum: float = 1.0
    paced: bool = False

    def delay_s(self, history: Latency, progress: Progress) -> float:  # noqa: ARG002
        """Long enough for the first leaf to say that it has begun."""
        return TIED_ROUND_TRIPS * progress.round_trip_s
