"""What no policy can beat: hedging by one who knows what every attempt will take.

``clairvoyant``: with extra attempts for a share of all legs, sends copies at time zero of
those legs whose copies shorten their queries most, in milliseconds an extra attempt.
To shorten a query by hedging k of its legs they must be its k slowest, so a query offers

    T(0) > T(1) > ...    T(k) = max(time of leg k + 1, best of both for the k slowest)

and of the lower convex hull of each such curve the steepest pieces are bought first, over all
queries, until the budget is spent. ``fastest``: copies of everything at time zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from bench.simulation.profiles import Draws
from bench.simulation.study import MOST, Plan, Times

Watcher = Callable[[Sequence[float]], None]
"""Is told when the legs of each query end, in seconds, ascending."""


def clairvoyant(
    plan: Plan, draws: Draws, extra_load: float, watch: Watcher = lambda _: None
) -> Times:
    """Return the times with the best use of that many copies, all sent at time zero."""
    tokens = int(extra_load * plan.queries * plan.leaves)
    offers = []
    for query in range(plan.queries):
        curve = _times_by_hedges(draws.legs_s(query, 0), draws.legs_s(query, 1))
        offers += [(-gain, query, upto) for gain, upto in _steps(curve)]
    hedged = [0] * plan.queries
    for _, query, upto in sorted(offers):
        cost = upto - hedged[query]
        if cost > tokens:
            break
        tokens -= cost
        hedged[query] = upto
    return _times(plan, draws, hedged, watch)


def fastest(plan: Plan, draws: Draws) -> Times:
    """Return the times with two copies of everything."""
    return _times(plan, draws, [plan.leaves] * plan.queries)


def _times_by_hedges(first_s: Sequence[float], copy_s: Sequence[float]) -> list[float]:
    """A query's time by the number of its slowest legs that are hedged, 0 to all, in seconds."""
    slowest = sorted(range(len(first_s)), key=first_s.__getitem__, reverse=True)
    times_s = []
    hedged_s = 0.0
    for leg in slowest:
        times_s.append(max(hedged_s, first_s[leg]))
        hedged_s = max(hedged_s, min(first_s[leg], copy_s[leg]))
    return [*times_s, hedged_s]


def _steps(curve: Sequence[float]) -> list[tuple[float, int]]:
    """The lower convex hull of a falling curve as (gain an extra attempt, upto how many)."""
    hull = [0]
    for k in range(1, len(curve)):
        if curve[k] >= curve[hull[-1]]:
            continue
        while len(hull) > 1 and _slope(curve, hull[-2], hull[-1]) >= _slope(curve, hull[-1], k):
            hull.pop()
        hull.append(k)
    return [(-_slope(curve, a, b), b) for a, b in pairwise(hull)]


def _slope(curve: Sequence[float], a: int, b: int) -> float:
    return (curve[b] - curve[a]) / (b - a)


def _times(
    plan: Plan, draws: Draws, hedged: Sequence[int], watch: Watcher = lambda _: None
) -> Times:
    times = Times(legs=plan.queries * plan.leaves, extra=sum(hedged))
    most = math.ceil(plan.leaves * MOST) - 1
    for query, count in enumerate(hedged):
        first_s, copy_s = draws.legs_s(query, 0), draws.legs_s(query, 1)
        ended_s = sorted(first_s)
        if count:
            slowest = sorted(range(len(first_s)), key=first_s.__getitem__, reverse=True)
            best_s = list(first_s)
            for leg in slowest[:count]:
                if copy_s[leg] < first_s[leg]:
                    best_s[leg] = copy_s[leg]
                    times.hedge_wins += 1
            ended_s = sorted(best_s)
        times.all_s.append(ended_s[-1])
        times.most_s.append(ended_s[most])
        watch(ended_s)
    return times
