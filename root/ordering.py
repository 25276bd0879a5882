"""One list from the shards' answers to a search that is sorted by the values of fields.

Every shard has sent its best with the values that they were sorted by, so the order
of all of them is known and final: there is nothing to be scored again for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from leaf.selection import SortedRow, SortKey, SortValue, arranged
from root.merge import Unreadable


class SortedHits(Protocol):
    """What merging needs of a shard's answer."""

    def read_sorted(self) -> tuple[list[list[SortValue]], list[int]]:
        """Return sort values and ordinals, in order. Raises ValueError."""
        ...


def sorted_rows(
    replies: Sequence[tuple[int, SortedHits]], keys: Sequence[SortKey]
) -> list[SortedRow]:
    """Return what all shards have found, in order. Raises Unreadable."""
    return arranged([row for shard, hits in replies for row in _rows(shard, hits, len(keys))], keys)


def _rows(shard: int, hits: SortedHits, keys: int) -> list[SortedRow]:
    try:
        values, ordinals = hits.read_sorted()
    except ValueError as error:
        raise Unreadable(shard, str(error)) from None
    if any(len(row) != keys for row in values):
        raise Unreadable(shard, "hits with too few or too many sort values")
    return [SortedRow(row, at, shard) for row, at in zip(values, ordinals, strict=True)]
