"""What is indexed and how text becomes tokens: the same at building, asking and comparing.

Text is analysed in one way, everywhere: split at everything that is not a letter or digit,
lowercase, drop tokens of ``TOKEN_BYTES_END`` bytes or more, fold accents to ASCII, stem as
English. So "Parsing", "parse" and "parsed" are one token, and "json.dumps" is two that stand
together. A keyword is one token, kept as it is.

Besides the fields of its source every document has three of its own: ``_id`` (exact,
stored), ``_ordinal`` (the rank of its id in the whole generation) and ``_source`` (the
whole source object as JSON, stored).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import tantivy

from index_data.manifest import Field

ID_FIELD: Final = "_id"
ORDINAL_FIELD: Final = "_ordinal"
SOURCE_FIELD: Final = "_source"

ANALYSER: Final = "simple|lowercase|short64|ascii|english"
"""Written in the manifest: data made with another analyser is not searched with this one."""

TOKEN_BYTES_END: Final = 64
"""Runs this long are encoded data, not words."""

KEYWORD_BYTES_MAX: Final = 512
"""For ids and keywords: enough for a URL, far under the 64 KiB where tantivy drops a term."""

FIELDS_MAX: Final = 64
_FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TOKENIZER: Final = "hedgerow"

Analyse = Callable[[str], list[str]]


class Analysis(NamedTuple):
    """How what is asked becomes tokens: whole words, and beginnings of words."""

    words: Analyse
    beginnings: Analyse


def analysis() -> Analysis:
    """Return the analysis of what is asked of a text field."""
    return Analysis(text_analyser().analyze, beginning_analyser().analyze)


def text_analyser() -> tantivy.TextAnalyzer:
    """Return the analyser of every text field."""
    return _unstemmed().filter(tantivy.Filter.stemmer("english")).build()


def beginning_analyser() -> tantivy.TextAnalyzer:
    """Return the analyser of beginnings of words, which have no stem."""
    return _unstemmed().build()


def _unstemmed() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.remove_long(TOKEN_BYTES_END))
        .filter(tantivy.Filter.ascii_fold())
    )


def tantivy_schema(fields: Iterable[Field]) -> tantivy.Schema:
    """Return the schema of a shard. Text is stored once, in ``_source``."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID_FIELD, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(ORDINAL_FIELD, fast=True)
    builder.add_bytes_field(SOURCE_FIELD, stored=True)
    for field in fields:
        if field.type == "text":
            builder.add_text_field(field.name, tokenizer_name=_TOKENIZER)
        else:
            builder.add_text_field(field.name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def open_for_writing(schema: tantivy.Schema, path: str) -> tantivy.Index:
    """Return a new index in an empty folder, ready to analyse."""
    index = tantivy.Index(schema, path=path)
    index.register_tokenizer(_TOKENIZER, text_analyser())
    return index


def in_memory(schema: tantivy.Schema) -> tantivy.Index:
    """Return a new index that lives only in this process."""
    index = tantivy.Index(schema)
    index.register_tokenizer(_TOKENIZER, text_analyser())
    return index


def is_field_name(name: str) -> bool:
    """Whether a source may have a field of this name; a leading underscore is ours."""
    return _FIELD_NAME.fullmatch(name) is not None
