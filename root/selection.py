"""What a request filters, sorts and counts by: its JSON, checked against the schema.

    filter  [{"field": "year", "gte": 2001, "lt": 2010}, {"field": "kind", "equals": "class"}]
    sort    ["-year", "title"]
    facets  {"kinds": {"type": "terms", "field": "kind"}}

Whatever names an unknown field, or a value that is none of its type, is a BadRequest with the
path of the member; what comes out (``leaf.selection``) can be carried out on every leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Final, assert_never

import msgspec

from index_data.manifest import Field, FieldType
from index_data.values import DAY_US, SECOND_US, WANTED, value_of
from leaf.selection import (
    CONDITIONS_MAX,
    FACETS_MAX,
    ID,
    SORT_KEYS_MAX,
    VALUES_MAX,
    Among,
    Between,
    CalendarCount,
    Condition,
    Count,
    DistinctCount,
    HistogramCount,
    Present,
    Selection,
    SortKey,
    StatsCount,
    TermsCount,
    Value,
)
from root.errors import BadRequest

SCORE: Final = "_score"
FACET_NAME_CHARS_MAX: Final = 64
INTERVAL_CHARS_MAX: Final = 16

NUMBERS: Final[frozenset[FieldType]] = frozenset({"integer", "float"})
_RANGED: Final[frozenset[FieldType]] = frozenset({"integer", "float", "date"})
_UNIT_US: Final[Mapping[str, int]] = {
    "second": SECOND_US,
    "minute": 60 * SECOND_US,
    "hour": 3_600 * SECOND_US,
    "day": DAY_US,
}
_MULTIPLE: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_LETTERS: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}

Given = str | int | float | bool | msgspec.UnsetType
"""A value as it stands in a request, or none."""


class ConditionRequest(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"negated": "not"}
):
    """One condition on a field: ``equals``, ``one_of``, bounds, or ``exists``; ``not`` turns it
    round.
    """

    field: str
    equals: Given = msgspec.UNSET
    one_of: (
        Annotated[tuple[str | int | float | bool, ...], msgspec.Meta(max_length=VALUES_MAX)]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    gt: Given = msgspec.UNSET
    gte: Given = msgspec.UNSET
    lt: Given = msgspec.UNSET
    lte: Given = msgspec.UNSET
    exists: bool | msgspec.UnsetType = msgspec.UNSET
    negated: bool = False


class TermsRequest(
    msgspec.Struct, frozen=True, tag="terms", tag_field="type", forbid_unknown_fields=True
):
    """The commonest values of a field, and how many documents have each."""

    field: str
    size: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


class HistogramRequest(
    msgspec.Struct, frozen=True, tag="histogram", tag_field="type", forbid_unknown_fields=True
):
    """How many documents lie in each interval of one width."""

    field: str
    interval: Annotated[float, msgspec.Meta(gt=0)]
    offset: float = 0.0


class DateHistogramRequest(
    msgspec.Struct, frozen=True, tag="date_histogram", tag_field="type", forbid_unknown_fields=True
):
    """How many documents lie in each unit of the calendar, or interval as ``15m``; UTC."""

    field: str
    interval: Annotated[str, msgspec.Meta(max_length=INTERVAL_CHARS_MAX)]


class StatsRequest(
    msgspec.Struct, frozen=True, tag="stats", tag_field="type", forbid_unknown_fields=True
):
    """How many values, the least, the greatest, sum and average."""

    field: str


class DistinctRequest(
    msgspec.Struct, frozen=True, tag="distinct", tag_field="type", forbid_unknown_fields=True
):
    """How many different values."""

    field: str


FacetRequest = (
    TermsRequest | HistogramRequest | DateHistogramRequest | StatsRequest | DistinctRequest
)

FilterRequest = Annotated[tuple[ConditionRequest, ...], msgspec.Meta(max_length=CONDITIONS_MAX)]
SortRequest = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=SORT_KEYS_MAX)]
FacetsRequest = Annotated[
    dict[Annotated[str, msgspec.Meta(max_length=FACET_NAME_CHARS_MAX)], FacetRequest],
    msgspec.Meta(max_length=FACETS_MAX),
]


def selection_of(
    conditions: Sequence[ConditionRequest],
    sort: Sequence[str],
    facets: Mapping[str, FacetRequest],
    fields: Iterable[Field],
) -> Selection | None:
    """Return what a request selects, None when nothing. Raises BadRequest."""
    known = {field.name: field for field in fields}
    selection = Selection(
        tuple(_condition(f"filter[{i}]", c, known) for i, c in enumerate(conditions)),
        _sort(sort, known),
        tuple(_count(f"facets.{name}", facet, known) for name, facet in facets.items()),
    )
    return None if selection == Selection() else selection


def described(selection: Selection | None) -> str:
    """Name the kinds and fields of a selection, without its values: what it costs, roughly."""
    if selection is None:
        return ""
    filters = [f"{_tag(one)}:{one.field}" for one in selection.filters]
    sort = [f"sort:{key.field}" for key in selection.sort]
    facets = [f"{_tag(one)}:{one.field}" for one in selection.facets]
    return " ".join(["", *sorted({*filters}), *sort, *facets])


def cost_class_of(selection: Selection | None, query_class: str) -> str:
    """Name the cost class of a query with a selection: to sort or count, all matches are looked
    at, whatever they match.
    """
    if selection is not None and selection.facets:
        return "search-facets"
    return "search-sorted" if selection is not None and selection.sort else query_class


def _tag(node: msgspec.Struct) -> str:
    return str(node.__struct_config__.tag)


# --- fields ------------------------------------------------------------------------------


def _field(path: str, name: str, known: Mapping[str, Field], kinds: Iterable[FieldType]) -> Field:
    wanted = frozenset(kinds)
    field = known.get(name)
    if field is not None and field.type in wanted:
        return field
    fit = ", ".join(sorted(other.name for other in known.values() if other.type in wanted))
    what = f"there is no field {name!r:.80}" if field is None else f"{name!r} is {field.type}"
    raise BadRequest(path, f"{what}; fields that can be named here: {fit or 'none'}")


_NO_TEXT: Final[tuple[FieldType, ...]] = ("keyword", "integer", "float", "date", "boolean")


# --- filters -----------------------------------------------------------------------------


def _condition(path: str, asked: ConditionRequest, known: Mapping[str, Field]) -> Condition:
    field = _field(f"{path}.field", asked.field, known, _NO_TEXT)
    bounds = {
        name: value
        for name in ("gt", "gte", "lt", "lte")
        if (value := getattr(asked, name)) is not msgspec.UNSET
    }
    given = [
        name for name in ("equals", "one_of", "exists") if getattr(asked, name) is not msgspec.UNSET
    ]
    if len(given) + bool(bounds) != 1:
        raise BadRequest(path, "give one of equals, one_of, exists, or bounds (gt, gte, lt, lte)")
    if bounds:
        return _between(path, field, bounds, negated=asked.negated)
    if asked.exists is not msgspec.UNSET:
        return Present(field.name, negated=asked.exists == asked.negated)
    values = (asked.equals,) if asked.one_of is msgspec.UNSET else asked.one_of
    if not values:
        raise BadRequest(f"{path}.one_of", "names no value")
    read = [
        _value(f"{path}.equals" if given == ["equals"] else f"{path}.one_of[{i}]", value, field)
        for i, value in enumerate(values)
    ]
    return Among(field.name, tuple(dict.fromkeys(read)), asked.negated)


def _between(path: str, field: Field, bounds: Mapping[str, Any], *, negated: bool) -> Between:
    if field.type not in _RANGED:
        raise BadRequest(f"{path}.field", f"{field.name!r} is {field.type}, which has no range")
    for one, other in (("gt", "gte"), ("lt", "lte")):
        if one in bounds and other in bounds:
            raise BadRequest(f"{path}.{other}", f"give {one} or {other}, not both")
    read: dict[str, Any] = {n: _value(f"{path}.{n}", v, field) for n, v in bounds.items()}
    return Between(
        field.name,
        read.get("gt", read.get("gte")),
        read.get("lt", read.get("lte")),
        "gt" in read,
        "lt" in read,
        negated,
    )


def _value(path: str, given: Any, field: Field) -> Value:
    value = value_of(given, field.type)
    if value is None:
        raise BadRequest(path, f"must be {WANTED[field.type]}, not {given!r:.40}")
    return value


# --- sort --------------------------------------------------------------------------------


def _sort(names: Sequence[str], known: Mapping[str, Field]) -> tuple[SortKey, ...]:
    if list(names) == [SCORE]:
        return ()
    keys: list[SortKey] = []
    for i, name in enumerate(names):
        path, bare = f"sort[{i}]", name.removeprefix("-")
        if bare == SCORE:
            raise BadRequest(path, f"{SCORE} stands alone, best first: it is the default")
        if bare != ID and _field(path, bare, known, _NO_TEXT).multiple:
            raise BadRequest(path, f"{bare!r} may have several values: none of them is its place")
        if any(key.field == bare for key in keys):
            raise BadRequest(path, f"{bare!r} is there twice")
        keys.append(SortKey(bare, name != bare))
    return tuple(keys)


# --- facets ------------------------------------------------------------------------------


def _count(path: str, asked: FacetRequest, known: Mapping[str, Field]) -> Count:
    at = f"{path}.field"
    match asked:
        case TermsRequest():
            return TermsCount(_field(at, asked.field, known, _NO_TEXT).name)
        case HistogramRequest():
            field = _field(at, asked.field, known, NUMBERS)
            if not (isfinite(asked.interval) and isfinite(asked.offset)):
                raise BadRequest(f"{path}.interval", "interval and offset must be finite")
            return HistogramCount(field.name, asked.interval, asked.offset)
        case DateHistogramRequest():
            return _dates(path, asked, _field(at, asked.field, known, ("date",)))
        case StatsRequest():
            return StatsCount(_field(at, asked.field, known, _RANGED).name)
        case DistinctRequest():
            return DistinctCount(_field(at, asked.field, known, _NO_TEXT).name)
        case _:
            assert_never(asked)


def _dates(path: str, asked: DateHistogramRequest, field: Field) -> Count:
    match asked.interval:
        case "week" | "month" | "quarter" | "year" as unit:
            if field.multiple:
                detail = f"{field.name!r} may have several values: name a fixed width, as in 30d"
                raise BadRequest(f"{path}.interval", detail)
            return CalendarCount(field.name, unit)
        case "second" | "minute" | "hour" | "day" as unit:
            return HistogramCount(field.name, _UNIT_US[unit])
        case _:
            found = _MULTIPLE.fullmatch(asked.interval)
    if found is None:
        raise BadRequest(
            f"{path}.interval",
            "must be second, minute, hour, day, week, month, quarter, year, "
            f"or so many s, m, h or d as in 15m, not {asked.interval!r}",
        )
    return HistogramCount(field.name, int(found[1]) * _UNIT_US[_LETTERS[found[2]]])
