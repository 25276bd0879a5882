"""The same documents come out of every kind of file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow  # noqa: ICN001 - its name says more
import pyarrow.parquet
import pytest

from index_data.files import file_collection, guessed_fields
from index_data.manifest import Field
from index_data.sources import BadLine, BadSource, Document

RECORDS = [{"id": str(i), "body": f"some words {i}", "n": i} for i in range(5)]
FIELDS = (Field("body", "text"), Field("n", "integer", default=False))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The records as JSONL, CSV and Parquet."""
    jsonl, csv, parquet = (tmp_path / f"some.{kind}" for kind in ("jsonl", "csv", "parquet"))
    jsonl.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    csv.write_text("id,body,n\n" + "".join(",".join(map(str, r.values())) + "\n" for r in RECORDS))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(RECORDS), parquet)
    return [jsonl, csv, parquet]


def test_every_kind_of_file_gives_the_same_documents(files: list[Path]) -> None:
    """Reading with a schema, guessed or given, does not depend on the kind."""
    for path in files:
        assert guessed_fields(path, "id").fields == FIELDS
        collection = file_collection(path, "id", FIELDS)
        assert (collection.kind, collection.name) == (path.suffix[1:], path.name)
        found = list(collection.read())
        assert [d.source for d in found if isinstance(d, Document)] == RECORDS


def test_a_wrong_value_is_a_bad_line_of_every_kind(files: list[Path]) -> None:
    """Field, value and place are told."""
    for path, where in zip(files, ("line 1", "line 2", "row 1"), strict=True):
        fields = (Field("body", "boolean", default=False),)
        bad = next(file_collection(path, "id", fields).read())
        assert bad == BadLine(where, "wrong type", "'body' is not true or false: 'some words 0'")


def test_other_files_are_refused_by_their_names(tmp_path: Path) -> None:
    """An unknown ending and a missing file are one sentence."""
    with pytest.raises(BadSource, match=r"\.parquet, not '.*x\.xml'"):
        file_collection(tmp_path / "x.xml", "id", FIELDS)
    with pytest.raises(BadSource, match=r"x\.csv cannot be read"):
        guessed_fields(tmp_path / "x.csv", "id")
