"""Filters, orders and facets by looking at every document: what the distributed ones must equal.

Nothing here is quick and nothing is shared with what leaves and roots do, but what a value is.
Requests are in their JSON form (docs/api.md).
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import floor, fsum
from typing import Any, Final

from index_data.manifest import Field
from index_data.values import Value, date_text, value_of, values_of, written

_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_SECONDS_OF_LETTER: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - all dates here are UTC


class Reckoner:
    """Looks at documents by their fields."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._fields = {field.name: field for field in fields}

    def values(self, source: Mapping[str, Any], name: str) -> list[Any]:
        """Return the values that a document has of a field."""
        return values_of(source.get(name), self._fields[name]) or []

    def passes(self, source: Mapping[str, Any], conditions: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a document fulfils all conditions."""
        return all(self._fulfils(source, one) is not one.get("not", False) for one in conditions)

    def _fulfils(self, source: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
        field = self._fields[condition["field"]]
        values = self.values(source, field.name)
        if "exists" in condition:
            return bool(values) is condition["exists"]
        if "equals" in condition or "one_of" in condition:
            given = condition.get("one_of", [condition.get("equals")])
            return not {value_of(one, field.type) for one in given}.isdisjoint(values)
        bounds = [
            (compare, value_of(condition[name], field.type))
            for name, compare in _COMPARED.items()
            if name in condition
        ]
        return any(all(compare(value, bound) for compare, bound in bounds) for value in values)

    def arranged(
        self, documents: Sequence[tuple[str, Mapping[str, Any]]], names: Sequence[str]
    ) -> list[str]:
        """Return the ids of documents in the order of sort keys, then of ids."""
        ordered = sorted(documents, key=lambda document: document[0])
        for name in reversed(names):
            bare, reverse = name.removeprefix("-"), name.startswith("-")
            if bare == "_id":
                ordered.sort(key=lambda document: document[0], reverse=reverse)
                continue
            having = [one for one in ordered if self.values(one[1], bare)]
            lacking = [one for one in ordered if not self.values(one[1], bare)]
            having.sort(key=lambda one, by=bare: self.values(one[1], by)[0], reverse=reverse)  # type: ignore[misc]
            ordered = having + lacking
        return [identity for identity, _ in ordered]

    def facet(self, sources: Iterable[Mapping[str, Any]], asked: Mapping[str, Any]) -> Any:
        """Return a facet of documents, as an answer has it."""
        field = self._fields[asked["field"]]
        several = [self.values(source, field.name) for source in sources]
        values = [value for of_document in several for value in of_document]
        match asked["type"]:
            case "terms":
                return _terms(values, field, asked.get("size", 10))
            case "histogram":
                interval, offset = asked["interval"], asked.get("offset", 0.0)
                begins = [
                    {offset + floor((v - offset) / interval) * interval for v in of_document}
                    for of_document in several
                ]
                return _buckets(begins, lambda begin: begin)
            case "date_histogram":
                starts = [
                    {_beginning(value, asked["interval"]) for value in of_document}
                    for of_document in several
                ]
                return _buckets(starts, date_text)
            case "distinct":
                return {"count": len(set(values)), "error": 0.0}
            case _:
                return _stats(values, field)


def _terms(values: list[Value], field: Field, size: int) -> dict[str, Any]:
    ranked: list[tuple[Any, int]] = sorted(
        Counter(values).items(), key=lambda item: (-item[1], item[0])
    )
    return {
        "buckets": [{"value": written(v, field.type), "count": n} for v, n in ranked[:size]],
        "other": sum(n for _, n in ranked[size:]),
        "error": 0,
    }


def _buckets(begins: Iterable[set[Any]], shown: Callable[[Any], Any]) -> dict[str, Any]:
    counts = sorted(Counter(begin for of_document in begins for begin in of_document).items())
    return {"buckets": [{"from": shown(begin), "count": n} for begin, n in counts]}


def _stats(values: list[Any], field: Field) -> dict[str, Any]:
    count = len(values)
    least, most = min(values, default=None), max(values, default=None)
    total: Any = sum(values) if field.type != "float" else fsum(values)
    average = total / count if count else None
    if field.type != "date":
        return {"count": count, "min": least, "max": most, "sum": total, "avg": average}
    shown = [None if at is None else date_text(round(at)) for at in (least, most, average)]
    return {"count": count, "min": shown[0], "max": shown[1], "sum": None, "avg": shown[2]}


def _beginning(at_us: int, interval: str) -> int:
    """Return the microsecond at which the interval of a moment begins."""
    day = (_EPOCH + timedelta(microseconds=at_us)).date()
    match interval:
        case "week":
            first = day - timedelta(days=day.weekday())
        case "month":
            first = date(day.year, day.month, 1)
        case "quarter":
            first = date(day.year, 3 * ((day.month - 1) // 3) + 1, 1)
        case "year":
            first = date(day.year, 1, 1)
        case _:
            seconds = _SECONDS.get(interval) or (
                int(interval[:-1]) * _SECONDS_OF_LETTER[interval[-1]]
            )
            width_us = seconds * 1_000_000
            return at_us // width_us * width_us
    return (first - _EPOCH.date()).days * 86_400_000_000
