"""The generator of filters, orders and facets."""

from __future__ import annotations

import random
from typing import Any

import orjson

from bench.selections import NOWHERE, VALUES_KEPT, Typed, selection, typed
from index_data.manifest import Field
from root.requests import search_from_json
from root.selection import selection_of

FIELDS = (
    Field("body", "text"),
    Field("kind", "keyword"),
    Field("tags", "keyword", multiple=True),
    Field("year", "integer"),
    Field("rate", "float"),
    Field("day", "date"),
    Field("days", "date", multiple=True),
    Field("ok", "boolean"),
    Field("empty", "integer"),
)
DOCUMENTS: list[dict[str, Any]] = [
    {
        "body": "x",
        "kind": f"k{i % 3}",
        "tags": ["a", i],
        "year": 1900 + i,
        "rate": i / 4,
        "day": f"2001-01-{i % 28 + 1:02d}",
        "days": ["2001-01-01"],
        "ok": None if i % 2 else i % 4 == 0,
    }
    for i in range(200)
]


def test_values_are_from_all_over_the_documents() -> None:
    """Of fields that are no text and have any; each once, not many."""
    found = {one.field.name: one for one in typed(FIELDS, DOCUMENTS)}
    assert set(found) == {"kind", "tags", "year", "rate", "day", "days", "ok"}
    assert len(found["year"].values) < 2 * VALUES_KEPT
    assert max(found["year"].values) > 2050
    assert set(found["ok"].values) == {True, False}
    assert {name for name, one in found.items() if one.ranged} == {"year", "rate", "day", "days"}


def test_what_is_drawn_is_legal_and_of_every_kind() -> None:
    """The root accepts it for these fields; no kind of condition, order or facet is missing."""
    values, rng = typed(FIELDS, DOCUMENTS), random.Random("selections")
    kinds: set[str] = set()
    for _ in range(600):
        asked = selection(values, rng)
        request = search_from_json(orjson.dumps({"q": "x", **asked}))
        selection_of(request.filter, request.sort, request.facets, FIELDS)  # raises, if not
        for condition in asked["filter"]:
            kinds |= condition.keys() - {"field"}
        kinds |= {facet["type"] for facet in asked["facets"].values()}
        kinds |= {key[0] for key in asked.get("sort", ())}
    assert kinds >= {"equals", "one_of", "exists", "gt", "gte", "lt", "lte", "not", "-", "_"}
    assert kinds >= {"terms", "distinct", "stats", "histogram", "date_histogram"}


def test_keywords_are_asked_for_that_nobody_has() -> None:
    """Finding nothing is an answer too."""
    only = (Typed(Field("kind", "keyword"), ("a",)),)
    drawn = [selection(only, random.Random(seed)) for seed in range(50)]
    assert any(NOWHERE in orjson.dumps(one).decode() for one in drawn)
