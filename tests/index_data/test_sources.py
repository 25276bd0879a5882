"""JSONL: what becomes a document, what is a bad line and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from index_data import sources
from index_data.manifest import Field
from index_data.sources import (
    BadLine,
    BadSource,
    Collection,
    Document,
    Unfit,
    document_of,
    fields_of,
    jsonl,
)

FIELDS = (Field("title", "text"), Field("kind", "keyword", default=False))


def read(tmp_path: Path, content: bytes) -> list[Document | BadLine]:
    """What a file with this content yields."""
    return list(collected(tmp_path, content).read())


def collected(tmp_path: Path, content: bytes) -> Collection:
    """The collection of a file with this content."""
    path = tmp_path / "some.jsonl"
    path.write_bytes(content)
    return jsonl(path, "id", FIELDS)


def test_a_good_line_is_a_document_with_all_its_members(tmp_path: Path) -> None:
    """The whole object is kept, members that are no field included."""
    (document,) = read(tmp_path, b'{"id": "a", "title": "T", "more": [1, {"x": null}]}\n')
    assert isinstance(document, Document)
    assert document.id == "a"
    assert document.source == {"id": "a", "title": "T", "more": [1, {"x": None}]}


@pytest.mark.parametrize("number", [2**63 - 1, 2**53 + 1, -(2**63), 2**64 - 1, 0])
def test_integer_ids_keep_every_digit(tmp_path: Path, number: int) -> None:
    """An id that is an integer survives exactly, as id and in the source."""
    (document,) = read(tmp_path, json.dumps({"id": number}).encode())
    assert isinstance(document, Document)
    assert document.id == str(number)
    assert document.source["id"] == number


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"id": "a"', "bad JSON", "column 11"),
        (b'{"id": "a" \r', "bad JSON", "column 11"),
        (b'  {"id": x}', "bad JSON", "column 10"),
        (b'{"id": "a"} x', "bad JSON", "column"),
        (b"[" * 100_000, "bad JSON", "deep"),
        (b'{"id": "\xff"}', "bad UTF-8", "byte 8"),
        (b'["id"]', "not an object", "id"),
        (b"7", "not an object", "7"),
        (b'{"title": "T"}', "no id", "'id'"),
        (b'{"id": null}', "no id", "'id'"),
        (b'{"id": ""}', "bad id", "'id'"),
        (b'{"id": true}', "bad id", "'id'"),
        (b'{"id": 1.5}', "bad id", "'id'"),
        (b'{"id": "' + b"x" * 513 + b'"}', "bad id", "512"),
        (b'{"id": "a", "title": 7}', "wrong type", "'title'"),
        (b'{"id": "a", "title": ["T"]}', "wrong type", "'title'"),
        (b'{"id": "a", "kind": false}', "wrong type", "'kind'"),
        (b'{"id": "a", "n": NaN}', "bad number", "NaN"),
        (b'{"id": "a", "n": -Infinity}', "bad number", "Infinity"),
        (b'{"id": "a", "n": 1e400}', "bad number", "range"),
        (b'{"id": 18446744073709551616}', "bad number", "64 bits"),
        (b'{"id": "a", "n": ' + b"9" * 5000 + b"}", "bad number", "64 bits"),
        (b'{"id": "a", "title": "\\ud800"}', "bad text", "surrogate"),
        (b'{"id": "\\udfff"}', "bad text", "surrogate"),
    ],
)
def test_a_bad_line_says_where_and_why(
    tmp_path: Path, line: bytes, reason: str, detail: str
) -> None:
    """A line that is no document yields its number and reason, and the next is read."""
    bad, good = read(tmp_path, line + b'\n{"id": "next"}\n')
    assert isinstance(bad, BadLine)
    assert (bad.where, bad.reason) == ("line 1", reason)
    assert detail in bad.detail
    assert len(bad.detail) < 200
    assert isinstance(good, Document)
    assert good.where == "line 2"


def test_a_line_over_the_limit_is_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is too long is one bad line, and the one after it keeps its number."""
    monkeypatch.setattr(sources, "LINE_BYTES_MAX", 64)
    bad, good = read(tmp_path, b"x" * 1000 + b'\n{"id": "a"}')
    assert isinstance(bad, BadLine)
    assert bad.reason == "too long"
    assert isinstance(good, Document)
    assert good.where == "line 2"


def test_blank_lines_and_a_byte_order_mark_are_no_lines(tmp_path: Path) -> None:
    """Blank lines count for the numbering only; a mark at the start is skipped."""
    (document,) = read(tmp_path, b'\xef\xbb\xbf\n  \n{"id": "a"}')
    assert isinstance(document, Document)
    assert document.where == "line 3"
    (first,) = read(tmp_path, b'\xef\xbb\xbf{"id": "a"}\r\n')
    assert isinstance(first, Document)


def test_a_collection_can_be_read_twice(tmp_path: Path) -> None:
    """Reading starts from the beginning each time."""
    collection = collected(tmp_path, b'{"id": "a"}\n')
    assert list(collection.read()) == list(collection.read())
    assert collection.name == "some.jsonl"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A source that is not there is one sentence with its name."""
    with pytest.raises(BadSource, match=r"nowhere\.jsonl"):
        jsonl(tmp_path / "nowhere.jsonl", "id", FIELDS)


def test_fields_may_have_weights() -> None:
    """A caret gives a text field its weight; keywords are not looked in by default."""
    assert fields_of(["title^2.5", "body"], ["kind"]) == (
        Field("title", "text", weight=2.5),
        Field("body", "text"),
        Field("kind", "keyword", default=False),
    )


@pytest.mark.parametrize(
    ("text", "keyword", "named"),
    [
        ([], ["kind"], "--text-fields"),
        (["_id"], [], "_id"),
        (["a.b"], [], "a.b"),
        (["a", "a"], [], "'a'"),
        (["a"], ["a"], "'a'"),
        (["a^0"], [], "a\\^0"),
        (["a^nan"], [], "weight"),
        (["a^x"], [], "weight"),
        ([f"f{i}" for i in range(65)], [], "65"),
    ],
)
def test_fields_that_make_no_schema_are_named(
    text: list[str], keyword: list[str], named: str
) -> None:
    """A schema that cannot be is refused by the name of what is wrong."""
    with pytest.raises(BadSource, match=named):
        fields_of(text, keyword)


def test_absent_fields_are_allowed() -> None:
    """A document need not have every field."""
    record: dict[str, Any] = {"id": 1, "title": None}
    assert sources.document_of(record, "id", FIELDS).id == "1"


@pytest.mark.parametrize("identity", ["a\nb", "a\x00b", "\x7f", "tab\t"])
def test_an_id_that_cannot_be_typed_is_a_bad_line(identity: str) -> None:
    """No address could name the document."""
    with pytest.raises(Unfit) as caught:
        document_of({"id": identity}, "id", ())
    assert "cannot be typed" in caught.value.detail
