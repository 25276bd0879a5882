"""Facets of a whole from those of its shards: the same in whatever order they come.

Each kind of count is a value that can be added to another of its kind; adding is associative
and commutative, so parts may be merged as they arrive, in batches, or in a tree.

    value         what is kept                                    exact
    Terms         counts by value, and what may be missing        unless the answer says otherwise
    Intervals     counts by interval                              always
    Stats         count, least, greatest, the shards' sums        but for the last digits of sums
    Distinct      hashes, or a sketch once they are too many      up to DISTINCT_EXACT_MAX
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Protocol, Self, assert_never

from index_data.manifest import Field, FieldType
from index_data.values import DAY_US, date_text, written
from leaf.broken import BrokenAnswer
from leaf.selection import (
    BUCKETS_MAX,
    DISTINCT_EXACT_MAX,
    CalendarCount,
    Count,
    DistinctCount,
    HistogramCount,
    StatsCount,
    TermsCount,
    Value,
)
from leaf.sketch import REGISTERS, STANDARD_ERROR, estimate, merged, sketch
from root.errors import BadRequest
from root.merge import Unreadable
from root.selection import FacetRequest, TermsRequest


@dataclass(frozen=True, slots=True)
class Terms:
    """Counts by value. ``floor`` adds up the most that a value can have had in the shards that
    left it out.
    """

    counts: Mapping[Value, int]
    floor: int = 0

    @classmethod
    def read(cls, values: Sequence[Value], counts: Sequence[int], floor: int) -> Self:
        """Take what a shard sent."""
        return cls(dict(zip(values, counts, strict=True)), floor)

    def plus(self, other: Terms) -> Terms:
        """Return the counts of both."""
        return Terms(_added(self.counts, other.counts), self.floor + other.floor)

    def body(self, kind: FieldType, size: int) -> dict[str, Any]:
        """Return the commonest values, ties in the order of values.

        ``error`` is how much more any count can be, that of a value not shown too.
        """
        ranked = sorted(self.counts.items(), key=_by_count)
        shown = ranked[:size]
        return {
            "buckets": [{"value": written(value, kind), "count": n} for value, n in shown],
            "other": sum(n for _, n in ranked[size:]),
            "error": self.floor,
        }


@dataclass(frozen=True, slots=True)
class Intervals:
    """Counts by the number of an interval."""

    counts: Mapping[int, int]

    def plus(self, other: Intervals) -> Intervals:
        """Return the counts of both."""
        return Intervals(_added(self.counts, other.counts))


@dataclass(frozen=True, slots=True)
class Stats:
    """What numbers come to. ``sums`` are the shards', added up only at the end: then in exact
    arithmetic, so that their order does not matter.
    """

    count: int = 0
    least: float | None = None
    most: float | None = None
    sums: tuple[float, ...] = ()

    def plus(self, other: Stats) -> Stats:
        """Return what both come to."""
        least = [n for n in (self.least, other.least) if n is not None]
        most = [n for n in (self.most, other.most) if n is not None]
        return Stats(
            self.count + other.count,
            min(least, default=None),
            max(most, default=None),
            self.sums + other.sums,
        )

    def body(self, kind: FieldType) -> dict[str, Any]:
        """Return count, min, max, sum and avg; of dates there is no sum."""
        exact = all(isinstance(number, int) for number in self.sums)
        total = sum(self.sums) if exact else fsum(self.sums)
        average = total / self.count if self.count else None
        if kind == "date":
            moments = [self.least, self.most, average]
            least, most, mean = (None if at is None else date_text(round(at)) for at in moments)
            return {"count": self.count, "min": least, "max": most, "sum": None, "avg": mean}
        return {
            "count": self.count,
            "min": self.least,
            "max": self.most,
            "sum": total,
            "avg": average,
        }


@dataclass(frozen=True, slots=True)
class Distinct:
    """Which values there are: their hashes, or once they are too many their registers."""

    hashes: frozenset[int] = frozenset()
    registers: bytes = b""

    @classmethod
    def read(cls, hashes: Iterable[int], registers: str) -> Self:
        """Take what a shard sent."""
        raw = b64decode(registers, validate=True)
        if len(raw) not in {0, REGISTERS}:
            raise ValueError(f"a sketch of {len(raw)} registers")
        return cls(frozenset(hashes), raw)

    def plus(self, other: Distinct) -> Distinct:
        """Return the values of both."""
        if self.registers or other.registers:
            return Distinct(registers=merged(self._sketched(), other._sketched()))
        both = self.hashes | other.hashes
        if len(both) <= DISTINCT_EXACT_MAX:
            return Distinct(both)
        return Distinct(registers=sketch(both))

    def _sketched(self) -> bytes:
        return self.registers or sketch(self.hashes)

    def body(self) -> dict[str, Any]:
        """Return how many, and the standard error as a share: 0 where the count is exact."""
        if self.registers:
            return {"count": estimate(self.registers), "error": round(STANDARD_ERROR, 4)}
        return {"count": len(self.hashes), "error": 0.0}


class CountedHits(Protocol):
    """What merging needs of a shard's answer."""

    def read_facets(self) -> list[Any]:
        """Return what was counted for each facet. Raises ValueError."""
        ...


Facet = Terms | Intervals | Stats | Distinct


def nothing_counted(counts: Sequence[Count]) -> list[Facet]:
    """Return what each facet is before any shard has answered."""
    return [_empty(count) for count in counts]


def read_facets(counts: Sequence[Count], sent: Sequence[Any]) -> list[Facet]:
    """Return the facets in a shard's answer. Raises BrokenAnswer."""
    if len(sent) != len(counts):
        raise BrokenAnswer(f"{len(sent)} facets for {len(counts)}")
    try:
        return [_read(count, one) for count, one in zip(counts, sent, strict=True)]
    except (TypeError, ValueError) as error:
        raise BrokenAnswer(f"a facet that cannot be read: {error}") from None


def added(left: Sequence[Facet], right: Sequence[Facet]) -> list[Facet]:
    """Return the facets of both."""
    return [_plus(one, other) for one, other in zip(left, right, strict=True)]


def counted(replies: Iterable[tuple[int, CountedHits]], counts: Sequence[Count]) -> list[Facet]:
    """Return the facets of all shards together. Raises Unreadable."""
    total = nothing_counted(counts)
    for shard, hits in replies if counts else ():
        try:
            total = added(total, read_facets(counts, hits.read_facets()))
        except ValueError as error:
            raise Unreadable(shard, str(error)) from None
    return total


def facets_body(
    asked: Mapping[str, FacetRequest],
    counts: Sequence[Count],
    facets: Sequence[Facet],
    fields: Iterable[Field],
) -> dict[str, Any]:
    """Return the facets of an answer, by the names they were asked by."""
    kinds = {field.name: field.type for field in fields}
    return {
        name: {"type": request.__struct_config__.tag, **_body(name, request, count, facet, kinds)}
        for (name, request), count, facet in zip(asked.items(), counts, facets, strict=True)
    }


def _empty(count: Count) -> Facet:
    match count:
        case TermsCount():
            return Terms({})
        case HistogramCount() | CalendarCount():
            return Intervals({})
        case StatsCount():
            return Stats()
        case DistinctCount():
            return Distinct()
        case _:
            assert_never(count)


def _read(count: Count, sent: Any) -> Facet:
    match count:
        case TermsCount():
            return Terms.read(*sent)
        case HistogramCount() | CalendarCount():
            numbers, counts = sent
            return Intervals(dict(zip(numbers, counts, strict=True)))
        case StatsCount():
            number, least, most, total = sent
            return Stats(number, least, most, (total,))
        case DistinctCount():
            return Distinct.read(*sent)
        case _:
            assert_never(count)


def _plus(one: Facet, other: Facet) -> Facet:
    match one, other:
        case Terms(), Terms():
            return one.plus(other)
        case Intervals(), Intervals():
            return one.plus(other)
        case Stats(), Stats():
            return one.plus(other)
        case Distinct(), Distinct():
            return one.plus(other)
        case _:
            raise TypeError(f"{type(one).__name__} is not added to {type(other).__name__}")


def _body(
    name: str, request: FacetRequest, count: Count, facet: Facet, kinds: Mapping[str, FieldType]
) -> dict[str, Any]:
    kind = kinds[count.field]
    match facet:
        case Terms():
            size = request.size if isinstance(request, TermsRequest) else len(facet.counts)
            return facet.body(kind, size)
        case Intervals():
            if len(facet.counts) > BUCKETS_MAX:
                detail = f"makes {len(facet.counts)} intervals of {count.field!r}"
                raise BadRequest(f"facets.{name}.interval", f"{detail}; {BUCKETS_MAX} is the most")
            return {
                "buckets": [
                    {"from": _beginning(number, count, kind), "count": n}
                    for number, n in sorted(facet.counts.items())
                ]
            }
        case Stats():
            return facet.body(kind)
        case Distinct():
            return facet.body()
        case _:
            assert_never(facet)


def _beginning(number: int, count: Count, kind: FieldType) -> Value:
    """Return where an interval begins, as it stands in JSON."""
    if isinstance(count, HistogramCount):
        at = count.offset + number * count.interval
        return date_text(round(at)) if kind == "date" else at
    return date_text(number * DAY_US)


def _added(left: Mapping[Any, int], right: Mapping[Any, int]) -> dict[Any, int]:
    total = dict(left)
    for key, count in right.items():
        total[key] = total.get(key, 0) + count
    return total


def _by_count(item: tuple[Any, int]) -> tuple[int, Any]:
    return -item[1], item[0]
