"""Files as sources, told apart by how their names end: JSONL, CSV, Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from index_data.inference import Guess, infer
from index_data.manifest import Field
from index_data.sources import (
    BadLine,
    BadSource,
    Collection,
    Document,
    Row,
    check_readable,
    documents,
    jsonl_rows,
    nothing_found,
)
from index_data.tables import csv_rows, parquet_rows

KINDS: Final[Mapping[str, str]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}


def file_collection(path: Path, id_field: str, fields: tuple[Field, ...]) -> Collection:
    """Return the collection of a file.

    Raises BadSource when it cannot be opened or is of no known kind.
    """
    kind = _kind_of(path)
    check_readable(path)

    def read() -> Iterator[Document | BadLine]:
        return documents(_rows(path, kind, fields), id_field, fields)

    return Collection(kind, path.name, fields, read, fields_by_hand=True, id_field=id_field)


def guessed_fields(path: Path, id_field: str) -> Guess:
    """Return the fields that the first documents of a file seem to have.

    Raises BadSource, BadSchema.
    """
    kind = _kind_of(path)
    check_readable(path)
    bad: list[BadLine] = []

    def rows() -> Iterator[Row]:
        for row in _rows(path, kind, ()):
            if isinstance(row, Row):
                yield row
            else:
                bad.append(row)

    found = rows()
    first = next(found, None)
    if first is None:
        raise BadSource(nothing_found(path.name, len(bad), bad[0] if bad else None))
    return infer(chain([first], found), id_field, from_text=kind == "csv")


def _kind_of(path: Path) -> str:
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise BadSource(
            f"The source must be pydocs or a file of {', '.join(KINDS)}, not {str(path)!r}."
        )
    return kind


def _rows(path: Path, kind: str, fields: tuple[Field, ...]) -> Iterator[Row | BadLine]:
    match kind:
        case "csv":
            return csv_rows(path, fields)
        case "parquet":
            return parquet_rows(path)
        case _:
            return jsonl_rows(path)
