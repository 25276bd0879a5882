"""Which document goes to which shard: dealt so that shards look alike.

A leaf scores with its own average field length, so a shard whose documents are longer than
the whole's ranks them differently. Dealing so that documents *and* tokens balance makes that
difference small at no cost to any query.

The rule: longest documents first, in rounds that give every shard one document (so counts
differ by at most one), each to the shard whose surplus of tokens it cancels best. With
``surplus`` the shard's tokens above ``average * documents``, as a share of the average, one
entry a field, and ``x`` the document's own, the sum of squared surpluses changes by
``2 * surplus . x + x . x``: so the best shard is the one with the least ``surplus . x``. The
order matters: the last rounds deal the documents nearest to the average and even out what is
left. Equal input gives an equal deal.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

RULE: Final = "rounds/least-surplus/1"
"""Written in the manifest: which rule dealt the documents."""

COMPARISONS_MAX: Final = 20_000_000
"""About five seconds of dealing. Beyond it fewer shards are compared for each document,
which large collections can afford: their averages are close by the law of large numbers."""

Lengths = Sequence[Sequence[int]]
"""``lengths[field][document]``: how many tokens."""


def deal(lengths: Lengths, documents: int, shards: int) -> array[int]:
    """Return the shard of each document.

    Needs ``1 <= shards <= documents``.
    """
    offsets = _relative_offsets(lengths, documents)
    order = sorted(range(documents), key=lambda document: (-_square(offsets[document]), document))
    surplus = [[0.0] * len(lengths) for _ in range(shards)]
    compared = max(2, min(shards, COMPARISONS_MAX // documents))
    shard_of = array("L", bytes(documents * array("L").itemsize))
    free: list[int] = []
    for document in order:
        free = free or list(range(shards))
        offset = offsets[document]
        shard = min(free[:compared], key=lambda shard: _dot(surplus[shard], offset))
        free.remove(shard)
        surplus[shard] = [a + b for a, b in zip(surplus[shard], offset, strict=True)]
        shard_of[document] = shard
    return shard_of


def _relative_offsets(lengths: Lengths, documents: int) -> list[tuple[float, ...]]:
    """Return how far each document is from the average length, relatively, field by field."""
    if not lengths:
        return [()] * documents
    averages = [sum(of_field) / documents or 1.0 for of_field in lengths]
    return [
        tuple(length / average - 1.0 for length, average in zip(row, averages, strict=True))
        for row in zip(*lengths, strict=True)
    ]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _square(vector: Sequence[float]) -> float:
    return _dot(vector, vector)


def length_deviation(tokens: Lengths, documents: Sequence[int]) -> float:
    """Return how far a shard's average length is from the whole's at most, relatively.

    ``tokens[field][shard]`` and ``documents[shard]`` are counts. A field without any token
    deviates nowhere.
    """
    return max((_deviation_of_field(of_field, documents) for of_field in tokens), default=0.0)


def _deviation_of_field(tokens: Sequence[int], documents: Sequence[int]) -> float:
    average = sum(tokens) / sum(documents)
    if average == 0.0:
        return 0.0
    return max(
        abs(count / size / average - 1.0) for count, size in zip(tokens, documents, strict=True)
    )
