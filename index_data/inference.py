"""A schema guessed from the first documents of a source, for a person to look at.

A member becomes a field when all of its values seen are of one type: booleans, integers,
numbers, dates, or text; lists of these make a field of several values. Text of few words that
repeats, or never has a space in it, is a keyword. What is none of these (objects, mixtures)
is kept with the document and cannot be searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from index_data.manifest import Field, FieldType
from index_data.schema import FIELDS_MAX, is_field_name
from index_data.schema_file import BadSchema
from index_data.values import json_of, value_of

DOCUMENTS_SEEN: Final = 1_000
"""Enough to see what a member is; more would only make building start later."""

KEYWORD_CHARS: Final = 64
"""What is longer is read, not chosen from a list."""

KEYWORD_REPEATS: Final = 4
"""A label is on four documents or more, on the average; titles are on one."""

_ORDER: Final[tuple[FieldType, ...]] = ("boolean", "integer", "float", "date")


def infer(
    records: Iterable[Mapping[str, Any]], id_field: str, *, from_text: bool = False
) -> tuple[Field, ...]:
    """Return the fields of the first of some records.

    ``from_text`` where every value is text that may say something else, as in a table of
    text. Raises BadSchema when there is nothing to search.
    """
    seen: dict[str, list[Any]] = {}
    for record in islice(records, DOCUMENTS_SEEN):
        for name, value in record.items():
            if value is not None and name != id_field and is_field_name(name):
                seen.setdefault(name, []).append(value)
    guesses = {name: _field(name, values, from_text) for name, values in seen.items()}
    fields = [field for field in guesses.values() if field is not None][:FIELDS_MAX]
    if not any(field.type == "text" for field in fields):
        fields = _with_text(fields, seen)
    return tuple(fields)


def _field(name: str, values: list[Any], from_text: bool) -> Field | None:  # noqa: FBT001
    multiple = any(isinstance(value, list) for value in values)
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    kind = _kind(flat, from_text) if flat else None
    if kind is None:
        return None
    return Field(name, kind, default=kind == "text", multiple=multiple)


def _kind(values: list[Any], from_text: bool) -> FieldType | None:  # noqa: FBT001
    for kind in _ORDER:
        read = [json_of(v, kind) if from_text and isinstance(v, str) else v for v in values]
        if all(value_of(value, kind) is not None for value in read):
            return kind
    if not all(isinstance(value, str) for value in values):
        return None
    return "keyword" if _are_labels(values) else "text"


def _are_labels(values: list[str]) -> bool:
    if not all(value_of(v, "keyword") and len(v) <= KEYWORD_CHARS for v in values):
        return False
    repeat = len(values) >= KEYWORD_REPEATS * len(set(values))
    return repeat or not any(" " in value or not value.isascii() for value in values)


def _with_text(fields: list[Field], seen: Mapping[str, list[Any]]) -> list[Field]:
    """Return the fields with the longest keyword made text: something must be searched."""
    lengths = {
        field.name: sum(len(str(value)) for value in seen[field.name])
        for field in fields
        if field.type == "keyword"
    }
    if not lengths:
        raise BadSchema("No member of the first documents is text: nothing could be searched.")
    longest = max(lengths, key=lambda name: lengths[name])
    return [
        Field(field.name, "text", multiple=field.multiple) if field.name == longest else field
        for field in fields
    ]
