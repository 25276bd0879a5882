"""The best documents of a shard by the values of fields.

tantivy sorts by one field, the lower document first where values are equal. More keys are
looked at only where they matter: among the documents that share the value at which the list
was cut, and to order those before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import tantivy

from index_data.schema import ORDINAL_FIELD
from leaf.errors import BadQuery
from leaf.filters import FilterMaker, restricted
from leaf.selection import ID, After, Among, Present, SortedRow, SortKey, SortValue, arranged

Found = list[tuple[SortValue, int]]
"""Values and document numbers, in order."""


class Sorter:
    """Sorts what matches in one shard. Use it once."""

    def __init__(self, searcher: tantivy.Searcher, filters: FilterMaker) -> None:
        self._searcher = searcher
        self._filters = filters

    def best(
        self, query: tantivy.Query, keys: Sequence[SortKey], k: int, after: After | None = None
    ) -> tuple[int, list[SortedRow]]:
        """Return how many documents match, and the best ``k`` by keys, which are not empty, that
        come after a place.

        Rows have document numbers for ordinals: they ascend alike. Raises BadQuery.
        """
        total, found = self._by(query, keys[0], max(1, k))
        if after is not None:
            query = restricted(query, [(tantivy.Occur.Must, self._beyond(keys, after))])
            _, found = self._by(query, keys[0], max(1, k))
        return total, self._refined(query, keys, found[:k])

    def _beyond(self, keys: Sequence[SortKey], after: After) -> tantivy.Query:
        """Return the query of what comes after a place: equal to it in some first keys, and then
        further on in the next, or equal in all and of a higher ordinal.
        """
        if len(after.values) != len(keys):
            raise BadQuery("after must have a value for each sort key")
        equal: list[tuple[tantivy.Occur, tantivy.Query]] = []
        parts = []
        for key, value in zip(keys, after.values, strict=True):
            further = self._filters.further(self._searcher, key, value)
            parts.append(restricted(further, equal))
            if key.field == ID:
                break  # nothing is equal to a document in its id
            equal = [*equal, self._filters.filter(_having(key, [value]))]
        else:
            parts.append(restricted(self._filters.beyond(after.ordinal), equal))
        either = tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])
        return tantivy.Query.const_score_query(either, 0.0)

    def _by(self, query: tantivy.Query, key: SortKey, k: int) -> tuple[int, Found]:
        result = self._searcher.search(
            query,
            k,
            order_by_field=ORDINAL_FIELD if key.field == ID else key.field,
            order=tantivy.Order.Desc if key.descending else tantivy.Order.Asc,
        )
        total: int = result.count  # type: ignore[attr-defined]  # missing in tantivy's stubs
        return total, [(value, place.doc) for value, place in result.hits]

    def _refined(
        self, query: tantivy.Query, keys: Sequence[SortKey], found: Found
    ) -> list[SortedRow]:
        """Return rows with the values of all keys; ``found`` is ordered by the first."""
        first, rest = keys[0], keys[1:]
        if not rest or not found or first.field == ID:
            padding = [None] * len(rest)  # no two documents have one id: the rest is idle
            return [SortedRow([value, *padding], document) for value, document in found]
        cut = found[-1][0]
        before = [(value, document) for value, document in found if value != cut]
        _, tied = self._by(self._with(query, first, [cut]), rest[0], len(found) - len(before))
        last = self._refined(self._with(query, first, [cut]), rest, tied)
        rows = self._complete(query, keys, before)
        return rows + [SortedRow([cut, *row.values], row.ordinal) for row in last]

    def _complete(
        self, query: tantivy.Query, keys: Sequence[SortKey], before: Found
    ) -> list[SortedRow]:
        """Order documents that are all of those with their values of the first key."""
        if not before:
            return []
        values: dict[int, list[SortValue]] = {document: [value] for value, document in before}
        theirs = self._with(query, keys[0], [*dict.fromkeys(value for value, _ in before)])
        for key in keys[1:]:
            for value, document in self._by(theirs, key, len(before))[1]:
                values[document].append(value)
        return arranged([SortedRow(row, document) for document, row in values.items()], keys)

    def _with(
        self, query: tantivy.Query, key: SortKey, values: Sequence[SortValue]
    ) -> tantivy.Query:
        """Return the query of what has one of some values of a key, or has none."""
        return restricted(query, [self._filters.filter(_having(key, values))])


def _having(key: SortKey, values: Sequence[SortValue]) -> Among | Present:
    """Return the condition of having one of some values, or of having none."""
    wanted = [value for value in values if value is not None]
    return Among(key.field, tuple(wanted)) if wanted else Present(key.field, negated=True)
