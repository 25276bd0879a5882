"""What a search filters, sorts and counts by, as it travels from root to leaf and back.

The root has checked every name and value against the schema; values are as they are within
the index (``index_data.values``): dates are microseconds, keywords text. A document with
several values fulfils a condition if one of them does, and a negated one if none does.

Documents are sorted by keys and then by ordinal; those without a value come last, whatever
the direction. ``arranged`` is that order, for whoever has rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

CONDITIONS_MAX: Final = 64
VALUES_MAX: Final = 1_000
"""Conditions of a search, and values that one of them may name."""

SORT_KEYS_MAX: Final = 8
FACETS_MAX: Final = 16
"""Sort keys and facets of a search: each costs a pass over what matches."""

BUCKETS_MAX: Final = 10_000
"""Different values or intervals that a shard counts for a facet: with more, counts of values
have a stated error, and a histogram is refused."""

DISTINCT_EXACT_MAX: Final = 4_096
"""Different values that are counted exactly. A shard's sketch of more is 16 KiB."""

Value = str | int | float | bool
SortValue = str | int | float | bool | None

ID: Final = "_id"
"""The sort key that is a document's id."""


class Among(msgspec.Struct, frozen=True, tag="among", tag_field="type", forbid_unknown_fields=True):
    """One of the field's values is one of these; of ID, the id is."""

    field: str
    values: Annotated[tuple[Value, ...], msgspec.Meta(min_length=1, max_length=VALUES_MAX)]
    negated: bool = False


class Between(
    msgspec.Struct, frozen=True, tag="between", tag_field="type", forbid_unknown_fields=True
):
    """One of the field's values, numbers or dates, lies between two bounds; None is no bound."""

    field: str
    low: int | float | None = None
    high: int | float | None = None
    low_open: bool = False
    high_open: bool = False
    negated: bool = False


class Present(
    msgspec.Struct, frozen=True, tag="present", tag_field="type", forbid_unknown_fields=True
):
    """The field has a value."""

    field: str
    negated: bool = False


Condition = Among | Between | Present


class SortKey(msgspec.Struct, frozen=True, array_like=True):
    """A field to sort by, or ID."""

    field: str
    descending: bool = False


class TermsCount(msgspec.Struct, frozen=True, tag="terms", tag_field="type"):
    """How many documents have each value: ``[values, counts, floor]``.

    ``floor`` is the most that a value left out can have: 0 where none was.
    """

    field: str


class HistogramCount(msgspec.Struct, frozen=True, tag="histogram", tag_field="type"):
    """How many documents lie in each interval: ``[numbers, counts]``, where interval n begins at
    ``offset + n * interval``. For dates both are microseconds.
    """

    field: str
    interval: float
    offset: float = 0.0


CalendarUnit = Literal["week", "month", "quarter", "year"]


class CalendarCount(msgspec.Struct, frozen=True, tag="calendar", tag_field="type"):
    """How many documents lie in each unit of the calendar: ``[first days, counts]``; days are
    counted from 1970.
    """

    field: str
    unit: CalendarUnit


class StatsCount(msgspec.Struct, frozen=True, tag="stats", tag_field="type"):
    """``[how many values, the least, the greatest, their sum]``; None where there are none."""

    field: str


class DistinctCount(msgspec.Struct, frozen=True, tag="distinct", tag_field="type"):
    """Which values there are: ``[hashes, ""]`` up to DISTINCT_EXACT_MAX of them, else
    ``[[], sketch]`` (``leaf.sketch``).
    """

    field: str


Count = TermsCount | HistogramCount | CalendarCount | StatsCount | DistinctCount


class After(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place in the order of hits after which they are wanted: the values of the sort keys,
    or the score alone, and the ordinal.
    """

    values: tuple[SortValue, ...]
    ordinal: int


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the documents that match are wanted, in which order, and what is counted.

    ``sort`` empty means by score. ``facets`` and the total count all that pass the filters,
    whether or not they come ``after``.
    """

    filters: Annotated[tuple[Condition, ...], msgspec.Meta(max_length=CONDITIONS_MAX)] = ()
    sort: Annotated[tuple[SortKey, ...], msgspec.Meta(max_length=SORT_KEYS_MAX)] = ()
    facets: Annotated[tuple[Count, ...], msgspec.Meta(max_length=FACETS_MAX)] = ()
    after: After | None = None


class SortedRow(NamedTuple):
    """A document on its place: the values of the sort keys, its ordinal, and its shard."""

    values: Sequence[SortValue]
    ordinal: int
    shard: int = 0


def arranged(rows: Sequence[SortedRow], keys: Sequence[SortKey]) -> list[SortedRow]:
    """Return rows in the order of some keys, then of their ordinals."""
    ordered = sorted(rows, key=lambda row: row.ordinal)
    for place, key in reversed([*enumerate(keys)]):
        present = [row for row in ordered if row.values[place] is not None]
        absent = [row for row in ordered if row.values[place] is None]
        present.sort(key=lambda row, at=place: row.values[at], reverse=key.descending)  # type: ignore[misc]
        ordered = present + absent
    return ordered
