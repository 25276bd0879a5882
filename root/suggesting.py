"""What to suggest to somebody who has found nothing: the same query, spelled otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, assert_never

import msgspec

from leaf.protocol import All, Bool, Documents, Fuzzy, Phrase, Prefix, Query, Range, Word
from leaf.suggestion import TEXT_CHARS_MAX, WORDS_MAX, Misspelt
from root.printing import printed
from root.query import Fields, misfit

FIELD_LIKENESS: Final = 0.7
"""How like a field's name what stands before a colon must be: two letters changed over in four
are 0.75, another letter in four, too."""

_WORD: Final = re.compile(r"\w+")
_EDGES: Final = re.compile(r"^\W+|\W+$")
_NAMED: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(\w.*)", re.DOTALL)
"""A word that was to be looked for in a field, had there been one of that name."""

Others = Mapping[tuple[str, str | None], str]
"""By a word and its field, what was meant."""


def words_of(query: Query, fields: Fields) -> tuple[Misspelt, ...]:
    """Return the words that a query wants, each once: those that may be misspelt, as far as a
    leaf looks at them.
    """
    words = (word for word in _words(query, fields) if len(word.text) <= TEXT_CHARS_MAX)
    return tuple(dict.fromkeys(words))[:WORDS_MAX]


def _words(query: Query, fields: Fields) -> Iterator[Misspelt]:
    match query:
        case Word() | Phrase():
            if not _NAMED.fullmatch(query.text) or query.field is not None:
                texts = _texts(query, fields)
                yield from (Misspelt(text, query.field) for text in texts)
        case Bool():
            for child in query.must + query.should:
                yield from _words(child, fields)
        case Prefix() | Fuzzy() | Range() | All():
            pass
        case _:
            assert_never(query)


def _texts(node: Word | Phrase, fields: Fields) -> list[str]:
    """Return the words in a text; of a keyword field the one that is all of it."""
    kind = "text" if node.field is None else fields[node.field].type
    match kind:
        case "text":
            return _WORD.findall(node.text)
        case "keyword" if _WORD.fullmatch(node.text):
            return [node.text]
        case _:
            return []


def meant(query: Query, replies: Iterable[tuple[int, Documents]], fields: Fields) -> str | None:
    """Return a query as it was likely meant, in the language, by what a leaf has replied; None
    where nothing is spelled otherwise.
    """
    others = {
        (str(document.fields.get("for")), document.fields.get("in")): document.id
        for _, reply in replies
        for document in reply.documents
    }
    other = _corrected(query, others, fields)
    return None if other == query else printed(other)


def _corrected(query: Query, others: Others, fields: Fields) -> Query:
    match query:
        case Word() | Phrase():
            field = query.field
            if field is None and (named := _NAMED.fullmatch(query.text)):
                return _in_a_field(query, named[1], named[2], fields)
            text = _WORD.sub(lambda found: others.get((found[0], field), found[0]), query.text)
            if text == query.text:
                return query
            # What is no letter at the ends was not looked for, as the star of ``*jsno``.
            return msgspec.structs.replace(query, text=_EDGES.sub("", text))
        case Bool():
            must, should = (
                tuple(_corrected(child, others, fields) for child in part)
                for part in (query.must, query.should)
            )
            return Bool(must, should, query.must_not)
        case _:
            return query


def _in_a_field(query: Word | Phrase, name: str, text: str, fields: Fields) -> Query:
    """Return a node as one for the field whose name is most like this one, if there is any."""
    for near in get_close_matches(name, sorted(fields), 1, FIELD_LIKENESS):
        node = msgspec.structs.replace(query, text=text, field=near)
        if not misfit(node, fields):
            return node
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
