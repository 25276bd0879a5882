"""What a query may ask of fields of numbers, dates and booleans: values, and ranges of them.

A bound is a value as JSON has it, or the text of one. A date without a time stands for all of
its day, so a range up to a day includes it. Knows neither the search library nor the network.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from index_data.manifest import Field
from index_data.values import DAY_US, WANTED, Value, value_in, value_of

ORDERED: Final = frozenset({"integer", "float", "date"})
"""Types that have ranges."""

Bound = str | int | float | bool

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SHOWN_CHARS: Final = 80


class Misfit(ValueError):
    """What is asked does not fit the field; the text says why, and names both."""


class Span(NamedTuple):
    """Values between two others, as they are within the index; None is no bound."""

    low: Value | None
    high: Value | None
    low_open: bool = False
    high_open: bool = False


def span_of(field: Field, bound: Bound) -> Span:
    """Return the values that a bound stands for. Raises Misfit."""
    kind = field.type
    value = value_in(bound, kind) if isinstance(bound, str) else value_of(bound, kind)
    if value is None:
        shown = str(bound)[:_SHOWN_CHARS]
        raise Misfit(f"{shown!r} is no value of {field.name!r}: that is {WANTED[kind]}")
    if kind == "date" and isinstance(bound, str) and _DAY.fullmatch(bound):
        return Span(value, int(value) + DAY_US - 1)
    return Span(value, value)


def range_of(
    field: Field,
    gte: Bound | None = None,
    gt: Bound | None = None,
    lte: Bound | None = None,
    lt: Bound | None = None,
) -> Span:
    """Return the values between bounds; without any, all that there are. Raises Misfit."""
    if (gte is not None and gt is not None) or (lte is not None and lt is not None):
        raise Misfit(f"the range of {field.name!r} has two bounds on one side")
    first, last = gt if gte is None else gte, lt if lte is None else lte
    bounded = first is not None or last is not None
    if field.type == "text" or (bounded and field.type not in ORDERED):
        raise Misfit(f"{field.name!r} has no order to range over")
    low = high = None
    if first is not None:
        from_ = span_of(field, first)
        low = from_.low if gt is None else from_.high
    if last is not None:
        to = span_of(field, last)
        high = to.high if lt is None else to.low
    return Span(low, high, gt is not None, lt is not None)


def check_letters(field: Field) -> None:
    """Raise Misfit where the values of a field are not made of letters."""
    if not field.scored:
        raise Misfit(f"{field.name!r} has no letters: only whole values are found")
