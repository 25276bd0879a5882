"""Which legs are tied, and which of them have begun on another leaf.

A tied leg waits in the queues of two leaves. When one begins it, the other is told, and drops
its copy if that still waits. A notice may come before the copy does (the copy is sent a moment
later), so what has begun elsewhere is remembered for a while, and so is what waits here.

To forget is harmless, and so is a notice that gets lost: then the leg is done twice, and the
root keeps one answer. So everything here is bounded, and the oldest goes first.

Pure: no clock, no loop. Times in seconds, any one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

KEEP_S: Final = 5.0
"""How long a tie is known: longer than a query has by default, so longer than most wait."""

TIES_MAX: Final = 10_000
"""Ties known at once: two thousand a second, one for each query and phase."""

BEGUN_MAX: Final = 100_000
"""Legs begun elsewhere that are remembered at once: some megabytes."""


class Waiting(NamedTuple):
    """A leg of this leaf: the connection that it came by, and its number there."""

    channel: int
    leg: int


class _Tie:
    """What is known by one key: legs here by shard, and shards begun elsewhere."""

    __slots__ = ("begun", "here", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.here: dict[int, Waiting] = {}
        self.begun: set[int] = set()


class Ties:
    """The ties of one leaf. Not thread-safe: they belong to its event loop."""

    def __init__(self) -> None:
        self._ties: dict[str, _Tie] = {}
        self._begun = 0

    def arrived(
        self, key: str, legs: Iterable[tuple[int, Waiting]], now: float
    ) -> Sequence[Waiting]:
        """Note tied legs, each with its shard; return those that have begun elsewhere."""
        tie = self._tie(key, now)
        late: list[Waiting] = []
        for shard, leg in legs:
            if shard in tie.begun:
                late.append(leg)
            else:
                tie.here[shard] = leg
        return late

    def begun(self, key: str, shards: Iterable[int], now: float) -> Sequence[Waiting]:
        """Note that the other leaf has begun these; return the legs here to be dropped."""
        tie = self._tie(key, now)
        known = len(tie.begun)
        tie.begun.update(shards)
        self._begun += len(tie.begun) - known
        self._forget(now)
        return [tie.here.pop(shard) for shard in shards if shard in tie.here]

    def __len__(self) -> int:
        return len(self._ties)

    def _tie(self, key: str, now: float) -> _Tie:
        self._forget(now)
        tie = self._ties.get(key)
        if tie is None:
            tie = self._ties[key] = _Tie(now)
        return tie

    def _forget(self, now: float) -> None:
        """Let go of what is old, and of the oldest where there is too much."""
        while self._ties:
            key, tie = next(iter(self._ties.items()))
            too_many = len(self._ties) >= TIES_MAX or self._begun > BEGUN_MAX
            if not too_many and now - tie.since_s < KEEP_S:
                return
            del self._ties[key]
            self._begun -= len(tie.begun)
