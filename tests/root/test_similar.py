"""The query for what is like a document."""

from __future__ import annotations

import pytest

from leaf.protocol import Bool, Documents, FetchedDocument, Word
from leaf.selection import Among, Selection, SortKey
from root.errors import NotCovered, UnknownDocument
from root.similar import query_like, without


def replies(*words: str) -> list[tuple[int, Documents]]:
    """Two shards, of which the second has the document."""
    found = FetchedDocument(7, 0.0, "a", {"words": list(words)}, {})
    return [(0, Documents(1, 0, 0, [])), (1, Documents(2, 0, 0, [found]))]


def test_any_word_of_a_document_is_looked_for_in_any_field() -> None:
    """In the order in which they tell it from others; without any, for nothing."""
    assert query_like("a", replies("b", "c"), everywhere=True) == Bool(
        should=(Word("b"), Word("c"))
    )
    assert query_like("a", replies("b"), everywhere=False) == Bool(should=(Word("b"),))
    assert query_like("a", replies(), everywhere=True) == Bool()


def test_a_document_that_was_not_found_may_be_where_nobody_looked() -> None:
    """Only who has looked everywhere can say that it does not exist."""
    nowhere = [(0, Documents(1, 0, 0, []))]
    with pytest.raises(UnknownDocument, match="there is no document 'a'"):
        query_like("a", nowhere, everywhere=True)
    with pytest.raises(NotCovered, match="may hold the document"):
        query_like("a", nowhere, everywhere=False)


def test_the_document_itself_is_left_out() -> None:
    """Beside all else that is selected."""
    itself = Among("_id", ("a",), negated=True)
    assert without(None, "a") == Selection((itself,))
    year = Among("year", (1,))
    selection = Selection((year,), (SortKey("year"),))
    assert without(selection, "a") == Selection((year, itself), (SortKey("year"),))
