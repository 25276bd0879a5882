"""A guess is what a person would have written, or leaves the member out."""

from __future__ import annotations

from typing import Any

import pytest

from index_data import inference
from index_data.inference import infer
from index_data.manifest import Field
from index_data.schema_file import BadSchema

BODY = {"body": "a few words"}


def guessed(values: list[Any], *, from_text: bool = False) -> Field | None:
    """The field guessed for a member with these values, beside a text."""
    records = [{"id": i, "x": value} | BODY for i, value in enumerate(values)]
    found = {field.name: field for field in infer(records, "id", from_text=from_text)}
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
    fields = infer([{"id": 1, "a": "short", "b": "longer-one", "n": 3}], "id")
    assert {field.name: field.type for field in fields} == {
        "a": "keyword",
        "b": "text",
        "n": "integer",
    }
    with pytest.raises(BadSchema, match="nothing could be searched"):
        infer([{"id": 1, "n": 3}], "id")


def test_only_the_first_documents_and_legal_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess does not read a whole source, nor name what a schema may not."""
    monkeypatch.setattr(inference, "DOCUMENTS_SEEN", 2)
    records = [{"x": 1, "a.b": "c", "_id": "d"} | BODY] * 2 + [{"x": "late"}]
    assert [field.name for field in infer(records, "id")] == ["x", "body"]
