"""Where documents come from: a source is one function that yields documents and bad lines.

``Collection`` names that function and the fields its documents have. A source of records (a
file of lines, a table) is a function that yields rows; ``documents`` makes documents of them
and holds the rules that all sources share.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import orjson

from index_data.manifest import Field, IndexDataError
from index_data.schema import FIELDS_MAX, is_field_name
from index_data.values import VALUES_MAX, WANTED, keyword_of, values_of

LINE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A quarter of the largest frame between root and leaf: a document must fit in an answer."""

_INTEGER_LEAST: Final = -(2**63)
_INTEGER_MOST: Final = 2**64 - 1
"""What JSON readers keep exactly; an integer beyond would lose digits on its way out."""

_INTEGER_DIGITS_MAX: Final = 20
"""Sign or digits of the two bounds; longer literals are out of range unread."""


class BadSource(IndexDataError):
    """A source that cannot be read at all, or whose fields make no schema."""


class Document(msgspec.Struct, frozen=True):
    """One document: its id, and the whole source object, of which fields are the members.

    ``where`` says where it stands in the source, for people.
    """

    id: str
    source: Mapping[str, Any]
    where: str = ""


class BadLine(msgspec.Struct, frozen=True):
    """A piece of a source that became no document: where it stands, and why.

    ``reason`` is one of few, for counting; ``detail`` is about this one.
    """

    where: str
    reason: str
    detail: str = ""


class Row(msgspec.Struct, frozen=True):
    """A parsed record, not yet checked, and where it stands in the source."""

    where: str
    record: Mapping[str, Any]


class Collection(msgspec.Struct, frozen=True):
    """A source ready to be read. ``read`` starts from the beginning at every call."""

    kind: str
    name: str
    fields: tuple[Field, ...]
    read: Callable[[], Iterator[Document | BadLine]]
    fields_by_hand: bool = False
    """Whether a person named the fields, and may have misspelt one."""
    id_field: str = "id"
    """The member that names a document."""
    updates: int = 0
    """How many times the documents have been changed since they were read from their source."""
    bad: Mapping[str, int] = {}
    """What had been left out before, as in ``manifest.Source``."""


class Unfit(ValueError):
    """A record that cannot be a document; ``reason`` and ``detail`` as in BadLine."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


# --- what all sources share --------------------------------------------------------------


def fields_of(text: Iterable[str], keyword: Iterable[str]) -> tuple[Field, ...]:
    """Return the fields of a source from their names; ``title^3`` gives a text field weight 3.

    Raises BadSource naming the field.
    """
    fields = [_text_field(name) for name in text]
    fields += [Field(name, "keyword", default=False) for name in keyword]
    if not any(field.type == "text" for field in fields):
        raise BadSource("At least one text field is needed: name it with --text-fields.")
    if len(fields) > FIELDS_MAX:
        raise BadSource(f"There are {len(fields)} fields; {FIELDS_MAX} is the most.")
    names = [field.name for field in fields]
    for name in names:
        if not is_field_name(name):
            raise BadSource(
                f"The field name {name!r} will not do: a letter, then letters, digits or _."
            )
        if names.count(name) > 1:
            raise BadSource(f"The field {name!r} is named twice.")
    return tuple(fields)


def _text_field(named: str) -> Field:
    name, caret, weight_text = named.partition("^")
    if not caret:
        return Field(name, "text")
    try:
        weight = float(weight_text)
    except ValueError:
        weight = math.nan
    if not 0.0 < weight <= 1000.0:
        raise BadSource(f"The weight in {named!r} must be a number above 0 and up to 1000.")
    return Field(name, "text", weight=weight)


def documents(
    rows: Iterable[Row | BadLine], id_field: str, fields: tuple[Field, ...]
) -> Iterator[Document | BadLine]:
    """Yield the documents that rows are, and bad lines where they are none."""
    for row in rows:
        if isinstance(row, BadLine):
            yield row
            continue
        try:
            yield document_of(row.record, id_field, fields, row.where)
        except Unfit as unfit:
            yield BadLine(row.where, unfit.reason, unfit.detail)


def document_of(
    record: Mapping[str, Any], id_field: str, fields: tuple[Field, ...], where: str = ""
) -> Document:
    """Return the document that a parsed record is.

    Raises Unfit.
    """
    if record.get(id_field) is None:
        raise Unfit("no id", f"{id_field!r} is missing")
    identity = keyword_of(record[id_field])
    if identity is None:
        raise Unfit("bad id", f"{id_field!r} must be an integer, or text of 1 to 512 bytes")
    if not identity.isprintable():
        raise Unfit(
            "bad id", f"{id_field!r} has a character that cannot be typed: {identity!r:.60}"
        )
    for field in fields:
        value = record.get(field.name)
        if values_of(value, field) is None:
            raise Unfit("wrong type", f"{field.name!r} is not {_wanted(field)}: {_shown(value)}")
    return Document(identity, record, where)


def _wanted(field: Field) -> str:
    several = f", nor a list of at most {VALUES_MAX}" if field.multiple else ""
    return WANTED[field.type] + several


def _shown(value: Any) -> str:
    return repr(value)[:60]


def nothing_found(name: str, bad: int, first: BadLine | None) -> str:
    """Return a sentence about a source of so many bad lines and no documents."""
    if first is None:
        return f"The source {name} has no documents."
    return (
        f"The source {name} has no good documents: {bad} bad, "
        f"the first at {first.where}: {first.reason}: {first.detail}."
    )


# --- JSONL -------------------------------------------------------------------------------


def jsonl(path: Path, id_field: str, fields: tuple[Field, ...]) -> Collection:
    """Return the collection of a file of one JSON object a line; blank lines are skipped.

    Raises BadSource when the file cannot be opened.
    """
    check_readable(path)

    def read() -> Iterator[Document | BadLine]:
        return documents(jsonl_rows(path), id_field, fields)

    return Collection("jsonl", path.name, fields, read, fields_by_hand=True, id_field=id_field)


def check_readable(path: Path) -> None:
    """Raise BadSource when a file cannot be opened."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise BadSource(f"The source {path} cannot be read: {error.strerror}.") from error


def jsonl_rows(path: Path) -> Iterator[Row | BadLine]:
    """Yield the objects of a file of one JSON object a line."""
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), start=1):
            if line.strip():
                yield _row_or_bad_line(line, f"line {number}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines, one that is too long cut just past the limit; the rest of it is dropped."""
    first = True
    while line := file.readline(LINE_BYTES_MAX + 1):
        rest = line
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = file.readline(LINE_BYTES_MAX + 1)
        yield line.removeprefix(codecs.BOM_UTF8) if first else line
        first = False


def _row_or_bad_line(line: bytes, where: str) -> Row | BadLine:
    try:
        return Row(where, parse_object(line))
    except Unfit as unfit:
        return BadLine(where, unfit.reason, unfit.detail)


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the object in a line of JSON, every number in it exact and finite.

    Raises Unfit.
    """
    if len(line) > LINE_BYTES_MAX:
        raise Unfit("too long", f"over {LINE_BYTES_MAX} bytes")
    try:
        value = _DECODER.decode(line.decode().rstrip())  # else the end of it is on line 2
        orjson.dumps(value)  # refuses what JSON in UTF-8 cannot say: lone surrogates
    except UnicodeDecodeError as error:
        raise Unfit("bad UTF-8", f"at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise Unfit("bad JSON", f"{error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise Unfit("bad JSON", "nested too deep") from error
    except orjson.JSONEncodeError as error:
        raise Unfit("bad text", str(error)) from error
    if not isinstance(value, dict):
        raise Unfit("not an object", _shown(value))
    return value


def _integer(literal: str) -> int:
    if len(literal) <= _INTEGER_DIGITS_MAX and _INTEGER_LEAST <= int(literal) <= _INTEGER_MOST:
        return int(literal)
    raise Unfit("bad number", f"{literal[:24]} does not fit 64 bits")


def _float(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise Unfit("bad number", f"{literal[:24]} is out of range")
    return number


def _constant(literal: str) -> float:
    raise Unfit("bad number", f"{literal} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)
