"""What to suggest to somebody who has found nothing: the same query, spelled otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, assert_never

import msgspec

from leaf.protocol import All, Bool, Documents, Fuzzy, Phrase, Prefix, Query, Range, Word
from leaf.suggestion import TEXT_CHARS_MAX, WORDS_MAX
from root.printing import printed

_WORD: Final = re.compile(r"\w+")


def words_of(query: Query) -> tuple[str, ...]:
    """Return the words that a query wants, each once: those that may be misspelt, as far as a
    leaf looks at them.
    """
    words = (word for word in _words(query) if len(word) <= TEXT_CHARS_MAX)
    return tuple(dict.fromkeys(words))[:WORDS_MAX]


def _words(query: Query) -> Iterator[str]:
    match query:
        case Word() | Phrase():
            yield from _WORD.findall(query.text)
        case Bool():
            for child in query.must + query.should:
                yield from _words(child)
        case Prefix() | Fuzzy() | Range() | All():
            pass
        case _:
            assert_never(query)


def meant(query: Query, replies: Iterable[tuple[int, Documents]]) -> str | None:
    """Return a query as it was likely meant, in the language, by what a leaf has replied; None
    where nothing is spelled otherwise.
    """
    others = {
        str(document.fields.get("for")): document.id
        for _, reply in replies
        for document in reply.documents
    }
    other = _corrected(query, others)
    return None if other == query else printed(other)


def _corrected(query: Query, others: Mapping[str, str]) -> Query:
    match query:
        case Word() | Phrase():
            text = _WORD.sub(lambda found: others.get(found[0], found[0]), query.text)
            return msgspec.structs.replace(query, text=text)
        case Bool():
            must, should = (
                tuple(_corrected(child, others) for child in part)
                for part in (query.must, query.should)
            )
            return Bool(must, should, query.must_not)
        case _:
            return query


def suggestions(replies: Iterable[tuple[int, Documents]]) -> list[dict[str, Any]]:
    """Return ways to go on, the most frequent first: the text, and how many documents have its
    last word.
    """
    return [
        {"text": document.id, "documents": int(document.score)}
        for _, reply in replies
        for document in reply.documents
    ]
