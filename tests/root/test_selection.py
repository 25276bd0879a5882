"""What a request may filter, sort and count by, and what is said where it may not."""

from __future__ import annotations

from math import inf
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from index_data.manifest import Field
from leaf.selection import (
    Among,
    Between,
    CalendarCount,
    DistinctCount,
    HistogramCount,
    Present,
    Selection,
    SortKey,
    StatsCount,
    TermsCount,
)
from root.errors import BadRequest
from root.requests import search_from_json, search_from_query_string
from root.selection import FacetRequest, HistogramRequest, cost_class_of, described, selection_of

FIELDS = (
    Field("body", "text"),
    Field("kind", "keyword"),
    Field("tags", "keyword", multiple=True),
    Field("n", "integer"),
    Field("x", "float"),
    Field("at", "date"),
    Field("days", "date", multiple=True),
    Field("ok", "boolean"),
)
DAY_US = 86_400_000_000


def selected(**members: Any) -> Selection:
    """What a request with these members selects."""
    request = search_from_json(orjson.dumps({"q": "a", **members}))
    selection = selection_of(request.filter, request.sort, request.facets, FIELDS)
    assert selection is not None
    return selection


@pytest.mark.parametrize(
    ("asked", "condition"),
    [
        ({"field": "kind", "equals": "a"}, Among("kind", ("a",))),
        ({"field": "kind", "equals": 7}, Among("kind", ("7",))),
        ({"field": "tags", "one_of": ["a", "b", "a"]}, Among("tags", ("a", "b"))),
        ({"field": "ok", "equals": False, "not": True}, Among("ok", (False,), negated=True)),
        ({"field": "at", "equals": "1970-01-02"}, Among("at", (DAY_US,))),
        ({"field": "x", "equals": 1}, Among("x", (1.0,))),
        ({"field": "n", "gte": 1, "lt": 5}, Between("n", 1, 5, False, True)),
        ({"field": "n", "gt": 2**63 - 1}, Between("n", 2**63 - 1, None, True)),
        ({"field": "x", "lte": 0.5, "not": True}, Between("x", None, 0.5, negated=True)),
        ({"field": "at", "gte": "1970-01-02"}, Between("at", DAY_US)),
        ({"field": "n", "exists": True}, Present("n")),
        ({"field": "n", "exists": False}, Present("n", negated=True)),
        ({"field": "n", "exists": False, "not": True}, Present("n")),
    ],
)
def test_conditions_have_values_as_the_index_does(asked: Any, condition: Any) -> None:
    """Types are the schema's, and no digit is lost."""
    assert selected(filter=[asked]).filters == (condition,)


@pytest.mark.parametrize(
    ("condition", "field", "words"),
    [
        ({"field": "nope", "equals": 1}, "filter[0].field", "there is no field 'nope'"),
        ({"field": "body", "equals": "a"}, "filter[0].field", "'body' is text; fields that can"),
        ({"field": "n"}, "filter[0]", "give one of equals"),
        ({"field": "n", "equals": 1, "exists": True}, "filter[0]", "give one of equals"),
        ({"field": "n", "equals": 1, "gt": 1}, "filter[0]", "give one of equals"),
        ({"field": "n", "equals": 1.5}, "filter[0].equals", "an integer of 64 bits, not 1.5"),
        ({"field": "n", "equals": "1"}, "filter[0].equals", "not '1'"),
        ({"field": "n", "equals": 2**63}, "filter[0].equals", "an integer of 64 bits"),
        ({"field": "n", "one_of": []}, "filter[0].one_of", "names no value"),
        ({"field": "n", "one_of": [1, "a"]}, "filter[0].one_of[1]", "not 'a'"),
        ({"field": "at", "gt": "soon"}, "filter[0].gt", "a date such as"),
        ({"field": "kind", "gt": "a"}, "filter[0].field", "'kind' is keyword, which has no range"),
        ({"field": "n", "gt": 1, "gte": 1}, "filter[0].gte", "gt or gte, not both"),
        ({"field": "n", "lt": 1, "lte": 1}, "filter[0].lte", "lt or lte, not both"),
        ({"field": "n", "equals": None}, "filter[0].equals", "null"),
        ({"field": "n", "is": 1}, "filter[0].is", "not a field of the request"),
        ({"equals": 1}, "filter[0]", "field"),
        ({"field": "n", "one_of": [0] * 1001}, "filter[0].one_of", "1000"),
    ],
)
def test_a_condition_that_cannot_be_is_named(condition: Any, field: str, words: str) -> None:
    """The member at fault, and what it may be."""
    with pytest.raises(BadRequest) as caught:
        selected(filter=[condition])
    assert caught.value.field == field
    assert words in caught.value.detail


def test_sort_keys_are_fields_or_the_id_each_once() -> None:
    """A minus turns the direction; by score is the default and stands alone."""
    assert selected(sort=["-n", "kind", "_id"]).sort == (
        SortKey("n", True),
        SortKey("kind"),
        SortKey("_id"),
    )
    assert selection_of((), ("_score",), {}, FIELDS) is None


@pytest.mark.parametrize(
    ("sort", "field", "words"),
    [
        (["nope"], "sort[0]", "there is no field 'nope'"),
        (["n", "body"], "sort[1]", "'body' is text"),
        (["tags"], "sort[0]", "several values"),
        (["n", "-n"], "sort[1]", "twice"),
        (["n", "_score"], "sort[1]", "stands alone"),
        (["-_score"], "sort[0]", "stands alone"),
        ([], "sort", "at least 1 values"),
        (["n"] * 9, "sort", "at most 8 values"),
    ],
)
def test_a_sort_key_that_cannot_be_is_named(sort: Any, field: str, words: str) -> None:
    """The place in the list, and why."""
    with pytest.raises(BadRequest) as caught:
        selected(sort=sort)
    assert caught.value.field == field
    assert words in caught.value.detail


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"type": "terms", "field": "tags"}, TermsCount("tags")),
        ({"type": "histogram", "field": "n", "interval": 5}, HistogramCount("n", 5.0)),
        (
            {"type": "date_histogram", "field": "at", "interval": "month"},
            CalendarCount("at", "month"),
        ),
        (
            {"type": "date_histogram", "field": "days", "interval": "day"},
            HistogramCount("days", DAY_US),
        ),
        (
            {"type": "date_histogram", "field": "at", "interval": "15m"},
            HistogramCount("at", 900_000_000),
        ),
        ({"type": "stats", "field": "at"}, StatsCount("at")),
        ({"type": "distinct", "field": "ok"}, DistinctCount("ok")),
    ],
)
def test_facets_are_counted_as_the_schema_allows(asked: Any, count: Any) -> None:
    """Each kind on its types."""
    assert selected(facets={"x": asked}).facets == (count,)


@pytest.mark.parametrize(
    ("facet", "field", "words"),
    [
        ({"type": "terms", "field": "body"}, "facets.a.field", "'body' is text"),
        ({"type": "terms", "field": "kind", "size": 0}, "facets.a.size", "at least 1"),
        ({"type": "histogram", "field": "at", "interval": 1}, "facets.a.field", "can be named"),
        ({"type": "histogram", "field": "n", "interval": 0}, "facets.a.interval", "0"),
        (
            {"type": "date_histogram", "field": "at", "interval": "0m"},
            "facets.a.interval",
            "not '0m'",
        ),
        (
            {"type": "date_histogram", "field": "days", "interval": "week"},
            "facets.a.interval",
            "several values",
        ),
        ({"type": "stats", "field": "kind"}, "facets.a.field", "'kind' is keyword"),
        ({"type": "distinct", "field": "nope"}, "facets.a.field", "no field"),
        ({"type": "average", "field": "n"}, "facets.a.type", "terms, histogram"),
    ],
)
def test_a_facet_that_cannot_be_is_named(facet: Any, field: str, words: str) -> None:
    """By the name it was asked by."""
    with pytest.raises(BadRequest) as caught:
        selected(facets={"a": facet})
    assert caught.value.field == field
    assert words in caught.value.detail


@pytest.mark.parametrize(
    ("facet", "field", "words"),
    [
        ('{"type": "terms", "field": "n", "size": 0}', "facets.b.c.size", "at least 1"),
        ('{"type": "terms"}', "facets.b.c", "missing required field `field`"),
        ('{"type": "terms", "field": "n", "sort": 1}', "facets.b.c.sort", "is not a field"),
        ("[]", "facets.b.c", "must be an object, not a list"),
    ],
)
def test_of_several_facets_the_one_at_fault_is_named(facet: str, field: str, words: str) -> None:
    """However the request was sent, and whatever a caller calls it."""
    facets = f'{{"a": {{"type": "stats", "field": "n"}}, "b.c": {facet}}}'
    for read, sent in (
        (search_from_json, f'{{"q": "a", "facets": {facets}}}'),
        (search_from_query_string, f"q=a&facets={quote(facets)}"),
    ):
        with pytest.raises(BadRequest) as caught:
            read(sent.encode())
        assert caught.value.field == field
        assert words in caught.value.detail


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ('{"a": 1}', "facets.a", "an object"),
        ('{"a": 1, "a": 1}', "a", "is given twice"),
        ('{"a": 1', "body", "is not JSON"),
        ('{"a": {"type": "histogram", "field": "n", "interval": 1e999}}', "facets", ""),
        (f'{{"{"x" * 65}": {{"type": "stats", "field": "n"}}}}', "facets", "at most 64 characters"),
    ],
)
def test_facets_that_are_no_facets_at_all_are_refused(body: str, field: str, words: str) -> None:
    """What is wrong with the whole of them, or with a name."""
    closed = "" if field == "body" else "}"
    with pytest.raises(BadRequest) as caught:
        search_from_json(f'{{"q": "a", "facets": {body}{closed}'.encode())
    assert caught.value.field.startswith(field)
    assert words in caught.value.detail


def test_an_interval_must_be_finite() -> None:
    """JSON has no infinity, but a number may become one."""
    facets: dict[str, FacetRequest] = {"x": HistogramRequest("n", inf)}
    with pytest.raises(BadRequest, match="finite"):
        selection_of((), ("_score",), facets, FIELDS)


def test_a_query_string_has_lists_by_comma_and_the_rest_as_json() -> None:
    """The same request either way, and what is no JSON is named."""
    given = search_from_query_string(
        b'q=a&sort=-n,kind&filter=[{"field":"n","gte":1}]'
        b'&facets={"x":{"type":"terms","field":"kind"}}'
    )
    asked = {
        "q": "a",
        "sort": ["-n", "kind"],
        "filter": [{"field": "n", "gte": 1}],
        "facets": {"x": {"type": "terms", "field": "kind"}},
    }
    assert given == search_from_json(orjson.dumps(asked))
    for raw in (b"filter={", b'facets={"a":1,"a":2}', b"filter=" + b"[" * 5000):
        with pytest.raises(BadRequest):
            search_from_query_string(b"q=a&" + raw)


def test_a_selection_is_described_without_its_values() -> None:
    """Alike in kinds and fields is alike in cost; what is counted or sorted costs by itself."""
    one = selected(
        filter=[{"field": "n", "gte": 1}, {"field": "n", "lt": 7}, {"field": "ok", "exists": True}],
        sort=["n"],
        facets={"x": {"type": "terms", "field": "kind"}},
    )
    assert described(one) == " between:n present:ok sort:n terms:kind"
    assert described(None) == ""
    assert cost_class_of(None, "plain") == "plain"
    assert cost_class_of(Selection(filters=one.filters), "plain") == "plain"
    assert cost_class_of(Selection(sort=one.sort), "plain") == "search-sorted"
    assert cost_class_of(one, "plain") == "search-facets"


def test_what_is_no_facet_is_a_fault_of_ours() -> None:
    """Whoever adds a kind of facet is told that it is not counted yet."""
    alien: Any = Present("n")
    with pytest.raises(AssertionError):
        selection_of((), ("_score",), {"x": alien}, FIELDS)
