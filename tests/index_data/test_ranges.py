"""What may be asked of fields of values."""

from __future__ import annotations

import pytest

from index_data.manifest import Field
from index_data.ranges import Bound, Misfit, Span, check_letters, range_of, span_of

YEAR, RATE, DAY = Field("year", "integer"), Field("rate", "float"), Field("day", "date")
KIND, GOOD, BODY = Field("kind", "keyword"), Field("good", "boolean"), Field("body", "text")

NEW_YEAR_US = 978_307_200_000_000
"""2001-01-01 in microseconds since 1970."""
DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("field", "bound", "span"),
    [
        (YEAR, 2001, Span(2001, 2001)),
        (YEAR, "-5", Span(-5, -5)),
        (RATE, 2, Span(2.0, 2.0)),
        (RATE, "2.5", Span(2.5, 2.5)),
        (GOOD, "true", Span(True, True)),
        (GOOD, False, Span(False, False)),
        (DAY, "2001-01-01T00:00:00Z", Span(NEW_YEAR_US, NEW_YEAR_US)),
        (DAY, "2001-01-01", Span(NEW_YEAR_US, NEW_YEAR_US + DAY_US - 1)),
    ],
)
def test_a_value_is_read_as_its_field_has_it(field: Field, bound: Bound, span: Span) -> None:
    """As JSON or as text; a day is all of its moments."""
    assert span_of(field, bound) == span


def test_a_range_has_bounds_that_are_in_it_or_not() -> None:
    """Each on its own, or none at all."""
    assert range_of(YEAR, gte="1", lte=5) == Span(1, 5)
    assert range_of(YEAR, gt=1, lt="5") == Span(1, 5, low_open=True, high_open=True)
    assert range_of(RATE, gte="0.5") == Span(0.5, None)
    assert range_of(YEAR, lte=0) == Span(None, 0)
    assert range_of(YEAR) == range_of(KIND) == range_of(GOOD) == Span(None, None)


def test_days_as_bounds_are_in_a_range_or_out_of_it_as_a_whole() -> None:
    """From a day begins with it, after a day begins when it is over, and the same at the end."""
    last_us = NEW_YEAR_US + DAY_US - 1
    day = "2001-01-01"
    assert range_of(DAY, gte=day) == Span(NEW_YEAR_US, None)
    assert range_of(DAY, gt=day) == Span(last_us, None, low_open=True)
    assert range_of(DAY, lte=day) == Span(None, last_us)
    assert range_of(DAY, lt=day) == Span(None, NEW_YEAR_US, high_open=True)


@pytest.mark.parametrize(
    ("field", "bounds", "why"),
    [
        (YEAR, {"gte": "x"}, "'x' is no value of 'year': that is an integer of 64 bits"),
        (YEAR, {"lt": 1.5}, "'1.5' is no value of 'year'"),
        (YEAR, {"gte": 1, "gt": 1}, "two bounds on one side"),
        (YEAR, {"lte": 1, "lt": 1}, "two bounds on one side"),
        (DAY, {"gte": "2001-02-30"}, "'2001-02-30' is no value of 'day'"),
        (DAY, {"gte": 5}, "'5' is no value of 'day'"),
        (BODY, {}, "'body' has no order"),
        (KIND, {"gte": "a"}, "'kind' has no order"),
        (GOOD, {"lt": True}, "'good' has no order"),
    ],
)
def test_what_does_not_fit_is_refused(field: Field, bounds: dict[str, Bound], why: str) -> None:
    """The text names the value and the field."""
    with pytest.raises(Misfit, match=why):
        range_of(field, **bounds)


def test_only_text_and_keywords_have_letters() -> None:
    """To begin with, or to differ in."""
    for field in (BODY, KIND):
        check_letters(field)
    for field in (YEAR, RATE, DAY, GOOD):
        with pytest.raises(Misfit, match="no letters"):
            check_letters(field)
