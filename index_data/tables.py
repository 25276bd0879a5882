"""Tables as sources: CSV, whose cells are text, and Parquet, whose columns have types.

A cell of a CSV file says a value of its field's type; an empty one says nothing, and where a
field may have several values they are separated by ``|``. A cell that says none is left as it
is, for the check of the document to name.

Parquet needs pyarrow, which is not installed with Hedgerow unless asked for.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from index_data.manifest import Field
from index_data.sources import LINE_BYTES_MAX, BadLine, BadSource, Row, Unfit
from index_data.values import json_of, text_of_moment

VALUES_SEPARATOR: Final = "|"
"""Between the values in one cell: rare in labels, where commas are not."""

ROWS_AT_ONCE: Final = 1024
"""Rows of a Parquet file in memory: documents of some kilobytes come to some megabytes."""

# --- CSV ---------------------------------------------------------------------------------


def csv_rows(path: Path, fields: Iterable[Field] = ()) -> Iterator[Row | BadLine]:
    """Yield the rows of a CSV file in UTF-8 with a line of names, cells read as fields are.

    Raises BadSource when there are no names, or one twice.
    """
    typed = {field.name: field for field in fields}
    csv.field_size_limit(LINE_BYTES_MAX)
    # Bytes that are no UTF-8 come as lone surrogates, so that only their row is bad.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, strict=True)
        names = _names_of(reader, path)
        while True:
            where = f"line {reader.line_num + 1}"
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield BadLine(where, "bad CSV", str(error))
                continue
            if cells is None:
                return
            if cells:
                yield _row_of(cells, names, typed, where)


def _names_of(reader: Any, path: Path) -> list[str]:
    try:
        names: list[str] = next(reader, [])
    except csv.Error as error:
        raise BadSource(f"The names of {path.name} cannot be read: {error}.") from error
    if not names and path.stat().st_size == 0:
        raise BadSource(f"The source {path.name} is empty: its first line must name the columns.")
    if not all(names) or not names:
        raise BadSource(f"The first line of {path.name} must name every column.")
    for name in names:
        if names.count(name) > 1:
            raise BadSource(f"The column {name!r:.80} of {path.name} is there twice.")
    return names


def _row_of(
    cells: list[str], names: list[str], typed: Mapping[str, Field], where: str
) -> Row | BadLine:
    if len(cells) != len(names):
        return BadLine(where, "wrong columns", f"{len(cells)} cells for {len(names)} names")
    for name, cell in zip(names, cells, strict=True):
        if not cell.isascii() and any("\ud800" <= character <= "\udfff" for character in cell):
            return BadLine(where, "bad UTF-8", f"in {name!r:.80}")
    record = {
        name: _cell(cell, typed.get(name)) for name, cell in zip(names, cells, strict=True) if cell
    }
    return Row(where, record)


def _cell(cell: str, field: Field | None) -> Any:
    if field is None:
        return cell
    if field.multiple:
        return [_said(part, field) for part in cell.split(VALUES_SEPARATOR) if part]
    return _said(cell, field)


def _said(cell: str, field: Field) -> Any:
    value = json_of(cell.strip() if field.type not in {"text", "keyword"} else cell, field.type)
    return cell if value is None else value


# --- Parquet -----------------------------------------------------------------------------


def parquet_rows(path: Path) -> Iterator[Row | BadLine]:
    """Yield the rows of a Parquet file; moments become text, a number that is none is null.

    Raises BadSource when it is no such file, or cannot be read without pyarrow.
    """
    pyarrow, parquet = _pyarrow()
    number = 0
    try:
        file = parquet.ParquetFile(path)
        for batch in file.iter_batches(ROWS_AT_ONCE):
            for record in _to_microseconds(batch, pyarrow).to_pylist():
                number += 1
                yield _parquet_row(record, f"row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise BadSource(f"The source {path.name} is no Parquet after row {number}: {reason}") from (
            error
        )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - only whoever has Parquet needs it
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadSource("Parquet needs pyarrow: install hedgerow[parquet].") from error
    return pyarrow, pyarrow.parquet


def _to_microseconds(batch: Any, pyarrow: Any) -> Any:
    """Return a batch without nanoseconds, which Python's moments do not have."""
    columns = [
        column.cast(pyarrow.timestamp("us", column.type.tz), safe=False)
        if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns"
        else column
        for column in batch.columns
    ]
    return pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _parquet_row(record: Mapping[str, Any], where: str) -> Row | BadLine:
    try:
        return Row(where, {name: _plain(name, value) for name, value in record.items()})
    except Unfit as unfit:
        return BadLine(where, unfit.reason, unfit.detail)


def _plain(name: str, value: Any) -> Any:
    """Return a value as JSON has it. Raises Unfit."""
    match value:
        case float():
            return None if math.isnan(value) else value
        case None | str() | bool() | int():
            return value
        case date():  # a datetime is one too
            return text_of_moment(value)
        case time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(key): _plain(name, one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(name, one) for one in value]
        case _:
            raise Unfit("bad value", f"{name!r} is {type(value).__name__}, which JSON has not")
