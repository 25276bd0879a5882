"""A selection made ready for every shard of a generation, once, and done in one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tantivy

from index_data.manifest import Field
from leaf.facets import Counter
from leaf.filters import FilterMaker, Filters, restricted
from leaf.protocol import ranked
from leaf.selection import Selection
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
) -> Outcome:
    """Filter, sort and count what a query matches in a shard. Raises BadQuery."""
    selection, filters, maker = wanted
    query = restricted(query, filters)
    facets = Counter(searcher, maker).count(query, selection.facets) if selection.facets else []
    if selection.sort:
        total, rows = Sorter(searcher, maker).best(query, selection.sort, k)
        columns = [row.values for row in rows], [row.ordinal for row in rows]
        return Outcome(total, 0.0, columns, facets)
    total, scores, documents = rank(query, k)
    best, columns = ranked(scores, documents)
    return Outcome(total, best, columns, facets)
