"""What a shard's index holds: the fields of the source, and three of its own.

Text is analysed as its field says (``index_data.analysis``). A keyword is one token, kept as
it is. Numbers, dates and booleans are kept as ``index_data.values`` has them. Whatever is no
text can be filtered, sorted and counted by.

The three are ``_id`` (exact, stored), ``_ordinal`` (the rank of the id in the whole
generation) and ``_source`` (the whole source object as JSON, stored).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import tantivy

from index_data.analysis import analyser_name, text_analyser
from index_data.manifest import Field

ID_FIELD: Final = "_id"
ORDINAL_FIELD: Final = "_ordinal"
SOURCE_FIELD: Final = "_source"

FIELDS_MAX: Final = 64
_FIELD_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def tantivy_schema(fields: Iterable[Field]) -> tantivy.Schema:
    """Return the schema of a shard. Text is stored once, in ``_source``."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID_FIELD, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(ORDINAL_FIELD, fast=True)
    builder.add_bytes_field(SOURCE_FIELD, stored=True)
    for field in fields:
        _add(builder, field)
    return builder.build()


def _add(builder: tantivy.SchemaBuilder, field: Field) -> None:
    match field.type:
        case "text":
            builder.add_text_field(field.name, tokenizer_name=analyser_name(field.analysis))
        case "keyword":
            builder.add_text_field(
                field.name, tokenizer_name="raw", index_option="basic", fast=True
            )
        case "integer" | "date":
            builder.add_integer_field(field.name, indexed=True, fast=True)
        case "float":
            builder.add_float_field(field.name, indexed=True, fast=True)
        case "boolean":
            builder.add_boolean_field(field.name, indexed=True, fast=True)


def open_for_writing(
    schema: tantivy.Schema, fields: Iterable[Field], path: str | None = None
) -> tantivy.Index:
    """Return a new index ready to analyse: in an empty folder, or in this process alone."""
    index = tantivy.Index(schema, path=path)
    for field in fields:
        if field.type == "text":
            index.register_tokenizer(analyser_name(field.analysis), text_analyser(field).native)
    return index


def is_field_name(name: str) -> bool:
    """Whether a source may have a field of this name; a leading underscore is ours."""
    return _FIELD_NAME.fullmatch(name) is not None
