"""Which leaf holds which shards: a pure function, so a leaf knows from its number alone.

The owner of a shard is found by adding leaves one at a time. One leaf owns everything;
leaf ``m`` takes shards, one at a time, from whichever leaf owns most, until it owns
``shards // (m + 1)``. Two properties follow:

* owners are balanced: no leaf owns more than one shard above another;
* adding a leaf moves only what the new leaf owns, which is the least that balances.

Replica ``r`` of a shard sits on leaf ``(owner + r) % leaves``: never two on one leaf, and
with more leaves than twice the replicas there are leaves that share no shard.
"""

from __future__ import annotations

import heapq
from typing import Final

LEAVES_MAX: Final = 10_000
SHARDS_MAX: Final = 100_000
"""Beyond these a number is a slip of the keyboard, not a fleet."""


class BadPlacement(ValueError):
    """Numbers that no placement satisfies; the message names the one that is wrong."""


def owners(*, shards: int, leaves: int) -> tuple[int, ...]:
    """Return the leaf that owns each shard, by shard.

    Raises BadPlacement.
    """
    _check("shards", shards, 1, SHARDS_MAX)
    _check("leaves", leaves, 1, LEAVES_MAX)
    owned: list[list[int]] = [list(range(shards))]
    fullest = [(-shards, 0)]
    for newcomer in range(1, leaves):
        share = shards // (newcomer + 1)
        owned.append([_take_one(owned, fullest) for _ in range(share)])
        heapq.heappush(fullest, (-share, newcomer))
    owner = [0] * shards
    for leaf, mine in enumerate(owned):
        for shard in mine:
            owner[shard] = leaf
    return tuple(owner)


def _take_one(owned: list[list[int]], fullest: list[tuple[int, int]]) -> int:
    """Take a shard from the leaf that owns most, the lowest of equals.

    ``fullest`` is a heap of (minus the number owned, leaf).
    """
    minus_load, leaf = fullest[0]
    heapq.heapreplace(fullest, (minus_load + 1, leaf))
    return owned[leaf].pop()


def holders(*, shards: int, leaves: int, replicas: int) -> tuple[tuple[int, ...], ...]:
    """Return the leaves that hold each shard, its owner first.

    Raises BadPlacement.
    """
    _check_replicas(replicas, leaves)
    return tuple(
        tuple((owner + replica) % leaves for replica in range(replicas))
        for owner in owners(shards=shards, leaves=leaves)
    )


def shards_of(*, shards: int, ordinal: int, leaves: int, replicas: int) -> tuple[int, ...]:
    """Return the shards that leaf ``ordinal`` of ``leaves`` holds, ascending.

    Raises BadPlacement.
    """
    _check("leaves", leaves, 1, LEAVES_MAX)
    _check("ordinal", ordinal, 0, leaves - 1)
    _check_replicas(replicas, leaves)
    return tuple(
        shard
        for shard, owner in enumerate(owners(shards=shards, leaves=leaves))
        if (ordinal - owner) % leaves < replicas
    )


def _check_replicas(replicas: int, leaves: int) -> None:
    _check("replicas", replicas, 1, LEAVES_MAX)
    if replicas > leaves:
        raise BadPlacement(
            f"replicas must be at most the number of leaves ({leaves}), not {replicas}"
        )


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadPlacement(f"{name} must be between {least} and {most}, not {value}")
