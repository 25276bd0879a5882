"""One page from the shards' answers to a search that is sorted by the values of fields.

Every shard has sent its best ``offset + k`` with the values they were sorted by, so the order
of all of them is known and final: there is nothing to be scored again for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from leaf.selection import SortedRow, SortKey, SortValue, arranged
from root.merge import Candidate, Finalists, Unreadable


class SortedHits(Protocol):
    """What merging needs of a shard's answer."""

    @property
    def total(self) -> int:
        """How many documents match."""
        ...

    def read_sorted(self) -> tuple[list[list[SortValue]], list[int]]:
        """Return sort values and ordinals, in order. Raises ValueError."""
        ...


def sorted_page(
    replies: Sequence[tuple[int, SortedHits]], keys: Sequence[SortKey], offset: int, k: int
) -> Finalists:
    """Return results ``offset`` to ``offset + k``. Raises Unreadable."""
    rows = [row for shard, hits in replies for row in _rows(shard, hits, len(keys))]
    total = sum(hits.total for _, hits in replies)
    page = arranged(rows, keys)[offset : offset + k]
    return Finalists([Candidate(0.0, row.ordinal, row.shard) for row in page], 0, total, True)


def _rows(shard: int, hits: SortedHits, keys: int) -> list[SortedRow]:
    try:
        values, ordinals = hits.read_sorted()
    except ValueError as error:
        raise Unreadable(shard, str(error)) from None
    if any(len(row) != keys for row in values):
        raise Unreadable(shard, "hits with too few or too many sort values")
    return [SortedRow(row, at, shard) for row, at in zip(values, ordinals, strict=True)]
