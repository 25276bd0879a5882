"""The same query, spelled otherwise."""

from __future__ import annotations

import pytest

from index_data.manifest import Field
from leaf.protocol import (
    All,
    Bool,
    Documents,
    FetchedDocument,
    Fuzzy,
    Phrase,
    Prefix,
    Query,
    Range,
    Word,
)
from leaf.suggestion import TEXT_CHARS_MAX, WORDS_MAX, Misspelt
from root.suggesting import meant, suggestions, words_of

FIELDS = {
    **{name: Field(name, "text") for name in ("name", "body")},
    "kind": Field("kind", "keyword"),
    "year": Field("year", "integer"),
}


def reply(*words: tuple[str, str], field: str | None = None) -> list[tuple[int, Documents]]:
    """What a leaf has suggested: for a word, another."""
    found = [
        FetchedDocument(0, 7.0, other, {"for": word, "in": field}, {}) for word, other in words
    ]
    return [(0, Documents(1, 0, 0, found))]


A = Word("a")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Word("jsno"), ("jsno",)),
        (Word("json.dmups"), ("json", "dmups")),
        (Phrase("flie like flie"), ("flie", "like")),
        (Bool((A,), (Phrase("b c"), Bool(should=(Word("d"),))), (Word("e"),)), tuple("abcd")),
        (Bool(should=(All(), Prefix("a"), Fuzzy("b"), Range("year"))), ()),
        (Word("x" * (TEXT_CHARS_MAX + 1)), ()),
        (Phrase(" ".join("abcdefghij")), tuple("abcdefghij"[:WORDS_MAX])),
    ],
)
def test_words_that_are_wanted_may_be_misspelt(query: Query, words: tuple[str, ...]) -> None:
    """Those of words and phrases, in their order; not what is excluded, or a pattern anyway."""
    assert words_of(query, FIELDS) == tuple(map(Misspelt, words))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Word("jsno", "name"), [Misspelt("jsno", "name")]),
        (Phrase("jsno flie", "body"), [Misspelt("jsno", "body"), Misspelt("flie", "body")]),
        (Word("clas", "kind"), [Misspelt("clas", "kind")]),
        (Word("built-in", "kind"), []),
        (Word("20O1", "year"), []),
        (Word("nmae:jsno"), []),
        (Word("a:b", "name"), [Misspelt("a", "name"), Misspelt("b", "name")]),
        (
            Bool(should=(Word("jsno"), Word("jsno", "name"), Word("jsno"))),
            [Misspelt("jsno"), Misspelt("jsno", "name")],
        ),
    ],
)
def test_words_are_looked_up_in_their_field(query: Query, words: list[Misspelt]) -> None:
    """Values are found as a whole, and numbers are not words."""
    assert words_of(query, FIELDS) == tuple(words)


@pytest.mark.parametrize(
    ("query", "better"),
    [
        (Word("*jsno"), "json"),
        (Word("jsno:"), "json"),
        (Word("os.jsno", boost=2.0), "os.json^2"),
        (Word("nmae:jsno"), "name:jsno"),
        (Word("yaer:2001"), "year:2001"),
        (Word("yaer:jsno"), None),
        (Word("titel:jsno"), None),
        (Word("http://jsno"), r"http\://json"),
    ],
)
def test_a_suggestion_is_what_one_would_type(query: Query, better: str | None) -> None:
    """Signs that were not looked for are left out; before a colon a field was meant, or nothing
    is suggested.
    """
    assert meant(query, reply(("jsno", "json")), FIELDS) == better


def test_a_word_is_corrected_in_its_own_field_only() -> None:
    """The same word is known in one field and not in another."""
    query = Bool(should=(Word("jsno", "name"), Word("jsno")))
    assert meant(query, reply(("jsno", "json"), field="name"), FIELDS) == "name:json jsno"


def test_a_query_is_printed_as_it_was_meant() -> None:
    """With its signs, fields and boosts; what is excluded stays as it is."""
    should = (Phrase("a jsno flie"), Prefix("jsno"), All())
    query = Bool((Word("jsno", "name", 2.0),), should, (Word("jsno"),))
    replies = reply(("jsno", "json"), ("flie", "file")) + reply(("jsno", "json"), field="name")
    assert meant(query, replies, FIELDS) == '+name:json^2 "a json file" jsno* * -jsno'


def test_nothing_else_was_meant_where_nothing_is_spelled_otherwise() -> None:
    """No suggestion is better than the same again."""
    assert meant(Word("json"), reply(), FIELDS) is None
    assert meant(Word("json"), [], FIELDS) is None
    assert meant(Word("json"), reply(("other", "words")), FIELDS) is None


def test_suggestions_have_their_counts() -> None:
    """In the order of the leaf."""
    assert suggestions(reply(("", "parser"), ("", "parse"))) == [
        {"text": "parser", "documents": 7},
        {"text": "parse", "documents": 7},
    ]


def test_the_table_of_nodes_is_complete() -> None:
    """What is no node of a query is a fault of ours."""
    with pytest.raises(AssertionError):
        words_of("json", FIELDS)  # type: ignore[arg-type]
