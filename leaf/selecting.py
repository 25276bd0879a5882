"""A selection made ready for every shard of a generation, once, and done in one of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tantivy

from index_data.manifest import Field
from leaf.errors import BadQuery
from leaf.facets import Counter
from leaf.filters import FilterMaker, Filters, restricted
from leaf.protocol import ranked
from leaf.selection import After, Selection
from leaf.sorting import Sorter

Ranker = Callable[[tantivy.Query, int], tuple[int, list[float], list[int]]]
"""Gives total, scores and document numbers of the best by score."""


class Selected(NamedTuple):
    """A selection, and its filters for any shard."""

    selection: Selection
    filters: Filters
    maker: FilterMaker


class Outcome(NamedTuple):
    """What a shard answers: as ``Hits`` has it, with document numbers for ordinals."""

    total: int
    best: float
    columns: tuple[list[Any], list[int]]
    facets: list[Any]


def selected(selection: Selection, fields: Iterable[Field], schema: tantivy.Schema) -> Selected:
    """Return a selection ready for any shard. Raises BadQuery."""
    maker = FilterMaker(fields, schema)
    return Selected(selection, maker.filters(selection.filters), maker)


def select(
    searcher: tantivy.Searcher,
    query: tantivy.Query,
    wanted: Selected,
    k: int,
    rank: Ranker,
    ordinals: Sequence[int],
) -> Outcome:
    """Filter, sort and count what a query matches in a shard, where document i has the i-th of
    some ascending ordinals. Raises BadQuery.
    """
    selection, filters, maker = wanted
    query = restricted(query, filters)
    facets = Counter(searcher, maker).count(query, selection.facets) if selection.facets else []
    if selection.sort:
        sorter = Sorter(searcher, maker)
        total, rows = sorter.best(query, selection.sort, k, selection.after)
        columns = [row.values for row in rows], [row.ordinal for row in rows]
        return Outcome(total, 0.0, columns, facets)
    if selection.after is None:
        total, scores, documents = rank(query, k)
    else:
        # tantivy has no search below a score. Shards are small, and whoever is that deep in a
        # list has seen most of it.
        total, scores, documents = rank(query, len(ordinals))
        start = _start(scores, documents, selection.after, ordinals)
        scores, documents = scores[start : start + k], documents[start : start + k]
    best, columns = ranked(scores, documents)
    return Outcome(total, best, columns, facets)


def _start(
    scores: Sequence[float], documents: Sequence[int], after: After, ordinals: Sequence[int]
) -> int:
    """Return the first place of a ranking that comes after a score and an ordinal."""
    score = after.values[0] if len(after.values) == 1 else None
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise BadQuery("after must have the score alone")
    seen = bisect_right(ordinals, after.ordinal)
    return bisect_left(
        range(len(scores)), (-score, seen), key=lambda at: (-scores[at], documents[at])
    )
