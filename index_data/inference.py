"""A schema guessed from the first documents of a source, for a person to look at.

A member becomes a field when all of its values seen are of one type: booleans, integers,
numbers, dates, or text; lists of these make a field of several values. Text of few words that
repeats, or never has a space in it, is a keyword. What is none of these (objects, mixtures)
is kept with the document and cannot be searched. Where nearly all values are of one type, and a
few that are not decide otherwise, the guess says so: most likely those are slips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from index_data.manifest import Field, FieldType
from index_data.schema import FIELDS_MAX, is_field_name
from index_data.schema_file import BadSchema
from index_data.sources import Row
from index_data.values import json_of, value_of

DOCUMENTS_SEEN: Final = 1_000
"""Enough to see what a member is; more would only make building start later."""

KEYWORD_CHARS: Final = 64
"""What is longer is read, not chosen from a list."""

KEYWORD_REPEATS: Final = 4
"""A label is on four documents or more, on the average; titles are on one."""

DOUBTFUL_SHARE: Final = 0.1
"""Where no more of the values than this are of another type, they may be slips."""

_ORDER: Final[tuple[FieldType, ...]] = ("boolean", "integer", "float", "date")


class Guess(msgspec.Struct, frozen=True):
    """The fields that a source seems to have, and a sentence for each that may be meant to be of
    another type.
    """

    fields: tuple[Field, ...]
    doubts: tuple[str, ...] = ()


class _Seen(NamedTuple):
    """One value of a member, and where it stands."""

    where: str
    value: Any


def infer(rows: Iterable[Row], id_field: str, *, from_text: bool = False) -> Guess:
    """Return the fields of the first of some records.

    ``from_text`` where every value is text that may say something else, as in a table of
    text. Raises BadSchema when there is nothing to search.
    """
    seen: dict[str, list[_Seen]] = {}
    multiple: set[str] = set()
    for row in islice(rows, DOCUMENTS_SEEN):
        for name, value in row.record.items():
            if value is not None and name != id_field and is_field_name(name):
                if isinstance(value, list):
                    multiple.add(name)
                several = value if isinstance(value, list) else [value]
                seen.setdefault(name, []).extend(_Seen(row.where, one) for one in several)
    values = {name: [one.value for one in of_name] for name, of_name in seen.items()}
    kinds = {name: _kind(several, from_text) for name, several in values.items() if several}
    fields = [
        Field(name, kind, default=kind == "text", multiple=name in multiple)
        for name, kind in kinds.items()
        if kind is not None
    ][:FIELDS_MAX]
    if not any(field.type == "text" for field in fields):
        fields = _with_text(fields, values)
    types: dict[str, str] = {field.name: field.type for field in fields}
    doubts = (_doubt(name, seen[name], types.get(name), from_text) for name in kinds)
    return Guess(tuple(fields), tuple(doubt for doubt in doubts if doubt))


def _doubt(name: str, seen: list[_Seen], guessed: str | None, from_text: bool) -> str:  # noqa: FBT001
    """Return a sentence where a few values alone are not of the type of all others, else ''."""
    if guessed in _ORDER:
        return ""
    misfits = {
        kind: [one for one in seen if not _is(one.value, kind, from_text)] for kind in _ORDER
    }
    kind = min(_ORDER, key=lambda kind: len(misfits[kind]))
    wrong = misfits[kind]
    if len(wrong) > DOUBTFUL_SHARE * len(seen):
        return ""
    verb = "is" if len(wrong) == 1 else "are"
    outcome = f"it is {guessed}" if guessed else "it is no field"
    return (
        f"field `{name}`: {len(wrong)} of {len(seen)} values {verb} no {kind}, "
        f"first at {wrong[0].where} ({wrong[0].value!r:.60}), so {outcome}"
    )


def _is(value: Any, kind: FieldType, from_text: bool) -> bool:  # noqa: FBT001
    read = json_of(value, kind) if from_text and isinstance(value, str) else value
    return value_of(read, kind) is not None


def _kind(values: list[Any], from_text: bool) -> FieldType | None:  # noqa: FBT001
    for kind in _ORDER:
        if all(_is(value, kind, from_text) for value in values):
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
