"""Which leaf holds which shards: a pure function, so a leaf knows from its number alone.

The owner of a shard is found by adding leaves one at a time. One leaf owns everything;
leaf ``m`` takes shards, one at a time, from whichever leaf owns most, until it owns
``shards // (m + 1)``. Two properties follow:

* owners are balanced: no leaf owns more than one shard above another;
* adding a leaf moves only what the new leaf owns, which is the least that balances.

Replica ``r`` of a shard sits on leaf ``(owner + r) % leaves``: never two on one leaf, and
with more leaves than twice the replicas there are leaves that share no shard.

That is the rule. Where load differs, shards can be *chosen* leaves of their own instead, more
than the rule gives them or others (``index_data.placement_file`` keeps them).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final

Chosen = Mapping[int, Sequence[int]]
"""The leaves that hold a shard, by shard, of those for which the rule does not decide."""

BY_THE_RULE: Final[Chosen] = {}

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


def holders(
    *, shards: int, leaves: int, replicas: int, chosen: Chosen = BY_THE_RULE
) -> tuple[tuple[int, ...], ...]:
    """Return the leaves that hold each shard: the chosen ones, or by the rule, owner first.

    Raises BadPlacement.
    """
    check_fleet(leaves, replicas)
    check_chosen(chosen, shards=shards, leaves=leaves, replicas=replicas)
    return tuple(
        tuple(chosen[shard])
        if shard in chosen
        else tuple((owner + replica) % leaves for replica in range(replicas))
        for shard, owner in enumerate(owners(shards=shards, leaves=leaves))
    )


def shards_of(
    *, shards: int, ordinal: int, leaves: int, replicas: int, chosen: Chosen = BY_THE_RULE
) -> tuple[int, ...]:
    """Return the shards that leaf ``ordinal`` of ``leaves`` holds, ascending.

    Raises BadPlacement.
    """
    _check("leaves", leaves, 1, LEAVES_MAX)
    _check("ordinal", ordinal, 0, leaves - 1)
    table = holders(shards=shards, leaves=leaves, replicas=replicas, chosen=chosen)
    return tuple(shard for shard, held in enumerate(table) if ordinal in held)


def check_chosen(chosen: Chosen, *, shards: int, leaves: int, replicas: int) -> None:
    """Refuse a choice that names what is not there or weakens a shard. Raises BadPlacement."""
    for shard, held in chosen.items():
        if not 0 <= shard < shards:
            raise BadPlacement(f"chosen: there is no shard {shard}, but {shards} from 0")
        for leaf in held:
            _check(f"chosen, shard {shard}: a leaf", leaf, 0, leaves - 1)
        if len(set(held)) < len(held):
            raise BadPlacement(f"chosen, shard {shard}: a leaf is named twice")
        if len(held) < replicas:
            raise BadPlacement(
                f"chosen, shard {shard}: {len(held)} leaves are fewer than its {replicas} replicas"
            )


def check_fleet(leaves: int, replicas: int) -> None:
    """Refuse numbers that are no fleet's. Raises BadPlacement."""
    _check("leaves", leaves, 1, LEAVES_MAX)
    _check("replicas", replicas, 1, LEAVES_MAX)
    if replicas > leaves:
        raise BadPlacement(
            f"replicas must be at most the number of leaves ({leaves}), not {replicas}"
        )


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadPlacement(f"{name} must be between {least} and {most}, not {value}")
