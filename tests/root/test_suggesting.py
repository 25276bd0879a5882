"""The same query, spelled otherwise."""

from __future__ import annotations

import pytest

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
from leaf.suggestion import TEXT_CHARS_MAX, WORDS_MAX
from root.suggesting import meant, suggestions, words_of


def reply(*words: tuple[str, str]) -> list[tuple[int, Documents]]:
    """What a leaf has suggested: for a word, another."""
    found = [FetchedDocument(0, 7.0, other, {"for": word}, {}) for word, other in words]
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
    assert words_of(query) == words


def test_a_query_is_printed_as_it_was_meant() -> None:
    """With its signs, fields and boosts; what is excluded stays as it is."""
    should = (Phrase("a jsno flie"), Prefix("jsno"), All())
    query = Bool((Word("jsno", "name", 2.0),), should, (Word("jsno"),))
    assert meant(query, reply(("jsno", "json"), ("flie", "file"))) == (
        '+name:json^2 "a json file" jsno* * -jsno'
    )


def test_nothing_else_was_meant_where_nothing_is_spelled_otherwise() -> None:
    """No suggestion is better than the same again."""
    assert meant(Word("json"), reply()) is None
    assert meant(Word("json"), []) is None
    assert meant(Word("json"), reply(("other", "words"))) is None


def test_suggestions_have_their_counts() -> None:
    """In the order of the leaf."""
    assert suggestions(reply(("", "parser"), ("", "parse"))) == [
        {"text": "parser", "documents": 7},
        {"text": "parse", "documents": 7},
    ]


def test_the_table_of_nodes_is_complete() -> None:
    """What is no node of a query is a fault of ours."""
    with pytest.raises(AssertionError):
        words_of("json")  # type: ignore[arg-type]
