"""What the values of a field may be: one rule for documents, for queries and for answers.

    type       in JSON                                     within the index
    text       text                                        the text
    keyword    text of 1 to 512 bytes, or an integer       the text; an integer's digits
    integer    an integer of 64 bits, with sign            the integer
    float      a number                                    a double
    date       RFC 3339, or a date alone; UTC by default   microseconds since 1970, UTC
    boolean    true or false                               true or false

What is within the index compares as its values do, and is exact in JSON. This module knows
neither the search library nor the network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from index_data.manifest import Field, FieldType

KEYWORD_BYTES_MAX: Final = 512
"""For ids and keywords: enough for a URL, far under the 64 KiB where tantivy drops a term."""

INTEGER_LEAST: Final = -(2**63)
INTEGER_MOST: Final = 2**63 - 1

VALUES_MAX: Final = 1_000
"""Values of one field of one document: tags and authors are tens; more is another document."""

MICROSECOND: Final = timedelta(microseconds=1)
SECOND_US: Final = 1_000_000

Value = str | int | float | bool
"""A value as it is within the index."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - everything here is UTC and says so once
DAY_US: Final = 86_400 * SECOND_US

_FIRST_US: Final = (date.min - _EPOCH.date()).days * DAY_US
_LAST_US: Final = ((date.max - _EPOCH.date()).days + 1) * DAY_US - 1
_DATE: Final = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](?P<time>\d\d:\d\d(?::\d\d)?)(?:[.,](?P<fraction>\d{1,12}))?"
    r"(?P<zone>[Zz]|[+-]\d\d:\d\d)?)?",
    re.ASCII,
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_BOOLEANS: Final = {"true": True, "false": False}

WANTED: Final[Mapping[FieldType, str]] = {
    "text": "text",
    "keyword": f"text of 1 to {KEYWORD_BYTES_MAX} bytes, or an integer",
    "integer": "an integer of 64 bits",
    "float": "a number",
    "date": "a date such as 2001-12-31 or 2001-12-31T23:59:59Z",
    "boolean": "true or false",
}
"""What a value of each type has to be, in words."""


# --- from JSON ---------------------------------------------------------------------------


def value_of(value: Any, kind: FieldType) -> Value | None:
    """Return a JSON value as it is within the index, None where it is not of this type."""
    return _READERS[kind](value)


def values_of(value: Any, field: Field) -> list[Value] | None:
    """Return the values of a field of a document, each once; None where they are not legal.

    A field that is missing or null has none. A list is legal where the field may have several
    values.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        found = value_of(value, field.type)
        return None if found is None else [found]
    if not field.multiple or len(value) > VALUES_MAX:
        return None
    read = [value_of(one, field.type) for one in value]
    several = [one for one in read if one is not None]
    return list(dict.fromkeys(several)) if len(several) == len(read) else None


def keyword_of(value: Any) -> str | None:
    """Return a keyword's one token, None where the value cannot be a keyword.

    Integers keep all their digits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and 0 < len(value.encode()) <= KEYWORD_BYTES_MAX:
        return value
    return None


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _integer_of(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if INTEGER_LEAST <= value <= INTEGER_MOST else None


def _float_of(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # minus zero becomes zero


def _date_of(value: Any) -> int | None:
    return microseconds(value) if isinstance(value, str) else None


def _boolean_of(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: Final[Mapping[FieldType, Callable[[Any], Value | None]]] = {
    "text": _text_of,
    "keyword": keyword_of,
    "integer": _integer_of,
    "float": _float_of,
    "date": _date_of,
    "boolean": _boolean_of,
}


# --- from text ---------------------------------------------------------------------------


def json_of(text: str, kind: FieldType) -> Any:
    """Return the JSON value that a text says, as in a table or a query; None for none."""
    match kind:
        case "integer":
            return int(text) if _INTEGER.fullmatch(text) else None
        case "float":
            return float(text) if _NUMBER.fullmatch(text) else None
        case "boolean":
            return _BOOLEANS.get(text.lower())
        case "text" | "keyword" | "date":
            return text


def value_in(text: str, kind: FieldType) -> Value | None:
    """Return the value that a text says as it is within the index, None where it says none."""
    return value_of(json_of(text, kind), kind)


def microseconds(text: str) -> int | None:
    """Return the microseconds from 1970 to a date in text, None where it is no date.

    Without an offset it is UTC, without a time its day's beginning. Digits below the
    microsecond are dropped. Years are 1 to 9999.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found['day']} {found['time'] or '00:00'}")
        zone = found["zone"] or "Z"
        offset = timedelta(0)
        if zone not in "Zz":
            offset = datetime.fromisoformat(f"2000-01-01 00:00{zone}").utcoffset() or offset
    except ValueError:
        return None
    fraction = int((found["fraction"] or "").ljust(6, "0")[:6])
    at_us = (moment - _EPOCH - offset) // MICROSECOND + fraction
    return at_us if _FIRST_US <= at_us <= _LAST_US else None


# --- back to JSON ------------------------------------------------------------------------


def written(value: Value, kind: FieldType) -> Value:
    """Return a value from within the index as it stands in JSON."""
    return date_text(int(value)) if kind == "date" else value


def date_text(at_us: int) -> str:
    """Return microseconds since 1970 in RFC 3339, UTC, the fraction where there is one."""
    moment = _EPOCH + at_us * MICROSECOND
    return f"{moment.isoformat()}Z"


def text_of_moment(moment: datetime | date) -> str:
    """Return a moment of a table in RFC 3339; without a zone it is UTC."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
