"""What a request asks for, beside the fields that there are."""

from __future__ import annotations

import pytest

from index_data.manifest import Field
from leaf.protocol import Bool, Word
from root.errors import BadRequest
from root.language import Reading
from root.reading import understood
from root.requests import SearchRequest

FIELDS = (Field("name", "text"), Field("kind", "keyword"))


def test_words_are_read_and_trees_are_checked() -> None:
    """Leniently or strictly; a tree is data and has no faults."""
    assert understood(SearchRequest(q="a"), FIELDS) == Reading(Word("a"))
    assert len(understood(SearchRequest(q="a)"), FIELDS).faults) == 1
    with pytest.raises(BadRequest, match="position 1"):
        understood(SearchRequest(q="a)", strict=True), FIELDS)
    assert understood(SearchRequest(query=Word("a", "kind")), FIELDS).query == Word("a", "kind")
    with pytest.raises(BadRequest, match="titel"):
        understood(SearchRequest(query=Word("a", "titel")), FIELDS)


def test_texts_are_combined_as_the_request_says() -> None:
    """Whether they were typed or given as data."""
    best = Bool(must=(Word("a", tie_breaker=0.5), Word("b", tie_breaker=0.5)))
    typed = SearchRequest(q="a AND b", combine="best", tie_breaker=0.5)
    tree = Bool(must=(Word("a"), Word("b")))
    assert understood(typed, FIELDS).query == best
    given = SearchRequest(query=tree, combine="best", tie_breaker=0.5)
    assert understood(given, FIELDS).query == best


def test_only_fields_that_there_are_can_be_returned() -> None:
    """A slip would be an answer without the field, and nobody would know why."""
    understood(SearchRequest(q="a", fields=("name", "kind")), FIELDS)
    understood(SearchRequest(q="a", fields=()), FIELDS)
    with pytest.raises(
        BadRequest, match="there is no field 'nmae'; there are kind, name"
    ) as caught:
        understood(SearchRequest(q="a", fields=("name", "nmae")), FIELDS)
    assert caught.value.field == "fields"


def test_only_text_is_highlighted() -> None:
    """Any other name is refused."""
    understood(SearchRequest(q="a", highlight=("name",)), FIELDS)
    with pytest.raises(BadRequest, match="there is no text field 'kind'; there are name"):
        understood(SearchRequest(q="a", highlight=("kind",)), FIELDS)
