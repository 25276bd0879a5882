"""What a person types: read as meant, or refused with the place that cannot be read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    TEXT_BYTES_MAX,
    All,
    Bool,
    Phrase,
    Query,
    Word,
)
from root.errors import BadRequest
from root.query import check_text, check_tree, cost_class, is_exact, parse

FIELDS = ("name", "body")


def either(*nodes: Query) -> Bool:
    return Bool(should=nodes)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("json", Word("json")),
        ("  json\t\n", Word("json")),
        ("parse json", either(Word("parse"), Word("json"))),
        ('"parse json"', Phrase("parse json")),
        ("name:loads", Word("loads", "name")),
        ('name:"parse json"', Phrase("parse json", "name")),
        ("+json", Bool(must=(Word("json"),))),
        ("-json", Bool(must_not=(Word("json"),))),
        ('-name:"a b"', Bool(must_not=(Phrase("a b", "name"),))),
        (
            '+a -b c +name:d -"e f"',
            Bool(
                must=(Word("a"), Word("d", "name")),
                should=(Word("c"),),
                must_not=(Word("b"), Phrase("e f")),
            ),
        ),
        ('"a""b"', either(Phrase("a"), Phrase("b"))),
        ("os.path.join", Word("os.path.join")),
        ("c++ f-string", either(Word("c++"), Word("f-string"))),
        ("--verbose", Bool(must_not=(Word("-verbose"),))),
        ("::", Word("::")),
        ("name:a:b", Word("a:b", "name")),
        ("3:4", Word("3:4")),
        ("Größe 日本語", either(Word("Größe"), Word("日本語"))),
        ("a\u3000b", either(Word("a"), Word("b"))),
    ],
)
def test_what_is_typed_becomes_a_tree(text: str, tree: Query) -> None:
    """Words, phrases, fields and signs, as the module's text has them."""
    assert parse(text, FIELDS) == tree


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "is empty: type at least one word"),
        (" \t\n", "is empty: type at least one word"),
        ('"parse json', "has a quote without its pair at position 0"),
        ('a b"c', "has a quote without its pair at position 3"),
        ("a +", "has nothing to search for after position 3"),
        ("name:", "has nothing to search for after position 5"),
        ("a name: b", "has nothing to search for after position 7"),
        ("+ a", "has nothing to search for after position 1"),
        ("titel:a", "there is no field 'titel'; there are body, name"),
        ("http://x", "there is no field 'http'; there are body, name"),
        ("a\0b", "has a control character at position 1"),
        ("ab\x7f", "has a control character at position 2"),
        ("abc\ud800", "is not valid Unicode at position 3"),
        ("x" * (TEXT_BYTES_MAX + 1), f"has {TEXT_BYTES_MAX + 1} bytes; {TEXT_BYTES_MAX} is"),
        ("é" * (TEXT_BYTES_MAX // 2 + 1), f"has {TEXT_BYTES_MAX + 2} bytes"),
        ("a " * QUERY_NODES_MAX, f"has {QUERY_NODES_MAX} words; {QUERY_NODES_MAX - 1} is"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, detail: str) -> None:
    """The error names q and says what is wrong where."""
    with pytest.raises(BadRequest, match=re.escape(detail)) as caught:
        parse(text, FIELDS)
    assert caught.value.field == "q"


def test_the_largest_queries_are_read() -> None:
    """Limits are the last legal values."""
    assert parse("x" * TEXT_BYTES_MAX, FIELDS) == Word("x" * TEXT_BYTES_MAX)
    tree = parse("a " * (QUERY_NODES_MAX - 1), FIELDS)
    check_tree(tree, FIELDS)


def read(text: str) -> Query | str:
    """The tree, or the field that is at fault."""
    try:
        return parse(text, FIELDS)
    except BadRequest as error:
        return error.field


typed = st.text() | st.text(alphabet='ab +-:"\t\0\ud800_name', max_size=40)


@given(text=typed)
def test_reading_gives_a_legal_tree_or_a_bad_request(text: str) -> None:
    """Nothing that can be typed raises anything else, and what is read keeps the limits."""
    tree = read(text)
    if isinstance(tree, str):
        assert tree == "q"
    else:
        check_tree(tree, FIELDS)
        assert cost_class(tree).startswith("search-")


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
    ],
)
def test_queries_that_cost_alike_are_of_one_class(text: str, name: str) -> None:
    """By the number of terms, and whether positions are read."""
    assert cost_class(parse(text, FIELDS)) == name


def test_everything_is_the_cheapest_class() -> None:
    """A query for all documents looks up no term."""
    assert cost_class(All()) == "search-short"


@pytest.mark.parametrize(
    ("tree", "exact"),
    [
        (All(), True),
        (Bool(), True),
        (Bool(must_not=(Word("a"),)), True),
        (Word("a"), False),
        (Phrase("a"), False),
        (Bool(must=(Word("a"),)), False),
        (Bool(should=(All(),)), False),
    ],
)
def test_scores_without_term_statistics_are_exact(tree: Query, exact: bool) -> None:
    """They need no second look; where in doubt they get one."""
    assert is_exact(tree) == exact


@pytest.mark.parametrize("function", [cost_class, lambda tree: check_tree(tree, FIELDS)])
def test_the_tables_of_nodes_are_complete(function: object) -> None:
    """What is no node of a query is a fault of ours, not of the caller's."""
    assert callable(function)
    with pytest.raises(AssertionError):
        function("json")
