"""What a person types: read as meant; what does not fit is noted, or refused if strict."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import Field
from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    TEXT_BYTES_MAX,
    All,
    Bool,
    Fuzzy,
    Phrase,
    Prefix,
    Query,
    Word,
)
from root.errors import BadRequest
from root.language import FAULTS_MAX, NESTING_MAX, Fault, parse
from root.query import check_tree, cost_class

FIELDS = {name: Field(name, "text") for name in ("name", "body")}
A, B, C, D = (Word(letter) for letter in "abcd")


def either(*nodes: Query) -> Bool:
    return Bool(should=nodes)


def no(node: Query) -> Bool:
    return Bool(must_not=(node,))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("json", Word("json")),
        ("  json\t\n", Word("json")),
        ("a b", either(A, B)),
        ("a\u3000b", either(A, B)),
        ('"a b"', Phrase("a b")),
        ('"a""b"', either(Phrase("a"), Phrase("b"))),
        ("name:a", Word("a", "name")),
        ('name:"a b"', Phrase("a b", "name")),
        ("name:a:b", Word("a:b", "name")),
        ("name:-5", Word("-5", "name")),
        ("name:(a b)", either(Word("a", "name"), Word("b", "name"))),
        ("name:(a body:b)", either(Word("a", "name"), Word("b", "body"))),
        ("+a", Bool(must=(A,))),
        ("-a", no(A)),
        ('-name:"a b"', no(Phrase("a b", "name"))),
        (
            '+a -b c +name:d -"e f"',
            Bool((A, Word("d", "name")), (C,), (B, Phrase("e f"))),
        ),
        ("+(a b) -(c d)", Bool(must=(either(A, B),), must_not=(either(C, D),))),
        ("--verbose", no(Word("-verbose"))),
        ("(a)", A),
        ("((a b))", either(A, B)),
        ("a (b c)", either(A, either(B, C))),
        ("*", All()),
        ("* -a", Bool(should=(All(),), must_not=(A,))),
    ],
)
def test_words_phrases_fields_and_signs(text: str, tree: Query) -> None:
    """The plain language, as it is typed every day."""
    assert parse(text, FIELDS, strict=True).query == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a AND b", Bool(must=(A, B))),
        ("a AND b AND c", Bool(must=(A, B, C))),
        ("a OR b", either(A, B)),
        ("a OR b AND c", either(A, Bool(must=(B, C)))),
        ("(a OR b) AND c", Bool(must=(either(A, B), C))),
        ("a b OR c", either(A, either(B, C))),
        ("a AND b c", either(Bool(must=(A, B)), C)),
        ("NOT a", no(A)),
        ("NOT NOT a", no(no(A))),
        ("NOT -a", no(no(A))),
        ("NOT +a", no(A)),
        ("a NOT b", Bool(should=(A,), must_not=(B,))),
        ("a AND NOT b", Bool(must=(A,), must_not=(B,))),
        ("a AND -b", Bool(must=(A,), must_not=(B,))),
        ("a AND +b", Bool(must=(A, B))),
        ("NOT a AND NOT b", Bool(must_not=(A, B))),
        ("a OR NOT b", either(A, no(B))),
        ("NOT (a b)", no(either(A, B))),
        ("a AND(b)", Bool(must=(A, B))),
        ('a OR"b"', either(A, Phrase("b"))),
        ("name:(a AND b)", Bool(must=(Word("a", "name"), Word("b", "name")))),
        ("and or not ANDES", either(*map(Word, ("and", "or", "not", "ANDES")))),
    ],
)
def test_not_binds_closest_then_and_then_or_then_standing_side_by_side(
    text: str, tree: Query
) -> None:
    """Only capitals join."""
    assert parse(text, FIELDS, strict=True).query == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a*", Prefix("a")),
        ("name:a*", Prefix("a", "name")),
        ('"a b"*', Prefix("a b")),
        ("ab~", Fuzzy("ab", 2)),
        ("ab~1", Fuzzy("ab", 1)),
        ("ab~2", Fuzzy("ab", 2)),
        ("ab~0", Word("ab")),
        ("a^2", Word("a", boost=2.0)),
        ("a^0.25", Word("a", boost=0.25)),
        ('"a b"^2', Phrase("a b", boost=2.0)),
        ("ab*^2", Prefix("ab", boost=2.0)),
        ("ab~1^2", Fuzzy("ab", 1, boost=2.0)),
        ('"a b"*^2', Prefix("a b", boost=2.0)),
        ("(a b^3)^2", either(Word("a", boost=2.0), Word("b", boost=6.0))),
        ("(a -*)^2", Bool(should=(Word("a", boost=2.0),), must_not=(All(),))),
        ("(*)^2", All()),
        ("~1", Word("~1")),
        ("^2", Word("^2")),
        ("~", Word("~")),
        ("(a)b", either(A, B)),
        ('"a"b', either(Phrase("a"), B)),
        ("x[0]", Word("x[0]")),
        ("c++ f-string", either(Word("c++"), Word("f-string"))),
        ("os.path.join", Word("os.path.join")),
        ("3:4", Word("3:4")),
        ("::", Word("::")),
        ("note: a", either(Word("note:"), A)),
    ],
)
def test_suffixes_count_at_the_end_and_nowhere_else(text: str, tree: Query) -> None:
    """A star, a distance and a boost, in this order; at the beginning the last two are letters."""
    assert parse(text, FIELDS, strict=True).query == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (r"\+a", Word("+a")),
        (r"\-a", Word("-a")),
        (r"a\ b", Word("a b")),
        (r"a\*", Word("a*")),
        (r"a\*b*", Prefix("a*b")),
        (r"a\~1", Word("a~1")),
        (r"a\^2", Word("a^2")),
        (r"name\:a", Word("name:a")),
        (r"\(a\)", Word("(a)")),
        (r"\"a", Word('"a')),
        (r"\AND", Word("AND")),
        (r'"a \"b\" c"', Phrase('a "b" c')),
        (r"a\\", Word("a\\")),
        ("a\\", Word("a\\")),
    ],
)
def test_a_backslash_makes_a_letter_of_what_follows(text: str, tree: Query) -> None:
    """At the end it is a letter itself."""
    assert parse(text, FIELDS, strict=True).query == tree


FAULTY: list[tuple[str, int, str, Query]] = [
    ('a b"c', 3, "a quote without its pair", either(A, B, C)),
    ('"a b', 0, "a quote without its pair", either(A, B)),
    ('"', 0, "a quote without its pair", Word('"')),
    ("a)", 1, "a closing bracket without its pair", A),
    ("(a", 0, "a bracket is not closed", A),
    ("a ()", 2, "nothing between the brackets", A),
    ("NOT ()", 4, "nothing between the brackets", Word("NOT ()")),
    ("a AND ()", 6, "nothing between the brackets", A),
    ("a OR ()", 5, "nothing between the brackets", A),
    ('"" a', 0, "nothing between the quotes", A),
    ('" " +a', 0, "nothing between the quotes", Bool(must=(A,))),
    ('+"" a', 1, "nothing between the quotes", A),
    ("AND a", 0, "AND has nothing to join", either(Word("AND"), A)),
    ("a OR", 2, "OR has nothing to join", either(A, Word("OR"))),
    ("a NOT", 2, "NOT has nothing to join", either(A, Word("NOT"))),
    ("name:(OR a)", 6, "OR has nothing", either(Word("OR", "name"), Word("a", "name"))),
    ("+a OR b", 0, "a plus means nothing beside OR", either(A, B)),
    ("a - b", 2, "- stands alone", either(A, Word("-"), B)),
    ("a +", 2, "+ stands alone", either(A, Word("+"))),
    ("name:", 0, "nothing follows name:", Word("name:")),
    ("(name:)", 1, "nothing follows name:", Word("name:")),
    ("titel:a", 0, "there is no field 'titel', there are body, name", Word("titel:a")),
    ("http://x", 0, "there is no field 'http'", Word("http://x")),
    ("*foo", 0, "a star that does not end a word", Word("*foo")),
    ("a fo*o*", 4, "a star that does not end a word", either(A, Prefix("fo*o"))),
    ("json^abc", 4, "a ^ without a number that ends a word", Word("json^abc")),
    ("a b^2c", 3, "a ^ without a number", either(A, Word("b^2c"))),
    ("a^2^3", 1, "a ^ without a number", Word("a^2", boost=3.0)),
    ('"a b"^x', 5, "a ^ without a number", either(Phrase("a b"), Word("^x"))),
    ("(a)^", 3, "a ^ without a number", either(A, Word("^"))),
    ("a~b", 1, "a ~ that does not end a word", Word("a~b")),
    ("a~12", 1, "a ~ that does not end a word", Word("a~12")),
    ("(a)~2", 3, "a ~ that does not end a word", either(A, Word("~2"))),
    (r"a\^b^c", 4, "a ^ without a number", Word("a^b^c")),
    ("name:*", 5, "'name' has no order", Word("name:*")),
    ("name:[a TO b] a", 5, "'name' has no order", A),
    ("a*~1", 0, "~ after the beginning of a word", Prefix("a")),
    ('"a b"~2', 0, "~ after a phrase", Phrase("a b")),
    ("ab~3", 0, "~3 is more than ~2", Fuzzy("ab", 2)),
    ("a^0", 0, "a boost is from 0.001 to 1000", Word("a", boost=BOOST_MIN)),
    ("(a^100)^100", 0, "a boost is from 0.001 to 1000", Word("a", boost=BOOST_MAX)),
]


@pytest.mark.parametrize(("text", "position", "message", "tree"), FAULTY)
def test_what_does_not_fit_is_noted_with_its_place_and_the_rest_is_read(
    text: str, position: int, message: str, tree: Query
) -> None:
    """A lenient reading goes on, and says at which character it had to."""
    reading = parse(text, FIELDS)
    assert reading.query == tree
    (fault,) = reading.faults
    assert fault.position == position
    assert fault.message.startswith(message) or message in fault.message


@pytest.mark.parametrize(("text", "position", "message", "tree"), FAULTY)
def test_a_strict_reading_ends_at_a_fault(
    text: str, position: int, message: str, tree: Query
) -> None:
    """The error names the place, and what is wrong there."""
    with pytest.raises(BadRequest) as caught:
        parse(text, FIELDS, strict=True)
    assert caught.value.detail.startswith(f"cannot be read at position {position}: ")
    assert message in caught.value.detail
    assert caught.value.field == "q"


def test_faults_come_in_the_order_of_the_text_and_not_without_end() -> None:
    """A bracket that is never closed is known at the end of the text only."""
    assert [fault.position for fault in parse('(a" b)) (', FIELDS).faults] == [2, 6, 8, 8]
    assert len(parse(") " * 100, FIELDS).faults) == FAULTS_MAX
    assert parse("a )", FIELDS).faults == (
        Fault(2, "a closing bracket without its pair: it is left out"),
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "is empty: type at least one word"),
        (" \t\n", "is empty: type at least one word"),
        ("a\0b", "has a control character at position 1"),
        ("ab\x7f", "has a control character at position 2"),
        ("abc\ud800", "is not valid Unicode at position 3"),
        ("x" * (TEXT_BYTES_MAX + 1), f"has {TEXT_BYTES_MAX + 1} bytes; {TEXT_BYTES_MAX} is"),
        ("é" * (TEXT_BYTES_MAX // 2 + 1), f"has {TEXT_BYTES_MAX + 2} bytes"),
        ("a " * QUERY_NODES_MAX, f"has more than {QUERY_NODES_MAX - 1} words"),
        ("(+a) " * (QUERY_NODES_MAX // 2), f"has more than {QUERY_NODES_MAX} nodes"),
        ("(" * (NESTING_MAX + 1) + "a", f"nested more than {NESTING_MAX} deep at position 64"),
        ("NOT " * (NESTING_MAX + 1) + "a", f"nested more than {NESTING_MAX} deep"),
        ("NOT " * QUERY_DEPTH_MAX + "a", f"is nested more than {QUERY_DEPTH_MAX} deep"),
    ],
)
def test_limits_are_refused_in_any_reading(text: str, detail: str, strict: bool) -> None:
    """What is empty, no text, or too large has no meaning to go on with."""
    with pytest.raises(BadRequest, match=re.escape(detail)) as caught:
        parse(text, FIELDS, strict=strict)
    assert caught.value.field == "q"


def test_the_largest_queries_are_read() -> None:
    """Limits are the last legal values."""
    assert parse("x" * TEXT_BYTES_MAX, FIELDS).query == Word("x" * TEXT_BYTES_MAX)
    check_tree(parse("a " * (QUERY_NODES_MAX - 1), FIELDS).query, FIELDS)
    assert parse("(" * NESTING_MAX + "a" + ")" * NESTING_MAX, FIELDS, strict=True).query == A


typed = st.text() | st.lists(
    st.sampled_from(
        [
            *("a", "b c", " ", "+", "-", "NOT ", " AND ", " OR ", "(", ")", '"', ":", "name:"),
            *("x:", "*", "~", "~1", "^", "^2", "\\", "\t", "\0", "\ud800", "日本", "e\u0301"),
        ]
    ),
    max_size=30,
).map("".join)


def read(text: str, *, strict: bool = False) -> Query | str:
    """The tree, or the field that is at fault."""
    try:
        return parse(text, FIELDS, strict=strict).query
    except BadRequest as error:
        return error.field


@given(text=typed)
def test_reading_gives_a_legal_tree_or_a_bad_request(text: str) -> None:
    """Nothing that can be typed raises anything else, and what is read keeps the limits."""
    tree = read(text)
    if isinstance(tree, str):
        assert tree == "q"
    else:
        check_tree(tree, FIELDS)
        assert cost_class(tree).startswith("search-")


@given(text=typed)
def test_lenient_and_strict_agree_on_what_has_no_fault(text: str) -> None:
    """A strict reading is refused where a lenient one has faults, and else is the same."""
    lenient = read(text)
    if isinstance(lenient, str) or not parse(text, FIELDS).faults:
        assert read(text, strict=True) == lenient
    else:
        assert read(text, strict=True) == "q"
