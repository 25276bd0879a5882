"""Leaves that are persistently slower than their peers, and how they come back.

A leaf on probation gets no attempt that another replica can take, and a trickle of probes:
copies of legs that other leaves answer, sent to measure it. It returns by what they take.

    well --slow at most looks for PERSISTENT_S, can be spared--> on probation
    on probation --mean of its last probes near its peers'-----> well, slowly, as a new leaf
    on probation --no probe for UNPROBED_S---------------------> well, slowly, as a new leaf
    on probation --connection lost-----------------------------> gone; well when it is back

A leaf's peers are those that share shards with it, are connected and not on probation; what is
typical is the median of their smoothed latencies. A leaf can be spared when every shard that it
holds has another such leaf that is not slow itself, and no more than a third of the fleet is on
probation with it. So nobody is where the fleet is slow or all replicas of a shard are, and of two
leaves neither is. When its peers are lost, a leaf on probation serves at once
(``root.ranking.choose`` sees to it).

Ranking alone already gives a slow leaf less. What it cannot do is measure without callers: each
time it looks whether the leaf is better, a caller waits for the answer.

Probes are extra load and draw on the same budget as hedges. Where the operator allows no extra
load, nobody is put on probation.

Plain synchronous code: no clock, no loop, no randomness. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from root.budget import Budget
from root.ranking import Leaf

LOOK_S: Final = 0.25
"""How often leaves are compared. With a hundred leaves that takes 0.2 ms."""
LOOK_MAX_S: Final = 0.5
"""A look speaks for the time since the last one, but for no more than this: nobody has been seen
to be slow while nobody asked."""

SLOW: Final = 3.0
"""How many times as slow as its peers is slow. A leaf of half the speed does useful work and the
ranking deals with it; the smoothed latency of twenty legs is twice what it should be by chance
now and then, where one leg in seventy takes twenty times as long."""
PERSISTENT_S: Final = 2.0
"""For how long: no garbage collection, compaction or cold cache of a healthy leaf takes longer."""
FORGIVEN: Final = 0.5
"""Share of the time in which it is not slow that is held against the time in which it is: a leaf
that is slow for more than a third of the time is found out as well."""

FLEET_PART: Final = 3
"""No more than one in so many: what is left must carry the load, and where more are slow, slow is
what is typical."""

GOOD: Final = 1.5
"""How many times as slow as its peers is good enough to return: well below ``SLOW``, so that it
does not come and go, and above 1, since the mean of a few probes varies."""

PROBE_EVERY_S: Final = 0.2
"""Five probes a second and leaf: less load than a caller notices, and a verdict in two seconds."""

UNPROBED_S: Final = 10.0
"""A leaf that could not be probed for so long is not known any more; it is given another chance.
A leaf that has owed a probe for so long gets another one."""

PEERS_MAX: Final = 50
"""As many as a median needs, where a leaf shares shards with hundreds."""


class Probation:
    """Who is on probation. Owned by a root, for the whole fleet."""

    __slots__ = ("_budget", "_looked_s", "_peers", "_replicas", "_shards", "_slow_s", "leaves")

    def __init__(self, budget: Budget, now: float) -> None:
        """``budget`` is what probes draw on."""
        self.leaves: list[Leaf] = []
        self._budget = budget
        self._replicas: Sequence[Sequence[Leaf]] = ()
        self._peers: dict[Leaf, list[Leaf]] = {}
        self._shards: dict[Leaf, list[Sequence[Leaf]]] = {}
        self._slow_s: dict[Leaf, float] = {}
        self._looked_s = now

    def look(self, replicas: Sequence[Sequence[Leaf]], now: float) -> None:
        """Compare the leaves of a fleet, if it is time to; ``replicas`` has those of each shard.

        To be called whenever a query starts.
        """
        elapsed_s = now - self._looked_s
        if elapsed_s < LOOK_S:
            return
        self._looked_s = now
        if replicas is not self._replicas:
            self._meet(replicas)
        self.leaves = [leaf for leaf in self.leaves if self._stays(leaf, now)]
        if self._budget.allows_any:
            self._put_spare(self._persistently_slow(min(elapsed_s, LOOK_MAX_S), now), now)

    def due(self, now: float) -> list[tuple[Leaf, int]]:
        """Return the leaves to probe now, each with the number of probes it has had.

        None while leaves push back: that is no time for work that nobody waits for.
        """
        if self._budget.resting(now):
            return []
        return [
            (leaf, leaf.trial.sent)
            for leaf in self.leaves
            if leaf.trial is not None
            and now - leaf.trial.probed_s >= (UNPROBED_S if _is_probed(leaf) else PROBE_EVERY_S)
        ]

    def put(self, leaf: Leaf, now: float) -> None:
        """Put a leaf on probation, whatever speaks for it."""
        leaf.put_on_probation(now)
        if leaf not in self.leaves:  # it may have been lost, and be back, since the last look
            self.leaves.append(leaf)

    def _meet(self, replicas: Sequence[Sequence[Leaf]]) -> None:
        """Learn who shares shards with whom."""
        self._replicas = replicas
        self._shards = {}
        for shard in replicas:
            for leaf in shard:
                self._shards.setdefault(leaf, []).append(shard)
        self._peers = {}
        for leaf, shards in self._shards.items():
            peers = [
                peer for peer in dict.fromkeys(p for s in shards for p in s) if peer is not leaf
            ]
            self._peers[leaf] = peers[:: len(peers) // PEERS_MAX + 1]

    def _typical_s(self, leaf: Leaf) -> float | None:
        """Return the median latency of the leaf's peers; None where it has none.

        Of an even number it is the lower middle one: with two peers, one that is as slow as the
        leaf must not hide it.
        """
        known = sorted(p.latency_s for p in self._peers.get(leaf, ()) if p.preferred)
        return known[(len(known) - 1) // 2] if known else None

    def _stays(self, leaf: Leaf, now: float) -> bool:
        """Whether a leaf remains on probation; if it does not, let it go."""
        trial = leaf.trial
        if trial is None:
            return False
        typical_s = self._typical_s(leaf)
        took_s = trial.latency_s
        if took_s is not None and typical_s is not None and took_s <= GOOD * typical_s:
            leaf.rejoin(now, took_s)
            return False
        if now - trial.probed_s >= UNPROBED_S and not _is_probed(leaf):
            leaf.rejoin(now, leaf.latency_s if typical_s is None else typical_s)
            return False
        return True

    def _persistently_slow(self, elapsed_s: float, now: float) -> list[Leaf]:
        """Return the leaves that have been slow for long enough, the slowest first."""
        slow_s = self._slow_s
        latencies_s = [leaf.latency_s for leaf in self._shards if leaf.preferred]
        slow_at_least_s = SLOW * min(latencies_s, default=0.0)
        found: list[tuple[float, Leaf]] = []
        for leaf in self._shards:
            if not leaf.preferred:
                slow_s.pop(leaf, None)
            elif now <= leaf.idle_from_s or leaf.outstanding:  # else what is known of it is old
                times = 0.0
                if leaf.latency_s > slow_at_least_s:
                    times = leaf.latency_s / (self._typical_s(leaf) or leaf.latency_s)
                known_s = slow_s.pop(leaf, 0.0)
                known_s += elapsed_s if times > SLOW else -FORGIVEN * elapsed_s
                if known_s > 0.0:
                    slow_s[leaf] = min(PERSISTENT_S, known_s)
                if known_s >= PERSISTENT_S and times > SLOW:
                    found.append((times, leaf))
        found.sort(key=lambda pair: -pair[0])
        return [leaf for _, leaf in found]

    def _put_spare(self, slow: Sequence[Leaf], now: float) -> None:
        """Put on probation who can be spared."""
        leaves_max = len(self._shards) // FLEET_PART
        for leaf in slow:
            if len(self.leaves) < leaves_max and self._can_spare(leaf):
                self.put(leaf, now)

    def _can_spare(self, leaf: Leaf) -> bool:
        """Whether each of its shards is held by somebody else who is well, and not slow so far."""
        return all(
            any(peer.preferred and peer is not leaf and peer not in self._slow_s for peer in shard)
            for shard in self._shards[leaf]
        )


def _is_probed(leaf: Leaf) -> bool:
    """Whether a probe is on its way."""
    return leaf.probe is not None and leaf.probe.fate == "in_flight"
