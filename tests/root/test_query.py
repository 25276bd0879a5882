"""What is allowed of a query tree, and what is known of it."""

from __future__ import annotations

import re

import msgspec
import pytest

from index_data.manifest import Field
from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    All,
    Bool,
    Fuzzy,
    Phrase,
    Prefix,
    Query,
    Range,
    Word,
)
from root.errors import BadRequest
from root.language import parse
from root.query import boosted, check_text, check_tree, combined, cost_class, is_exact

FIELDS = {name: Field(name, "text") for name in ("name", "body")}
FIELDS["year"] = Field("year", "integer")


def either(*nodes: Query) -> Bool:
    return Bool(should=nodes)


def test_text_may_have_tabs_and_line_ends() -> None:
    """They are what a person pastes; other control characters are not."""
    check_text("q", "a\tb\r\nc")


# --- trees given as data -----------------------------------------------------------------


def nested(depth: int) -> Query:
    tree: Query = Word("a")
    for _ in range(depth - 1):
        tree = Bool(must=(tree,))
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        All(),
        Bool(),
        Word("a", "name", BOOST_MAX),
        Phrase("a b", None, BOOST_MIN),
        nested(QUERY_DEPTH_MAX),
        either(*[Word("a")] * (QUERY_NODES_MAX - 1)),
    ],
)
def test_a_legal_tree_passes(tree: Query) -> None:
    """Every kind of node, at its limits."""
    check_tree(tree, FIELDS)


@pytest.mark.parametrize(
    ("tree", "field", "detail"),
    [
        (Word("a\0"), "query.text", "control character at position 1"),
        (Word("\udc00"), "query.text", "not valid Unicode"),
        (Word("a", "titel"), "query.field", "there is no field 'titel'"),
        (Phrase("a", None, 0.0), "query.boost", "from 0.001 to 1000"),
        (Word("a", None, -1.0), "query.boost", "from 0.001"),
        (Word("a", None, float("nan")), "query.boost", "from 0.001"),
        (Word("a", None, float("inf")), "query.boost", "to 1000"),
        (Prefix("a", "titel"), "query.field", "there is no field 'titel'"),
        (Fuzzy("a", boost=0.0), "query.boost", "from 0.001 to 1000"),
        (Range("titel"), "query.field", "there is no field 'titel'"),
        (Range("year", gte="\1"), "query.gte", "control character"),
        (Range("year", gte=1, gt=2), "query", "does not fit: the range of 'year' has two bounds"),
        (Range("year", lte=1.5), "query", "'1.5' is no value of 'year': that is an integer"),
        (Range("name", lte="b"), "query", "'name' has no order"),
        (Range("year", boost=0.0), "query.boost", "from 0.001 to 1000"),
        (Word("x", "year"), "query", "'x' is no value of 'year'"),
        (Prefix("1", "year"), "query", "'year' has no letters"),
        (Bool(must=(All(), Word("a", "x"))), "query.must[1].field", "no field 'x'"),
        (either(Bool(must_not=(Word("\1"),))), "query.should[0].must_not[0].text", "control"),
        (nested(QUERY_DEPTH_MAX + 1), "query", f"nested more than {QUERY_DEPTH_MAX} deep"),
        (either(*[Word("a")] * QUERY_NODES_MAX), "query", f"more than {QUERY_NODES_MAX} nodes"),
    ],
)
def test_an_illegal_tree_is_refused_by_path(tree: Query, field: str, detail: str) -> None:
    """The error names the node that is at fault."""
    with pytest.raises(BadRequest, match=re.escape(detail)) as caught:
        check_tree(tree, FIELDS)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("json", "search-short"),
        ("parse json", "search-short"),
        ("-xml", "search-short"),
        ("parse json -xml", "search-long"),
        ('"parse json"', "search-phrase"),
        ('+a "b c" -d', "search-phrase"),
        ("pars*", "search-pattern"),
        ('"a b" c~', "search-pattern"),
        ("a year:[1 TO 2]", "search-pattern"),
    ],
)
def test_queries_that_cost_alike_are_of_one_class(text: str, name: str) -> None:
    """By the number of terms, and whether positions are read."""
    assert cost_class(parse(text, FIELDS).query) == name


def test_everything_is_the_cheapest_class() -> None:
    """A query for all documents looks up no term, nor does one for none."""
    assert cost_class(All()) == cost_class(Bool()) == "search-short"


@pytest.mark.parametrize(
    ("tree", "exact"),
    [
        (All(), True),
        (Bool(), True),
        (Bool(must_not=(Word("a"),)), True),
        (Word("a"), False),
        (Phrase("a"), False),
        (Bool(must=(Word("a"),)), False),
        (Bool(should=(All(),)), True),
        (Bool(must=(All(), Bool(should=(Prefix("a"), Word("b"))))), False),
        (Prefix("a", "name"), True),
        (Fuzzy("a", 1, "name"), True),
        (Prefix("a"), True),
        (Range("year", gte=1), True),
        (Prefix("a", tie_breaker=0.0), True),
        (Fuzzy("a", tie_breaker=0.5), True),
        (Bool(should=(Prefix("a", "name"), Fuzzy("b")), must_not=(Word("c"),)), True),
    ],
)
def test_scores_without_term_statistics_are_exact(tree: Query, exact: bool) -> None:
    """They need no second look; where in doubt they get one."""
    assert is_exact(tree) == exact


@pytest.mark.parametrize("node", [Word("a"), Phrase("a b"), Prefix("a"), Fuzzy("a", 1)])
def test_a_text_counts_as_its_best_field_unless_it_says_otherwise(node: Query) -> None:
    """Wherever it stands; one with a field, or with a tie breaker of its own, stays as it is."""
    assert not isinstance(node, Bool | All)
    best = msgspec.structs.replace(node, tie_breaker=0.25)
    named = msgspec.structs.replace(node, field="name")
    other = msgspec.structs.replace(node, tie_breaker=0.5)
    years = Range("year")
    excluding = Bool(must_not=(node,))
    tree = Bool(must=(node, All(), years), should=(named, excluding), must_not=(other,))
    assert combined(node, 0.25) == best
    assert combined(tree, 0.25) == Bool(
        must=(best, All(), years), should=(named, Bool(must_not=(best,))), must_not=(other,)
    )


def test_a_boost_reaches_all_that_can_have_one_and_stays_within_its_limits() -> None:
    """Everything and signs stay as they are."""
    tree = Bool(must=(Word("a", boost=2.0), All()), must_not=(either(Range("year")),))
    scaled, outside = boosted(tree, 3.0)
    assert scaled == Bool(
        must=(Word("a", boost=6.0), All()), must_not=(either(Range("year", boost=3.0)),)
    )
    assert not outside
    assert boosted(either(Word("a", boost=2.0)), BOOST_MAX) == (
        either(Word("a", boost=BOOST_MAX)),
        True,
    )
    assert boosted(Word("a"), 0.0) == (Word("a", boost=BOOST_MIN), True)


def double(tree: Query) -> tuple[Query, bool]:
    return boosted(tree, 2.0)


def no_best(tree: Query) -> Query:
    return combined(tree, 0.0)


def check(tree: Query) -> None:
    check_tree(tree, FIELDS)


@pytest.mark.parametrize("function", [cost_class, is_exact, no_best, double, check])
def test_the_tables_of_nodes_are_complete(function: object) -> None:
    """What is no node of a query is a fault of ours, not of the caller's."""
    assert callable(function)
    with pytest.raises(AssertionError):
        function("json")
