"""The words that tell a document from others: what to search for to find what is like it.

By how often the document has a word, in fields as they are weighed, and how few others have it.
The counts are the statistics of the whole, so that every replica gives the same words, and they
are given as the document spells them: looked for, each comes to the tokens that it has here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from index_data.analysis import composed, text_analyser
from index_data.manifest import Field
from index_data.statistics import Statistics, idf
from leaf.snippets import SCAN_CHARS_MAX

TELLING_MAX: Final = 25
"""More words change hardly a place among the first hits, and each is looked up in every field of
every shard."""

TOKENS_MAX: Final = 4000
"""Ten pages. A thousand different words are looked up in some ten milliseconds a field."""

DOCUMENTS_MIN: Final = 2
"""A word that this document alone has finds no other."""


def telling(
    fields: Iterable[Field], statistics: Statistics, source: Mapping[str, Any]
) -> list[str]:
    """Return the words that tell a document from others, the most telling first, of the default
    text fields. Of a long document only the beginning is looked at.
    """
    texts = [field for field in fields if field.type == "text" and field.default]
    spelled: dict[str, str] = {}
    weights: dict[str, float] = {}
    for token, word, weight in islice(_tokens(texts, source), TOKENS_MAX):
        spelled.setdefault(token, word)
        weights[token] = weights.get(token, 0.0) + weight
    counts = _counts(texts, statistics, spelled.values())
    scored = [
        (weights[token] * idf(statistics.documents, counts[word]), word)
        for token, word in spelled.items()
        if counts[word] >= DOCUMENTS_MIN
    ]
    return [word for _, word in sorted(scored, key=lambda one: (-one[0], one[1]))[:TELLING_MAX]]


def _tokens(fields: Sequence[Field], source: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield tokens, the words that they are of, and the weights of their fields.

    The first field's analyser says for all of them which words are one: words are the same
    pieces of a text for every analyser.
    """
    for field in fields:
        value = source.get(field.name)
        for given in value if isinstance(value, list) else [value]:
            text = composed(given)[:SCAN_CHARS_MAX] if isinstance(given, str) else ""
            for token in text_analyser(fields[0]).placed(text):
                yield token.text, text[token.start : token.end], field.weight


def _counts(
    fields: Iterable[Field], statistics: Statistics, words: Iterable[str]
) -> dict[str, int]:
    """Return how many documents have each word, in the field where most do."""
    counts = dict.fromkeys(words, 0)
    line = " ".join(counts)
    for field in fields:
        for token in text_analyser(field).placed(line):
            word = line[token.start : token.end]
            counts[word] = max(counts[word], statistics.count(field.name, token.text))
    return counts
