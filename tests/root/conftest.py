"""What tests of the root's decisions start from: leaves, terms and a history to speak of."""

from __future__ import annotations

import math
from random import Random

from hypothesis import HealthCheck, settings

from root.budget import Budget, BudgetTerms
from root.latency import Latency
from root.ledger import Ledger
from root.race import Terms
from root.ranking import Leaf

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a busy machine must not fail a test

LONG_AGO_S = -1000.0
"""When the leaves joined: at time 0 none of them is new any more."""

PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=0.0, burst=1000.0)
NOTHING_EXTRA = BudgetTerms(max_extra_load=0.0, floor_per_s=0.0, burst=0.0)


def leaves(count: int) -> list[Leaf]:
    """Connected leaves ``a``, ``b``, ... that are equal in everything."""
    return [busy(Leaf("abcdefgh"[i], LONG_AGO_S)) for i in range(count)]


def busy(leaf: Leaf) -> Leaf:
    """The leaf, as one that is chosen all the time: nothing is forgiven for idleness."""
    leaf.idle_from_s = math.inf
    return leaf


def history_of(took_s: float, samples: int = 1000) -> Latency:
    """A history in which every attempt took the same time."""
    history = Latency(0.0)
    for _ in range(samples):
        history.finished(took_s)
    return history


def terms(
    *,
    budget: BudgetTerms = PLENTY,
    history: Latency | None = None,
    attempts_max: int = 2,
    seed: int = 0,
) -> Terms:
    """Terms with a budget that denies nothing and a history of 10 ms, unless told otherwise."""
    return Terms(
        random=Random(f"{seed}:replicas"),
        budget=Budget(budget, 0.0),
        ledger=Ledger(),
        history=history_of(0.010) if history is None else history,
        attempts_max=attempts_max,
    )
