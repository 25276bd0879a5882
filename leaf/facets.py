"""What is counted in one shard: facets as tantivy's aggregations, and back as they travel."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any, Final

import tantivy

from index_data.manifest import Field
from index_data.values import DAY_US
from leaf.errors import BadQuery
from leaf.filters import FilterMaker, restricted
from leaf.selection import (
    BUCKETS_MAX,
    DISTINCT_EXACT_MAX,
    Between,
    CalendarCount,
    CalendarUnit,
    Count,
    DistinctCount,
    HistogramCount,
    StatsCount,
    TermsCount,
    Value,
)
from leaf.sketch import hashed, sketch

_EPOCH: Final = date(1970, 1, 1)

_EXACT_DOUBLE: Final = 2**53
"""tantivy adds and compares in doubles, where integers are exact up to here."""

_AT_ONCE: Final = 60_000
"""Values listed by one aggregation: tantivy refuses to make more than 65,000 buckets."""


class Counter:
    """Counts what a query matches in one shard."""

    def __init__(self, searcher: tantivy.Searcher, filters: FilterMaker) -> None:
        self._searcher = searcher
        self._filters = filters

    def count(self, query: tantivy.Query, facets: Sequence[Count]) -> list[Any]:
        """Return what was counted for each facet, as ``leaf.selection`` says.

        Raises BadQuery where a histogram has too many intervals.
        """
        wanted = {str(place): _aggregation(facet) for place, facet in enumerate(facets)}
        found = self._aggregate(query, wanted)
        return [self._read(query, facet, found[str(place)]) for place, facet in enumerate(facets)]

    def _aggregate(self, query: tantivy.Query, wanted: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._searcher.aggregate(query, wanted)
        except ValueError as error:
            if "bucket limit" in str(error):
                raise BadQuery(f"a histogram has more than {BUCKETS_MAX} intervals") from error
            raise

    def _read(self, query: tantivy.Query, facet: Count, found: dict[str, Any]) -> Any:
        field = self._filters.field(facet.field)
        match facet:
            case TermsCount():
                return _terms(field, found)
            case HistogramCount():
                return _histogram(facet, found)
            case CalendarCount():
                return _calendar(facet, found)
            case StatsCount():
                return self._stats(query, field, found)
            case DistinctCount():
                return self._distinct(query, field, found)

    def _stats(self, query: tantivy.Query, field: Field, found: dict[str, Any]) -> list[Any]:
        count, least, most, total = (found[name] for name in ("count", "min", "max", "sum"))
        if not count or field.type == "float":
            return [count, least, most, total if count else 0]
        if max(-least, most) >= _EXACT_DOUBLE:
            least, most = self._extreme(query, field, "asc"), self._extreme(query, field, "desc")
        # A sum that stays below that at every step is an integer without an error.
        exact = count * max(-least, most) < _EXACT_DOUBLE
        return [count, int(least), int(most), int(total) if exact else total]

    def _extreme(self, query: tantivy.Query, field: Field, order: str) -> int:
        """Return the first or last value with all its digits."""
        first = {"terms": {"field": field.name, "size": 1, "order": {"_key": order}}}
        key: int = self._aggregate(query, {"x": first})["x"]["buckets"][0]["key"]
        return key

    def _distinct(self, query: tantivy.Query, field: Field, found: dict[str, Any]) -> list[Any]:
        values = [hashed(value) for value in _keys(field, found)]
        if len(values) <= DISTINCT_EXACT_MAX:
            return [values, ""]
        more = self._rest(query, field) if found["sum_other_doc_count"] else ()
        return [[], b64encode(sketch([*values, *more])).decode()]

    def _rest(self, query: tantivy.Query, field: Field) -> Iterable[int]:
        """Yield the hashes of all values, however many."""
        if field.type == "keyword":
            terms = self._searcher.terms_with_prefix(field.name, "", query)
            yield from (hashed(term) for term, _ in terms)
            return
        wanted = {"terms": {"field": field.name, "size": _AT_ONCE, "order": {"_key": "asc"}}}
        last: Any = None
        while True:
            beyond = Between(field.name, low=last, low_open=True)
            rest = query if last is None else restricted(query, [self._filters.filter(beyond)])
            keys = _keys(field, self._aggregate(rest, {"x": wanted})["x"])
            yield from map(hashed, keys)
            if len(keys) < _AT_ONCE:
                return
            last = keys[-1]


def _aggregation(facet: Count) -> dict[str, Any]:
    name = {"field": facet.field}
    match facet:
        case TermsCount():
            return {"terms": {**name, "size": BUCKETS_MAX}}
        case HistogramCount():
            grid = {"interval": facet.interval, "offset": facet.offset % facet.interval}
            return {"histogram": {**name, **grid, "min_doc_count": 1}}
        case CalendarCount():
            return {"histogram": {**name, "interval": DAY_US, "min_doc_count": 1}}
        case StatsCount():
            return {"stats": name}
        case DistinctCount():
            return {"terms": {**name, "size": DISTINCT_EXACT_MAX + 1}}


def _keys(field: Field, found: dict[str, Any]) -> list[Value]:
    keys = (bucket["key"] for bucket in found["buckets"])
    match field.type:
        case "boolean":
            return [bool(key) for key in keys]
        case "float":
            return [float(key) for key in keys]
        case _:
            return list(keys)


def _terms(field: Field, found: dict[str, Any]) -> list[Any]:
    counts = [bucket["doc_count"] for bucket in found["buckets"]]
    floor = counts[-1] if found["sum_other_doc_count"] else 0
    return [_keys(field, found), counts, floor]


def _histogram(facet: HistogramCount, found: dict[str, Any]) -> list[Any]:
    begins = [round((b["key"] - facet.offset) / facet.interval) for b in found["buckets"]]
    return [_bounded(begins), [bucket["doc_count"] for bucket in found["buckets"]]]


def _calendar(facet: CalendarCount, found: dict[str, Any]) -> list[Any]:
    counts: dict[int, int] = {}
    for bucket in found["buckets"]:
        first = first_day(round(bucket["key"] / DAY_US), facet.unit)
        counts[first] = counts.get(first, 0) + bucket["doc_count"]
    return [_bounded(list(counts)), list(counts.values())]


def _bounded(begins: list[int]) -> list[int]:
    if len(begins) > BUCKETS_MAX:
        raise BadQuery(f"a histogram has more than {BUCKETS_MAX} intervals")
    if any(abs(begin) >= _EXACT_DOUBLE for begin in begins):
        raise BadQuery("a histogram has values too far from its offset for so small an interval")
    return begins


def first_day(day: int, unit: CalendarUnit) -> int:
    """Return the first day of the unit that a day lies in; days count from 1970-01-01."""
    that = _EPOCH + timedelta(days=day)
    match unit:
        case "week":
            return day - that.weekday()
        case "month":
            first = that.replace(day=1)
        case "quarter":
            first = that.replace(month=that.month - (that.month - 1) % 3, day=1)
        case "year":
            first = that.replace(month=1, day=1)
    return (first - _EPOCH).days
