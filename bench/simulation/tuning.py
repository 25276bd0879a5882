"""Policies with a parameter of their own, set so that they spend a given share of extra load.

The comparison is only fair at equal cost, and only if nobody is held back: ``adaptive`` learns
its price while it runs and lives within the budget; the others get the parameter that spends
exactly as much over the very legs they will meet, which nobody could know beforehand.
"""

from __future__ import annotations

import math
from typing import Final

from bench.simulation.profiles import Draws
from bench.simulation.study import UNLIMITED, Plan, arm, simulate
from root.hedging import Fixed, Quantile, Sibling

SIBLING_QUORUMS: Final = (0.5, 0.75, 0.9, 0.95)

PILOT_QUERIES: Final = 4000
PILOTS: Final = 4
"""The quantile that a history gives is that of a bin, 4 % wide, so what it spends is found by
trying. A pilot of 4,000 queries of 100 legs tells it within a tenth."""


def fixed(plan: Plan, draws: Draws, extra_load: float) -> Fixed:
    """The delay that so many legs exceed."""
    legs_s = [leg_s for query in range(plan.queries) for leg_s in draws.legs_s(query, 0)]
    return Fixed(_upper(legs_s, extra_load))


def quantile(plan: Plan, draws: Draws, extra_load: float) -> Quantile:
    """The quantile at which the history's bins let so many through."""
    pilot = _pilot(plan)
    share = extra_load
    for _ in range(PILOTS):
        spent = arm(simulate(pilot, draws, Quantile(1.0 - share), UNLIMITED)).extra_load
        share = min(0.5, share * min(2.0, max(0.5, extra_load / max(spent, 1e-6))))
    return Quantile(1.0 - share)


def sibling(plan: Plan, draws: Draws, extra_load: float) -> Sibling | None:
    """The quorum with the least mean time of a query, and the factor that so many legs exceed;
    None where no quorum leaves so many.
    """
    pilot = _pilot(plan)
    candidates = [
        _factored(plan, draws, quorum, extra_load)
        for quorum in SIBLING_QUORUMS
        if plan.leaves - math.ceil(quorum * plan.leaves) > extra_load * plan.leaves
    ]
    return min(
        candidates,
        key=lambda one: sum(simulate(pilot, draws, one, UNLIMITED).all_s),
        default=None,
    )


def _factored(plan: Plan, draws: Draws, quorum: float, extra_load: float) -> Sibling:
    heard = math.ceil(quorum * plan.leaves)
    ratios = []
    for query in range(plan.queries):
        ended_s = sorted(draws.legs_s(query, 0))
        quorum_s = ended_s[heard - 1]
        ratios += [leg_s / quorum_s for leg_s in ended_s]
    return Sibling(quorum, max(1.0, _upper(ratios, extra_load)))


def _pilot(plan: Plan) -> Plan:
    """The first queries of a plan."""
    queries = min(plan.queries, PILOT_QUERIES)
    return Plan(plan.profile, plan.leaves, plan.replicas, queries, plan.seed)


def _upper(values: list[float], share: float) -> float:
    """The value that this share of them exceeds."""
    values.sort()
    return values[min(len(values) - 1, int(len(values) * (1.0 - share)))]
