"""A value is of its field's type exactly or not at all, and keeps every digit."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import FIELD_TYPES, Field, FieldType
from index_data.values import (
    INTEGER_LEAST,
    INTEGER_MOST,
    VALUES_MAX,
    WANTED,
    date_text,
    microseconds,
    text_of_moment,
    value_in,
    value_of,
    values_of,
    written,
)


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        ("text", ["", "words"]),
        ("keyword", ["a", 7, 2**64 - 1, "x" * 512]),
        ("integer", [0, INTEGER_LEAST, INTEGER_MOST, 2**53 + 1]),
        ("float", [0, 1.5, -1e308, 2**63 - 1]),
        ("date", ["2001-12-31", "2001-12-31T23:59:59.123456789+05:30"]),
        ("boolean", [True, False]),
    ],
)
def test_each_type_takes_its_own_values(kind: FieldType, good: list[Any]) -> None:
    """What a type promises to take it takes; booleans are no numbers and numbers no text."""
    for value in good:
        assert value_of(value, kind) is not None
    bad: list[Any] = [None, [], {}, "x" * 513, float("nan"), float("inf"), "2001-02-29", 10**400]
    bad += [True] if kind != "boolean" else [1, "true"]
    if kind in {"integer", "float", "boolean", "date"}:
        bad += ["1", ""]
    if kind == "integer":
        bad += [1.0, INTEGER_MOST + 1, INTEGER_LEAST - 1]
    if kind == "text":
        bad = [value for value in bad if not isinstance(value, str)]
    if kind == "keyword":
        bad = [value for value in bad if value not in ("2001-02-29", 10**400)]
    for value in bad:
        assert value_of(value, kind) is None, value


def test_integers_keep_every_digit_and_minus_zero_is_zero() -> None:
    """No integer passes through a double, and equal numbers are one value."""
    assert value_of(INTEGER_MOST, "integer") == INTEGER_MOST
    assert value_of(INTEGER_MOST, "keyword") == str(INTEGER_MOST)
    assert str(value_of(-0.0, "float")) == "0.0"


@pytest.mark.parametrize(
    ("text", "at_us"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", 1_000_000),
        ("1970-01-01 01:00+01:00", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("1970-01-01T00:00:00.0000019", 1),
        ("1970-01-01T00:00:00,5-00:00", 500_000),
        ("0001-01-01", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ],
)
def test_dates_are_microseconds_in_utc(text: str, at_us: int) -> None:
    """Offsets are taken off, what is below a microsecond is dropped."""
    assert microseconds(text) == at_us


@pytest.mark.parametrize(
    "text",
    ["", "2001", "2001-02", "2001-13-01", "2001-02-30", "20010203", "2001-W01-1", "2001-02-03T",
     "2001-02-03T24:00", "2001-02-03T23:59:60Z", "2001-02-03T10:00+25:00", "2001-02-03T10",
     "0001-01-01T00:00+01:00", "9999-12-31T23:59:59-01:00", "2001-02-03\n", "٢٠٠١-٠٢-٠٣"],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    """Other notations are refused rather than guessed, and so are years beyond 1 to 9999."""
    assert microseconds(text) is None


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_date_comes_back_as_it_was(moment: datetime) -> None:
    """Writing and reading a date gives the same microsecond."""
    text = text_of_moment(moment)
    at_us = microseconds(text)
    assert at_us is not None
    assert microseconds(date_text(at_us)) == at_us
    assert written(at_us, "date") == text
    assert written(7, "integer") == 7


def test_moments_of_tables_are_brought_to_utc() -> None:
    """A zone is taken off; without one a moment is UTC, and a day stays a day."""
    east = timezone(timedelta(hours=2))
    assert text_of_moment(datetime(2001, 1, 1, 1, tzinfo=east)) == "2000-12-31T23:00:00Z"
    assert text_of_moment(datetime(2001, 1, 1, 1)) == "2001-01-01T01:00:00Z"  # noqa: DTZ001
    assert text_of_moment(date(2001, 1, 1)) == "2001-01-01"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("9223372036854775807", "integer", INTEGER_MOST),
        ("+7", "integer", 7),
        ("9223372036854775808", "integer", None),
        ("1_000", "integer", None),
        ("1.5", "integer", None),
        ("1e3", "float", 1000.0),
        (".5", "float", 0.5),
        ("1e400", "float", None),
        ("nan", "float", None),
        ("True", "boolean", True),
        ("no", "boolean", None),
        ("1970-01-02", "date", 86_400_000_000),
        ("soon", "date", None),
        ("", "keyword", None),
        ("a", "keyword", "a"),
        ("a b", "text", "a b"),
    ],
)
def test_text_is_read_strictly(text: str, kind: FieldType, value: Any) -> None:
    """A cell of a table or a bound in a query says a value or none."""
    assert value_in(text, kind) == value


def test_several_values_are_for_fields_that_have_several() -> None:
    """A list is legal where the schema says so, each of its values once, all of the type."""
    tags = Field("tags", "keyword", multiple=True)
    assert values_of(["a", "b", "a"], tags) == ["a", "b"]
    assert values_of([], tags) == []
    assert values_of("a", tags) == ["a"]
    assert values_of(None, tags) == []
    assert values_of(["a", None], tags) is None
    assert values_of(["a", ["b"]], tags) is None
    assert values_of([str(i) for i in range(VALUES_MAX + 1)], tags) is None
    assert values_of(["a"], Field("tag", "keyword")) is None
    numbers = Field("numbers", "float", multiple=True)
    assert values_of([1, 1.0, 0, -0.0], numbers) == [1.0, 0.0]


def test_every_type_says_what_it_wants() -> None:
    """Whoever is told that a value is wrong is told what is right."""
    assert set(WANTED) == set(FIELD_TYPES)
