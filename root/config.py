"""The root's settings: one frozen value, validated when made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from leaf.pulse import BLOCKED_MS, BLOCKED_MS_MAX
from root.budget import BudgetTerms
from root.hedging import Adaptive, Fixed, Off, Policy, Quantile, Shadow, Sibling, Tied, Together
from root.requests import TIMEOUT_MS_MAX
from root.slow import KEPT_MAX

POLICIES: Final = "off, shadow, fixed, quantile, sibling, adaptive, together or tied"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may set. Raises ValueError, naming the setting, for a bad value."""

    name: str = "root"
    timeout_ms: float = 2000.0
    """For a request that names none."""
    min_coverage: float = 1.0
    """Share of documents that must be searched, for a request that names none."""
    hedge: str = "adaptive"
    hedge_delay_ms: float = 10.0
    """For the policy ``fixed``."""
    hedge_quantile: float = 0.95
    """For the policy ``quantile``."""
    hedge_quorum: float = 0.5
    """For the policy ``sibling``: the share of legs that others are compared with."""
    hedge_factor: float = 2.0
    """For the policy ``sibling``: how many times as long is late."""
    attempts_max: int = 2
    """Attempts one shard of one query may cost, hedges and failovers included; those that were
    lost with a leaf's connection do not count."""
    budget: BudgetTerms = field(default_factory=BudgetTerms)
    in_flight_max: int = 1000
    """Requests in work at once; more are told 429. At 2 s each that is 500 a second."""
    canary: bool = True
    """Whether queries of unproven shapes are tried on one leaf first."""
    slow_queries: int = 10
    """Of the slowest of each minute so many are kept, with all of their attempts; 0 for none."""
    blocked_ms: float = BLOCKED_MS
    """An event loop later than this is logged with the stack that holds it up."""
    watch: bool = True
    """Whether what operators look at is counted, timed and kept."""
    seed: int = 0
    """Of the choice between replicas."""

    def __post_init__(self) -> None:
        """Check every range."""
        _within("timeout_ms", self.timeout_ms, 1, TIMEOUT_MS_MAX)
        _within("min_coverage", self.min_coverage, 0, 1)
        _within("hedge_delay_ms", self.hedge_delay_ms, 0, TIMEOUT_MS_MAX)
        _within("attempts_max", self.attempts_max, 1, 10)
        _within("in_flight_max", self.in_flight_max, 1, 100_000)
        _within("slow_queries", self.slow_queries, 0, KEPT_MAX)
        _within("blocked_ms", self.blocked_ms, 1, BLOCKED_MS_MAX)
        _within("hedge_factor", self.hedge_factor, 1, 1000)
        _inside("hedge_quantile", self.hedge_quantile)
        _inside("hedge_quorum", self.hedge_quorum)
        self.policy(self.hedge)

    def policy(self, name: str) -> Policy:
        """Return the policy of that name, with this operator's parameters."""
        match name:
            case "off":
                return Off()
            case "shadow":
                return Shadow()
            case "fixed":
                return Fixed(self.hedge_delay_ms / 1000.0)
            case "quantile":
                return Quantile(self.hedge_quantile)
            case "sibling":
                return Sibling(self.hedge_quorum, self.hedge_factor)
            case "adaptive":
                return Adaptive()
            case "together":
                return Together()
            case "tied":
                return Tied()
            case _:
                raise ValueError(f"hedge must be {POLICIES}, not {name!r}")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must be from {low:g} to {high:g}, not {value:g}")


def _inside(name: str, share: float) -> None:
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, not {share}")
