"""Filters, orders and facets to ask for, drawn by a seed from the values that documents have."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index_data.manifest import Field

VALUES_KEPT: Final = 24
"""Of a field: enough that bounds fall everywhere among its values."""

NOWHERE: Final = "nowhere"
"""A keyword that no document has."""

_RANGED: Final = frozenset({"integer", "float", "date"})
_NUMBERS: Final = frozenset({"integer", "float"})
_SORT_KEYS_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Typed:
    """A field that is no text, and some of its values as they stand in JSON."""

    field: Field
    values: tuple[Any, ...]

    @property
    def ranged(self) -> bool:
        """Whether its values have bounds."""
        return self.field.type in _RANGED


def typed(fields: Iterable[Field], documents: Sequence[Mapping[str, Any]]) -> tuple[Typed, ...]:
    """Return the fields that are no text with values from all over the documents, as far as
    there are any.
    """
    found = []
    for field in fields:
        if field.type != "text":
            values = [one for document in documents for one in _values(document.get(field.name))]
            different = list(dict.fromkeys(values))
            kept = different[:: max(1, len(different) // VALUES_KEPT)]
            if kept:
                found.append(Typed(field, tuple(kept)))
    return tuple(found)


def _values(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def selection(fields: Sequence[Typed], rng: random.Random) -> dict[str, Any]:
    """Some of everything that a request selects by: ``filter``, ``sort``, ``facets``."""
    asked: dict[str, Any] = {"filter": [condition(fields, rng) for _ in range(rng.randint(0, 2))]}
    sortable = [*(one.field.name for one in fields if not one.field.multiple), "_id"]
    if rng.random() < 0.5:
        keys = rng.sample(sortable, rng.randint(1, min(_SORT_KEYS_MAX, len(sortable))))
        asked["sort"] = [rng.choice(("", "-")) + key for key in keys]
    asked["facets"] = {f"f{i}": facet(fields, rng) for i in range(rng.randint(0, 3))}
    return asked


def condition(fields: Sequence[Typed], rng: random.Random) -> dict[str, Any]:
    """A condition of any kind that some field has."""
    one = rng.choice(fields)
    asked: dict[str, Any] = {"field": one.field.name}
    match rng.choice(("equals", "one_of", "exists", *["bounds"] * 2 * one.ranged)):
        case "equals":
            asked["equals"] = _value(one, rng)
        case "one_of":
            asked["one_of"] = [_value(one, rng) for _ in range(rng.randint(1, 3))]
        case "exists":
            asked["exists"] = rng.random() < 0.5
        case _:
            bounds = rng.sample([("gt", "gte"), ("lt", "lte")], rng.randint(1, 2))
            asked |= {rng.choice(names): rng.choice(one.values) for names in bounds}
    return asked | ({"not": True} if rng.random() < 0.3 else {})


def _value(one: Typed, rng: random.Random) -> Any:
    more = (NOWHERE,) if one.field.type == "keyword" else ()
    return rng.choice((*one.values, *more))


def facet(fields: Sequence[Typed], rng: random.Random) -> dict[str, Any]:
    """A facet of any kind that some field has."""
    one = rng.choice(fields)
    asked: dict[str, Any] = {"field": one.field.name}
    kinds = ["terms", "distinct"]
    kinds += ["stats"] * one.ranged + ["histogram"] * (one.field.type in _NUMBERS)
    kinds += ["date_histogram"] * (one.field.type == "date")
    kind = rng.choice(kinds)
    match kind:
        case "terms":
            asked["size"] = rng.choice((1, 3, 10, 1000))
        case "histogram":
            asked["interval"], asked["offset"] = rng.choice(((1, 0), (5, 2), (0.5, 0.25), (3, -7)))
        case "date_histogram":
            calendar = () if one.field.multiple else ("week", "month", "quarter", "year")
            asked["interval"] = rng.choice(("day", "12h", "30d", *calendar))
    return {"type": kind, **asked}
