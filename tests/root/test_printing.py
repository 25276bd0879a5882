"""What a tree looks like when it is typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import Field
from leaf.protocol import BOOST_MAX, BOOST_MIN, All, Bool, Fuzzy, Phrase, Prefix, Query, Range, Word
from root.language import parse
from root.printing import printed

FIELDS = {name: Field(name, "text") for name in ("name", "body")}
TYPED = {**FIELDS, "year": Field("year", "integer")}

SAFE = st.characters(exclude_categories=("Cs", "Cc"))
TEXTS = (
    st.text(SAFE | st.sampled_from(' \t"()\\*~^:+-[]{}'), min_size=1, max_size=12)
    | st.sampled_from(["AND", "OR", "NOT", "name:", "~1", "^2", "a b", "日本", "e\u0301"])
).filter(str.strip)
NAMES = st.sampled_from([None, "name", "body"])
BOOSTS = st.just(1.0) | st.floats(BOOST_MIN, BOOST_MAX)


YEARS = st.none() | st.integers(-(2**63), 2**63 - 1).map(str)


@st.composite
def leaves(draw: st.DrawFn) -> Query:
    """Any node without nodes in it."""
    text, field, boost = draw(TEXTS), draw(NAMES), draw(BOOSTS)
    match draw(st.integers(0, 5)):
        case 4:
            low, high = draw(YEARS), draw(YEARS)
            opened, closed = draw(st.booleans()), draw(st.booleans())
            return Range(
                "year",
                None if opened else low,
                low if opened else None,
                high if closed else None,
                None if closed else high,
                boost,
            )
        case 0:
            return Word(text, field, boost)
        case 1:
            return Phrase(text, field, boost)
        case 2:
            return Prefix(text, field, boost)
        case 3:
            return Fuzzy(text, draw(st.integers(1, 2)), field, boost)
        case _:
            return All()


def can_be_typed(tree: Query) -> bool:
    """Whether a Bool is more than nothing and more than its only wish."""
    if not isinstance(tree, Bool):
        return True
    return len(tree.must + tree.must_not) > 0 or len(tree.should) > 1


def bools(trees: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
    parts = [st.lists(trees, max_size=3).map(tuple)] * 3
    return st.builds(Bool, *parts).filter(can_be_typed)


TREES = st.recursive(leaves(), bools, max_leaves=12)


@given(tree=TREES)
def test_what_is_printed_is_read_as_the_same_tree(tree: Query) -> None:
    """Parsing a printed tree gives the tree, without a fault but for ranges that hold nothing."""
    reading = parse(printed(tree), TYPED)
    assert reading.query == tree
    assert all(fault.message.startswith("no value lies in") for fault in reading.faults)


@given(
    text=st.lists(
        st.sampled_from(["a", " ", "+", "-", " AND ", " OR ", "NOT ", "(", ")"])
        | st.sampled_from(['"b c"', "name:", "*", "~1", "^2", "\\"])
    ).map("".join)
)
def test_what_is_read_can_be_printed(text: str) -> None:
    """Whatever was typed, its tree has a printed form that is read as the same tree."""
    if text.strip():
        tree = parse(text, FIELDS).query
        assert parse(printed(tree), FIELDS, strict=True).query == tree


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (Bool((Word("a"),), (Word("b"), Phrase("c d")), (Prefix("e"),)), '+a b "c d" -e*'),
        (Bool(should=(Word("a"), Bool(must=(Word("b"), Word("c"))))), "a (+b +c)"),
        (Fuzzy("json", 1, "name", 2.5), "name:json~1^2.5"),
        (Word("a b"), r"a\ b"),
        (Word("-a"), r"\-a"),
        (Word("OR"), r"\OR"),
        (Phrase('say "a"'), r'"say \"a\""'),
        (Word("a", boost=0.001), "a^0.001"),
        (All(), "*"),
        (Word("[0]", "name"), r"name:\[0]"),
        (Range("year", gte="2001", lt="2010", boost=2.0), "year:[2001 TO 2010}^2"),
        (Range("year", gt=7), "year:{7 TO *]"),
        (Range("day", gte='2001-01-01 "x"'), r'day:["2001-01-01 \"x\"" TO *]'),
        (Range("good", lte=True), "good:[* TO true]"),
        (Bool(should=(Word("a"),)), "a"),
    ],
)
def test_a_tree_is_printed_as_one_would_type_it(tree: Query, text: str) -> None:
    """With as few signs as there can be."""
    assert printed(tree) == text


def test_nothing_cannot_be_typed() -> None:
    """There are no words for a query that finds nothing."""
    for tree in (Bool(), Bool(must=(Bool(),))):
        with pytest.raises(ValueError, match="cannot be typed"):
            printed(tree)


def test_the_table_of_nodes_is_complete() -> None:
    """What is no node of a query is a fault of ours."""
    with pytest.raises(AssertionError):
        printed("json")  # type: ignore[arg-type]
