"""Tables become the same documents as lines of JSON would."""

from __future__ import annotations

import builtins
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow  # noqa: ICN001 - its name says more
import pyarrow.parquet
import pytest

from index_data.manifest import Field
from index_data.sources import BadLine, BadSource, Row
from index_data.tables import csv_rows, parquet_rows

FIELDS = (
    Field("title", "text"),
    Field("n", "integer", default=False),
    Field("f", "float", default=False),
    Field("b", "boolean", default=False),
    Field("at", "date", default=False),
    Field("tags", "keyword", default=False, multiple=True),
    Field("years", "integer", default=False, multiple=True),
)


def of_csv(tmp_path: Path, content: bytes) -> list[Row | BadLine]:
    """The rows of a CSV file with this content."""
    path = tmp_path / "some.csv"
    path.write_bytes(content)
    return list(csv_rows(path, FIELDS))


def test_cells_say_values_of_their_fields_types(tmp_path: Path) -> None:
    """Numbers are numbers without a lost digit; an empty cell is no value."""
    content = (
        b"\xef\xbb\xbfid,title,n,f,b,at,tags,years,more\n"
        b'007,"a, ""b""\nc", 9223372036854775807 ,1e3,True,2001-01-01,x|y|,1999|2001,7\n'
        b"\n"
        b"8,,,,,,,,\n"
    )
    assert of_csv(tmp_path, content) == [
        Row(
            "line 2",
            {
                "id": "007",
                "title": 'a, "b"\nc',
                "n": 2**63 - 1,
                "f": 1000.0,
                "b": True,
                "at": "2001-01-01",
                "tags": ["x", "y"],
                "years": [1999, 2001],
                "more": "7",
            },
        ),
        Row("line 5", {"id": "8"}),
    ]


def test_a_cell_that_says_no_value_is_left_for_the_check(tmp_path: Path) -> None:
    """The value that is shown is the one that stands in the file."""
    (row,) = of_csv(tmp_path, b"id,n,years\n1,soon,1|x\n")
    assert isinstance(row, Row)
    assert row.record == {"id": "1", "n": "soon", "years": [1, "x"]}


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b"1,2\n", "wrong columns", "2 cells for 3 names"),
        (b"1,2,3,4\n", "wrong columns", "4 cells"),
        (b"1,\xff,3\n", "bad UTF-8", "'title'"),
        (b'1,"a"b,3\n', "bad CSV", "expected"),
    ],
)
def test_a_bad_row_says_where_and_why(
    tmp_path: Path, line: bytes, reason: str, detail: str
) -> None:
    """The rows after it are read."""
    bad, good = of_csv(tmp_path, b"id,title,n\n" + line + b"2,x,3\n")
    assert isinstance(bad, BadLine)
    assert (bad.where, bad.reason) == ("line 2", reason)
    assert detail in bad.detail
    assert good == Row("line 3", {"id": "2", "title": "x", "n": 3})


@pytest.mark.parametrize("content", [b"", b"\n", b"id,,x\n", b"id,id\n", b'id,"a"b\n'])
def test_a_table_needs_a_name_for_every_column(tmp_path: Path, content: bytes) -> None:
    """No names, an empty one, one twice: the file is refused by its name."""
    with pytest.raises(BadSource, match=r"some\.csv"):
        of_csv(tmp_path, content)


def of_parquet(tmp_path: Path, columns: dict[str, Any]) -> list[Row | BadLine]:
    """The rows of a Parquet file with these columns."""
    path = tmp_path / "some.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return list(parquet_rows(path))


def test_columns_of_parquet_keep_their_values(tmp_path: Path) -> None:
    """Moments become text in UTC, decimals numbers, and no integer loses a digit."""
    moment = datetime(2001, 1, 1, 1, tzinfo=UTC)
    nanoseconds = pyarrow.array([978310800000000001], pyarrow.timestamp("ns"))
    (row,) = of_parquet(
        tmp_path,
        {
            "n": [2**63 - 1],
            "f": [0.5],
            "nan": [float("nan")],
            "b": [True],
            "at": [moment],
            "ns": nanoseconds,
            "day": [date(2001, 1, 1)],
            "time": [time(1, 2)],
            "whole": [Decimal(12345678901234567890)],
            "part": [Decimal("1.5")],
            "tags": [["x", "y"]],
            "of": [{"a": [1]}],
            "none": pyarrow.array([None], pyarrow.string()),
        },
    )
    assert row == Row(
        "row 1",
        {
            "n": 2**63 - 1,
            "f": 0.5,
            "nan": None,
            "b": True,
            "at": "2001-01-01T01:00:00Z",
            "ns": "2001-01-01T01:00:00Z",
            "day": "2001-01-01",
            "time": "01:02:00",
            "whole": 12345678901234567890,
            "part": 1.5,
            "tags": ["x", "y"],
            "of": {"a": [1]},
            "none": None,
        },
    )


def test_a_value_that_json_has_not_makes_a_bad_row(tmp_path: Path) -> None:
    """Bytes are named by their column."""
    bad, good = of_parquet(tmp_path, {"raw": [b"\xff", None]})
    assert bad == BadLine("row 1", "bad value", "'raw' is bytes, which JSON has not")
    assert good == Row("row 2", {"raw": None})


def test_what_is_no_parquet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is any such file where pyarrow is not installed, with what to install."""
    path = tmp_path / "some.parquet"
    path.write_bytes(b"PAR1 it is not")
    with pytest.raises(BadSource, match=r"some\.parquet is no Parquet after row 0"):
        list(parquet_rows(path))
    importing = builtins.__import__

    def without_pyarrow(name: str, *more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return importing(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(BadSource, match=r"install hedgerow\[parquet\]"):
        list(parquet_rows(path))
