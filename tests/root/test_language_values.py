"""What a person types of numbers, dates and booleans: values, and ranges of them."""

from __future__ import annotations

import pytest

from index_data.manifest import Field
from leaf.protocol import Bool, Phrase, Query, Range, Word
from root.errors import BadRequest
from root.language import Fault, parse

A = Word("a")
FIELDS = {
    "name": Field("name", "text"),
    "body": Field("body", "text"),
    "year": Field("year", "integer"),
    "rate": Field("rate", "float"),
    "day": Field("day", "date"),
    "kind": Field("kind", "keyword"),
    "good": Field("good", "boolean"),
}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("year:[2001 TO 2010]", Range("year", gte="2001", lte="2010")),
        ("year:{2001 TO 2010}", Range("year", gt="2001", lt="2010")),
        ("year:[2001 TO 2010}", Range("year", gte="2001", lt="2010")),
        ("year:[ 2001   TO\t2010 ]", Range("year", gte="2001", lte="2010")),
        ("rate:[* TO 5]", Range("rate", lte="5")),
        ("rate:{-0.5 TO *}", Range("rate", gt="-0.5")),
        ("year:[* TO *]", Range("year")),
        ("year:*", Range("year")),
        ("kind:*", Range("kind")),
        (
            'day:["2001-01-01" TO 2001-12-31T23:59:59Z]^2',
            Range("day", "2001-01-01", None, "2001-12-31T23:59:59Z", None, 2.0),
        ),
        ("+year:[1 TO 2] a", Bool(must=(Range("year", gte="1", lte="2"),), should=(A,))),
        (
            "(year:[1 TO 2] a)^2",
            Bool(should=(Range("year", gte="1", lte="2", boost=2.0), Word("a", boost=2.0))),
        ),
        ("year:2001", Word("2001", "year")),
        ("year:-5", Word("-5", "year")),
        ("year:(1 OR 2)", Bool(should=(Word("1", "year"), Word("2", "year")))),
        ("good:true", Word("true", "good")),
        ('day:"2001-12-31"', Phrase("2001-12-31", "day")),
        ("[1 TO 2]", Bool(should=(Word("[1"), Word("TO"), Word("2]")))),
    ],
)
def test_fields_of_values_have_values_and_ranges(text: str, tree: Query) -> None:
    """Both ends of a range are in it, or not; a star is no bound."""
    assert parse(text, FIELDS, strict=True).query == tree


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("a year:abc", 7, "'abc' is no value of 'year': that is an integer"),
        ("a year:[1 TO x]", 7, "'x' is no value of 'year'"),
        ("a year:20*", 7, "'year' has no letters"),
        ("a good:[true TO *]", 7, "'good' has no order"),
        ("a kind:[b TO c]", 7, "'kind' has no order"),
        ("a day:2001-13-01", 6, "'2001-13-01' is no value of 'day'"),
        ("a AND year:[1", 11, "'[1' is no value of 'year'"),
    ],
)
def test_what_does_not_fit_its_field_is_left_out(text: str, position: int, message: str) -> None:
    """A field of numbers has no words, and the fault is noted or refused as all others."""
    reading = parse(text, FIELDS)
    assert reading.query == A
    assert reading.faults[0].position == position
    assert message in reading.faults[0].message
    with pytest.raises(BadRequest, match=f"position {position}"):
        parse(text, FIELDS, strict=True)


@pytest.mark.parametrize(
    ("text", "position", "bounds"),
    [
        ("year:[2010 TO 2001]", 5, "[2010 TO 2001]"),
        ("a -year:{2001 TO 2001}", 8, "{2001 TO 2001}"),
        ("rate:[1 TO 1}^2", 5, "[1 TO 1}"),
        ("day:[2001-01-02 TO 2001-01-01]", 4, "[2001-01-02 TO 2001-01-01]"),
        ("day:{2001-01-01 TO 2001-01-01]", 4, "{2001-01-01 TO 2001-01-01]"),
    ],
)
def test_a_range_without_a_value_in_it_is_a_fault(text: str, position: int, bounds: str) -> None:
    """It finds nothing, as it says, and the answer says why."""
    (fault,) = parse(text, FIELDS).faults
    assert fault == Fault(position, f"no value lies in {bounds}: it finds nothing")
    with pytest.raises(BadRequest) as caught:
        parse(text, FIELDS, strict=True)
    assert (
        caught.value.detail == f"cannot be read at position {position}: no value lies in {bounds}"
    )


@pytest.mark.parametrize(
    "text",
    ["year:[2001 TO 2001]", "rate:{0 TO 0.001}", "day:[2001-01-01 TO 2001-01-01]", "year:[5 TO *}"],
)
def test_a_range_of_one_value_is_one(text: str) -> None:
    """A day has all of its moments."""
    assert parse(text, FIELDS, strict=True).query == parse(text, FIELDS).query
