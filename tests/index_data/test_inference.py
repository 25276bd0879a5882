"""A guess is what a person would have written, or leaves the member out."""

from __future__ import annotations

from typing import Any

import pytest

from index_data import inference
from index_data.inference import infer
from index_data.manifest import Field
from index_data.schema_file import BadSchema
from index_data.sources import Row

BODY = {"body": "a few words"}


def rows(records: list[dict[str, Any]]) -> list[Row]:
    """Records as the lines of a file."""
    return [Row(f"line {number}", record) for number, record in enumerate(records, start=1)]


def guessed(values: list[Any], *, from_text: bool = False) -> Field | None:
    """The field guessed for a member with these values, beside a text."""
    records = [{"id": i, "x": value} | BODY for i, value in enumerate(values)]
    found = {field.name: field for field in infer(rows(records), "id", from_text=from_text).fields}
    assert found["body"].type == "text"
    assert "id" not in found
    return found.get("x")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, None], "boolean"),
        ([1, 2**63 - 1], "integer"),
        ([1, 2.5], "float"),
        ([2**64 - 1, 0], "float"),
        (["2001-01-01", "2001-01-01T10:00Z"], "date"),
        (["loads", "dumps"], "keyword"),
        (["New York", "Los Angeles"] * 5, "keyword"),
        (["New York", "Los Angeles"], "text"),
        (["x" * 65], "text"),
        (["東京都に行く"], "text"),
        (["1", "2"], "keyword"),
    ],
)
def test_values_of_one_type_make_a_field_of_it(values: list[Any], kind: str) -> None:
    """The narrowest type that all values have; text repeats, or has no spaces, or is text."""
    field = guessed(values)
    assert field == Field("x", kind, default=kind == "text")  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [[{"a": 1}], [1, "a"], [True, 1], [[], []], [None], [[["a"]]]])
def test_what_is_of_no_type_is_no_field(values: list[Any]) -> None:
    """Objects and mixtures stay in the document, unsearched."""
    assert guessed(values) is None


def test_lists_make_a_field_of_several_values() -> None:
    """One list among the values is enough."""
    assert guessed([["a"], "b"]) == Field("x", "keyword", default=False, multiple=True)
    assert guessed([[1, 2], [3]]) == Field("x", "integer", default=False, multiple=True)


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["1", "2"], "integer"), (["1", "2.5"], "float"), (["true", "False"], "boolean"),
     (["2001-01-01"], "date"), (["1", "a"], "keyword")],
)  # fmt: skip
def test_cells_of_a_table_say_their_types(values: list[str], kind: str) -> None:
    """Where all is text, what it says decides."""
    field = guessed(values, from_text=True)
    assert field is not None
    assert field.type == kind


def test_something_is_always_text() -> None:
    """Where all looks like labels, the longest is searched; where nothing is, that is told."""
    fields = infer(rows([{"id": 1, "a": "short", "b": "longer-one", "n": 3}]), "id").fields
    assert {field.name: field.type for field in fields} == {
        "a": "keyword",
        "b": "text",
        "n": "integer",
    }
    with pytest.raises(BadSchema, match="nothing could be searched"):
        infer(rows([{"id": 1, "n": 3}]), "id")


def test_only_the_first_documents_and_legal_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess does not read a whole source, nor name what a schema may not."""
    monkeypatch.setattr(inference, "DOCUMENTS_SEEN", 2)
    records = [{"x": 1, "a.b": "c", "_id": "d"} | BODY] * 2 + [{"x": "late"}]
    assert [field.name for field in infer(rows(records), "id").fields] == ["x", "body"]


@pytest.mark.parametrize(
    ("values", "from_text", "doubt"),
    [
        (["2020-01-01"] * 11 + ["soon"], False, "1 of 12 values is no date, first at line 12 ('so"),
        (["1"] * 18 + ["x", "y"], True, "2 of 20 values are no integer, first at line 19 ('x')"),
        (["1.5"] * 18 + ["x", "2"], True, "1 of 20 values is no float, first at line 19 ('x')"),
        (
            [7] * 9 + ["x"],
            False,
            "1 of 10 values is no integer, first at line 10 ('x'), so it",
        ),
        ([[7] * 9, ["x"]], False, "1 of 10 values is no integer, first at line 2 ('x')"),
        (["2020-01-01"] * 8 + ["soon"], False, None),
        ([1] * 9 + [1.5], False, None),
        (["a", "b"] * 9, False, None),
    ],
)
def test_a_few_values_that_decide_otherwise_are_told(
    values: list[Any], from_text: bool, doubt: str | None
) -> None:
    """Not more than one in ten: how many, of what type the others are, where and what."""
    records = [{"id": i, "x": value} | BODY for i, value in enumerate(values)]
    doubts = infer(rows(records), "id", from_text=from_text).doubts
    assert len(doubts) == (doubt is not None)
    assert all(one.startswith(f"field `x`: {doubt}") for one in doubts)
