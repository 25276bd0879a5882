"""Searching for what is like a document: its most telling words, and not itself."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from leaf.protocol import Bool, Documents, Query, Word
from leaf.selection import ID, Among, Selection
from root.errors import NotCovered, UnknownDocument


def query_like(
    document_id: str, replies: Iterable[tuple[int, Documents]], *, everywhere: bool
) -> Query:
    """Return the query of the words that tell a document from others, as if they had been typed:
    any of them, in any field. Of the shards' replies one has the document and its words.

    Raises UnknownDocument where none has and it was looked for ``everywhere``, else NotCovered.
    """
    for _, reply in replies:
        for document in reply.documents:
            words = document.fields.get("words", ())
            return Bool(should=tuple(Word(str(word)) for word in words))
    if not everywhere:
        raise NotCovered("shards that may hold the document did not answer")
    raise UnknownDocument("similar_to", f"there is no document {document_id!r}")


def without(selection: Selection | None, document_id: str) -> Selection:
    """Return a selection of the same, but for one document."""
    selection = selection or Selection()
    itself = Among(ID, (document_id,), negated=True)
    return msgspec.structs.replace(selection, filters=(*selection.filters, itself))
