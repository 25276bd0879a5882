"""The reference that looks at every document, by examples worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from index_data.manifest import Field
from index_data.reckoning import Reckoner

RECKONER = Reckoner(
    [
        Field("kind", "keyword"),
        Field("tags", "keyword", multiple=True),
        Field("n", "integer"),
        Field("x", "float", multiple=True),
        Field("at", "date"),
    ]
)
A: dict[str, Any] = {
    "kind": "book",
    "tags": ["p", "q"],
    "n": 7,
    "x": [1, 2.5, 1.5],
    "at": "1970-02-20",
}
B: dict[str, Any] = {"kind": "film", "tags": ["q"], "n": -3, "at": "1969-12-31T23:59:59Z"}
C: dict[str, Any] = {"tags": []}


@pytest.mark.parametrize(
    ("condition", "passing"),
    [
        ({"field": "kind", "equals": "book"}, "A"),
        ({"field": "tags", "one_of": ["p", "z"]}, "A"),
        ({"field": "tags", "equals": "q", "not": True}, "C"),
        ({"field": "n", "gte": -3, "lt": 7}, "B"),
        ({"field": "x", "gt": 1, "lte": 2}, "A"),
        ({"field": "at", "lt": "1970-01-01"}, "B"),
        ({"field": "n", "exists": False}, "C"),
        ({"field": "tags", "exists": True}, "AB"),
    ],
)
def test_conditions_look_at_any_value(condition: dict[str, Any], passing: str) -> None:
    """One of several values is enough, and a negated condition wants none."""
    documents = {"A": A, "B": B, "C": C}
    found = [name for name, one in documents.items() if RECKONER.passes(one, [condition])]
    assert "".join(found) == passing


def test_documents_without_a_value_come_last() -> None:
    """In either direction; equal ones by id."""
    documents = [("c", C), ("b", B), ("a", A), ("d", C)]
    assert RECKONER.arranged(documents, ["n"]) == ["b", "a", "c", "d"]
    assert RECKONER.arranged(documents, ["-n", "-_id"]) == ["a", "b", "d", "c"]


@pytest.mark.parametrize(
    ("asked", "facet"),
    [
        (
            {"type": "terms", "field": "tags", "size": 1},
            {"buckets": [{"value": "q", "count": 2}], "other": 1, "error": 0},
        ),
        (
            {"type": "histogram", "field": "x", "interval": 1, "offset": 0.5},
            {"buckets": [{"from": 0.5, "count": 1}, {"from": 1.5, "count": 1},
                         {"from": 2.5, "count": 1}]},
        ),
        (
            {"type": "histogram", "field": "x", "interval": 10},
            {"buckets": [{"from": 0.0, "count": 1}]},
        ),
        (
            {"type": "date_histogram", "field": "at", "interval": "quarter"},
            {"buckets": [{"from": "1969-10-01T00:00:00Z", "count": 1},
                         {"from": "1970-01-01T00:00:00Z", "count": 1}]},
        ),
        (
            {"type": "date_histogram", "field": "at", "interval": "36h"},
            {"buckets": [{"from": "1969-12-30T12:00:00Z", "count": 1},
                         {"from": "1970-02-19T12:00:00Z", "count": 1}]},
        ),
        (
            {"type": "stats", "field": "n"},
            {"count": 2, "min": -3, "max": 7, "sum": 4, "avg": 2.0},
        ),
        ({"type": "distinct", "field": "tags"}, {"count": 2, "error": 0.0}),
    ],
)  # fmt: skip
def test_facets_are_what_a_person_counts(asked: dict[str, Any], facet: dict[str, Any]) -> None:
    """Over three documents."""
    assert RECKONER.facet([A, B, C], asked) == facet
