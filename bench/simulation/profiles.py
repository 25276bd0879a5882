"""How long simulated leaves take: named profiles, and what each leg of each query draws.

A leg inside a fan-out takes the sum of three things:

    base        log-normal: the work itself, and all that a machine gets up to by the way
    component   one draw a query, of which every leg gets a share of its own: fanning out
                costs time that a request to one leaf does not see (sending, receiving, incast)
    stall       rare and long: a Pareto law from ``stall_min_ms`` on

A hedge's copy is a leg as any other: its own base, share and stall, the query's component.
A request to one leaf alone has the base only.

In most profiles leaves have no queues, and no leg makes another slower: extra load costs
nothing but itself. In those with ``machines`` all of this is work that occupies a worker, and
queries come so fast that workers are as busy as is said there.

What a leg takes depends on (seed, query, copy, leg) alone, not on what is hedged: policies
compared under one seed meet the very same trouble.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Final

from bench.simulation.background import Background, Pauses
from bench.simulation.machines import Machines
from leaf import plans
from leaf.interference import Outliers, Plan, Transit
from leaf.laws import LogNormal, Pareto

TICKS_PER_S: Final = 10_000
"""Times of legs are rounded to a tenth of a millisecond: what ends in one tick comes in one
frame, as it does from real leaves."""

RATE_PER_S: Final = 100.0
"""Queries a second where there are no queues. It decides only how fast history grows old and
how many queries learn from each other late."""

RECENT: Final = 100
"""Draws that are remembered in any case: those of queries in flight are asked for again with
every hedge."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The parameters. Times in milliseconds, shares from 0 to 1."""

    base_median_ms: float
    base_sigma: float
    component_median_ms: float
    component_sigma: float
    bad_query_share: float
    """So many queries have ``bad_query_factor`` times the component."""
    bad_query_factor: float
    component_share_power: float
    """A leg's share of the component is a uniform number to this power."""
    stall_share: float
    stall_min_ms: float
    stall_alpha: float
    slow_query_share: float = 0.0
    """So many queries are dear: base and component are ``slow_query_factor`` times as long, on
    all leaves."""
    slow_query_factor: float = 1.0
    machines: Machines | None = None
    """The leaves, where they have queues."""
    background: Background | None = None
    """What leaves without queues do besides."""

    def __post_init__(self) -> None:
        """Raise ValueError, naming the parameter, for a value out of range."""
        for name in ("bad_query_share", "stall_share", "slow_query_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        for name in ("base_median_ms", "component_share_power", "stall_alpha"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.machines is not None and self.background is not None:
            raise ValueError("background is of leaves without queues")

    def component_s(self, random: Random) -> float:
        """Draw a query's component, in seconds."""
        component_ms = self.component_median_ms * random.lognormvariate(0.0, self.component_sigma)
        if random.random() < self.bad_query_share:
            component_ms *= self.bad_query_factor
        return component_ms / 1000.0

    def dearness(self, random: Random) -> float:
        """Draw by what factor a query is slow everywhere: 1, or ``slow_query_factor``."""
        return self.slow_query_factor if random.random() < self.slow_query_share else 1.0

    def legs_s(
        self, random: Random, component_s: float, legs: int, dearness: float = 1.0
    ) -> array[float]:
        """Draw how long each of so many legs takes, in seconds."""
        component_s *= dearness
        uniform, exp, log, sqrt = random.random, math.exp, math.log, math.sqrt
        base_s, sigma, power = (
            self.base_median_ms / 1000.0 * dearness,
            self.base_sigma,
            self.component_share_power,
        )
        times_s: list[float] = []
        # Normal numbers come in pairs (G. E. P. Box, M. E. Muller, 1958). They are made here and
        # not by ``random.gauss`` because a third of a leg's cost would be that call.
        for _ in range((legs + 1) // 2):
            angle, radius = math.tau * uniform(), sigma * sqrt(-2.0 * log(1.0 - uniform()))
            times_s.append(
                base_s * exp(math.cos(angle) * radius) + component_s * uniform() ** power
            )
            times_s.append(
                base_s * exp(math.sin(angle) * radius) + component_s * uniform() ** power
            )
        del times_s[legs:]
        stall_share, stall_s, exponent = (
            self.stall_share,
            self.stall_min_ms / 1000.0,
            -1.0 / self.stall_alpha,
        )
        for leg in range(legs):
            if uniform() < stall_share:
                times_s[leg] += stall_s * (1.0 - uniform()) ** exponent
        return array("d", [int(time_s * TICKS_PER_S + 0.5) / TICKS_PER_S for time_s in times_s])

    def rate_per_s(self, legs: int, replicas: int) -> float:
        """Queries a second, each of so many legs and with a request to one leaf alone."""
        machines = self.machines
        if machines is None:
            return RATE_PER_S
        work_s = (self.mean_leg_ms + self.mean_base_ms / legs) / 1000.0 * machines.stretch
        return machines.utilisation * machines.workers * replicas / work_s

    @property
    def mean_base_ms(self) -> float:
        """What the base comes to on average."""
        return self.base_median_ms * math.exp(0.5 * self.base_sigma**2)

    @property
    def mean_leg_ms(self) -> float:
        """What a leg comes to on average, where stalls have a mean (``stall_alpha`` above 1)."""
        component_ms = self.component_median_ms * math.exp(0.5 * self.component_sigma**2)
        component_ms *= 1.0 + self.bad_query_share * (self.bad_query_factor - 1.0)
        work_ms = self.mean_base_ms + component_ms / (1.0 + self.component_share_power)
        stall_ms = self.stall_min_ms * self.stall_alpha / (self.stall_alpha - 1.0)
        dearness = 1.0 + self.slow_query_share * (self.slow_query_factor - 1.0)
        return work_ms * dearness + self.stall_share * stall_ms

    def alone_s(self, random: Random) -> float:
        """Draw how long a request to one leaf alone takes, in seconds."""
        return self.base_median_ms / 1000.0 * random.lognormvariate(0.0, self.base_sigma)


def of_plan(plan: Plan) -> Profile:
    """Return the profile of a plan of trouble that has the rules ``base``, ``component`` and
    ``stall``, so that simulated leaves meet what real ones do. Raises ValueError for any other.
    """
    match plan.rules:
        case (
            Transit(name="base", takes=LogNormal() as base),
            Transit(name="component", shared=True, takes=LogNormal() as component) as shared,
            Transit(name="stall", takes=Pareto() as stall) as struck,
        ):
            outliers = shared.outliers or Outliers(0.0, 1.0)
            return Profile(
                base_median_ms=base.median_ms,
                base_sigma=base.sigma,
                component_median_ms=component.median_ms,
                component_sigma=component.sigma,
                bad_query_share=outliers.share,
                bad_query_factor=outliers.factor,
                component_share_power=shared.share_power,
                stall_share=struck.probability,
                stall_min_ms=stall.least_ms,
                stall_alpha=stall.alpha,
            )
        case _:
            raise ValueError(f"simulated leaves cannot carry out this plan: {plan.about}")


TAIL_AT_SCALE: Final = of_plan(plans.profile("tail-at-scale"))
"""Fitted to a table, see ``python -m bench fit``."""

PROFILES: Final = {
    "tail-at-scale": TAIL_AT_SCALE,
    "bigtable": of_plan(plans.profile("bigtable")),
    # Nothing but short work: what some trouble does by itself.
    "calm": Profile(1.0, 0.5, 2.0, 0.3, 0.0, 1.0, 1.0 / 1.6, 0.0, 24.0, 3.1),
    # A storm of dear queries: one in ten takes five times as long on every leaf.
    "slow-queries": replace(
        TAIL_AT_SCALE,
        bad_query_share=0.0,
        bad_query_factor=1.0,
        slow_query_share=0.1,
        slow_query_factor=5.0,
    ),
    # Leaves with queues: nothing but work, and rare stalls, which occupy a worker. A spell of
    # slowness comes about once a minute and lasts half a second: of 200 leaves one or two are
    # slow at any time.
    "queues": Profile(
        *(5.0, 0.7, 0.0, 0.0, 0.0, 1.0, 1.0, 0.002, 50.0, 3.1),
        machines=Machines(2, 256, 0.7, spell_every_s=60.0, spell_s=0.5, spell_factor=3.0),
    ),
    # A leaf crashes every five minutes, and one leg in a thousand fails. More than half of the
    # capacity is spare, so that one replica can stand in for the other.
    "failures": Profile(
        *(5.0, 0.7, 0.0, 0.0, 0.0, 1.0, 1.0, 0.002, 50.0, 3.1),
        machines=Machines(2, 256, 0.4, crash_every_s=300.0, down_s=3.0, error_share=0.001),
    ),
}


class Draws:
    """What every leg of every query takes: a function of the seed.

    ``keep``: remember what was drawn, for runs that ask again and again.
    """

    def __init__(self, profile: Profile, legs: int, seed: int, *, keep: bool = False) -> None:
        """``legs`` is how many shards a query asks."""
        self.profile = profile
        self.legs = legs
        self._seed = seed
        self._pauses: dict[str, Pauses] = {}
        self._drawn = lru_cache(maxsize=None if keep else RECENT)(self._draw)

    def calm(self) -> Draws | None:
        """The same without dear queries, to the last leg; None where there are none anyway."""
        if not self.profile.slow_query_share:
            return None
        return Draws(replace(self.profile, slow_query_share=0.0), self.legs, self._seed, keep=True)

    def legs_s(self, query: int, copy: int) -> Sequence[float]:
        """Seconds of each leg: ``copy`` 0 for the first attempt, 1 for the first hedge, ..."""
        return self._drawn(query, copy)

    def _draw(self, query: int, copy: int) -> Sequence[float]:
        of_query = Random(f"{self._seed}:{query}:component")
        component_s = self.profile.component_s(of_query)
        dearness = self.profile.dearness(of_query)
        random = Random(f"{self._seed}:{query}:{copy}")
        return self.profile.legs_s(random, component_s, self.legs, dearness)

    def took_s(self, leaf: str, work_s: float, now: float) -> float:
        """Seconds that work takes a leaf, by name, which begins with it now."""
        background = self.profile.background
        if background is None:
            return work_s
        pauses = self._pauses.get(leaf)
        if pauses is None:
            random = Random(f"{self._seed}:{leaf}:background")
            pauses = self._pauses[leaf] = background.of(random)
        return int(pauses.took_s(work_s, now) * TICKS_PER_S + 0.5) / TICKS_PER_S

    def alone_s(self, query: int, copy: int) -> float:
        """Seconds of a request to one leaf."""
        return self.profile.alone_s(Random(f"{self._seed}:{query}:{copy}:alone"))
