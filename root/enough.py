"""Good enough: how long a query waits for more once it has what its caller asks for.

A caller who asks for a share of the documents (``min_coverage``) may get more, but not at any
price. Once the share has been searched, what is still open is waited for until

    base * (1 + open documents / documents that may be missing)
    base = the longer of: the time in which the share was searched,
           the time in which all but ``PATIENCE_Q`` of recent attempts end

seconds after the start. So an ordinary leg is always waited for, the wait shrinks with every
answer, as there is less to gain, and it never exceeds twice the base. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from root.hedging import MIN_SAMPLES, NEVER_S
from root.latency import Latency

PATIENCE_Q: Final = 0.95
"""A leg that takes longer than this share of its class is a straggler, not a slow worker."""


class Enough:
    """What one query still lacks of all that it could search."""

    __slots__ = ("_documents", "_lacking", "_may_miss", "_open", "_reached_s")

    def __init__(self, documents: Sequence[int], may_miss: float) -> None:
        """``documents`` by slot of the gather; ``may_miss`` of them need not be searched.
        Raises ValueError where that is none: such a query waits for all.
        """
        if not may_miss > 0.0:
            raise ValueError(f"may_miss must be more than 0, not {may_miss}")
        self._documents = documents
        self._may_miss = may_miss
        self._open = self._lacking = sum(documents)
        self._reached_s: float | None = None

    def decided(self, slot: int, elapsed_s: float, *, answered: bool) -> None:
        """Note that a shard has been answered for, or is lost, so long after the start."""
        self._open -= self._documents[slot]
        if answered:
            self._lacking -= self._documents[slot]
            if self._reached_s is None and self._lacking <= self._may_miss:
                self._reached_s = elapsed_s

    def patience_s(self, history: Latency) -> float:
        """Return how long after its start the query should end as it is; infinite for not yet."""
        if self._reached_s is None or not self._open or history.samples < MIN_SAMPLES:
            return NEVER_S
        usual_s = history.quantile(PATIENCE_Q)
        if usual_s is None:
            return NEVER_S
        return max(self._reached_s, usual_s) * (1.0 + self._open / self._may_miss)
