"""Filters that a checked request would never have are refused, not carried out wrongly."""

from __future__ import annotations

from typing import Any

import pytest
import tantivy

from index_data.manifest import Field
from index_data.schema import open_for_writing, tantivy_schema
from index_data.segment import add_rows
from leaf.errors import BadQuery
from leaf.filters import FilterMaker, restricted
from leaf.selection import Among, Between, Present

FIELDS = (Field("body", "text"), Field("kind", "keyword"), Field("n", "integer"))
SCHEMA = tantivy_schema(FIELDS)
MAKER = FilterMaker(FIELDS, SCHEMA)


@pytest.mark.parametrize(
    "condition",
    [
        Among("nowhere", (1,)),
        Among("body", ("a",)),
        Among("n", ("a",)),
        Among("n", (2**70,)),
        Between("kind", 1, 2),
        Between("n", 0.5, None),
        Present("nowhere"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(condition: Any) -> None:
    """By the name of the field."""
    with pytest.raises(BadQuery, match=condition.field):
        MAKER.filters([condition])


def test_a_range_without_bounds_is_any_value() -> None:
    """A query without filters stays itself, and only what has the field lies in its range."""
    index = open_for_writing(SCHEMA, FIELDS)
    add_rows(index, FIELDS, [(0, "a", b'{"n":1}'), (1, "b", b'{"kind":"x"}')])
    everything = tantivy.Query.all_query()
    assert restricted(everything, []) is everything
    query = restricted(everything, MAKER.filters([Between("n")]))
    hits = index.searcher().search(query).hits
    assert [place.doc for _, place in hits] == [0]
