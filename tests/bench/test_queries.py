"""The generator of queries."""

from __future__ import annotations

import random
from dataclasses import replace

import orjson
import pytest

from bench import queries
from bench.selections import Typed
from index_data.manifest import Field
from root.language import parse
from root.requests import search_from_json

TEXTS = [
    "Serialize an object to a JSON formatted string.",
    "Parse a JSON document from a file like object.",
    "Return the object, or raise an error.",
]


@pytest.fixture
def words() -> queries.Vocabulary:
    """The vocabulary of TEXTS."""
    return queries.vocabulary(TEXTS, ("name", "body"))


def test_frequent_words_come_first(words: queries.Vocabulary) -> None:
    """Words are ranked by how often they occur, then by the alphabet."""
    assert words.words[:3] == ("object", "an", "json")


def test_phrases_occur_in_the_texts(words: queries.Vocabulary) -> None:
    """A phrase never spans punctuation: it would match nothing, or something else."""
    assert all(any(phrase in text.lower() for text in TEXTS) for phrase in words.phrases)
    assert "object or" not in words.phrases


def test_the_seed_decides(words: queries.Vocabulary) -> None:
    """The same seed gives the same queries, another seed others."""
    one, same, other = (queries.mixed(words, random.Random(seed), 50) for seed in (1, 1, 2))
    assert one == same != other


def test_every_kind_is_drawn(words: queries.Vocabulary) -> None:
    """Phrases, fields, required and excluded words and plain ones are all there."""
    drawn = queries.mixed(words, random.Random(1), 300)
    for mark in ('"', "name:", "+", " -"):
        assert sum(mark in query for query in drawn) > 10
    assert sum(query.replace(" ", "").isalpha() for query in drawn) > 50


def test_every_kind_of_the_language_is_drawn(words: queries.Vocabulary) -> None:
    """As often as any other; ranges, filters, orders and facets where there are values; best
    fields and several pages now and then.
    """
    typed = replace(words, typed=(Typed(Field("year", "integer"), (2001, 2010)),))
    drawn = queries.every_kind(typed, random.Random(1), 500)
    for mark in ("AND", "OR", "NOT", "(", "*", '"*', "~", "~1", "^", "year:[", "TO", '"', "+"):
        assert sum(mark in asked.q for asked in drawn) > 10, mark
    assert 60 < sum(asked.tie_breaker is not None for asked in drawn) < 200
    for member in ("filter", "sort", "facets"):
        assert 100 < sum(bool(asked.selection.get(member)) for asked in drawn) < 400, member
    assert 50 < sum(asked.pages > 1 for asked in drawn) < 200
    assert not any("year:" in asked.q for asked in queries.every_kind(words, random.Random(1), 200))


def test_what_is_drawn_can_be_read(words: queries.Vocabulary) -> None:
    """Without a fault: a query that is read otherwise than meant compares something else."""
    fields = {name: Field(name, "text") for name in words.fields}
    fields["year"] = Field("year", "integer")
    typed = replace(words, typed=(Typed(fields["year"], (-5, 2010)),))
    for asked in queries.every_kind(typed, random.Random(2), 500):
        assert parse(asked.q, fields, strict=True)
        assert search_from_json(orjson.dumps(asked.request)).q == asked.q


def test_what_is_begun_is_the_beginning_of_a_word(words: queries.Vocabulary) -> None:
    """Of one of the vocabulary, alone or after another."""
    for text in queries.begun(words, random.Random(3), 50):
        *before, last = text.split(" ")
        assert len(before) < 2
        assert any(word.startswith(last) for word in words.words)


def test_texts_without_words_are_refused() -> None:
    """There is nothing to ask for."""
    with pytest.raises(ValueError, match="no two words"):
        queries.vocabulary(["1 2 3"], ("name", "body"))
