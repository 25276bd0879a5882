"""What a client makes of the root's answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.client import Hit, read_answer


def body(complete: bool) -> bytes:
    """A root's answer of one hit."""
    missing: list[Any] = [] if complete else [{"shard": 3, "reason": "timeout"}]
    return orjson.dumps(
        {
            "hits": [{"id": "json.dumps", "score": 9.5, "fields": {}, "highlights": {}}],
            "total": {"value": 214, "relation": "eq"},
            "coverage": {"complete": complete, "missing": missing},
        }
    )


def test_a_whole_answer_is_complete() -> None:
    """Hits, total and fate are read."""
    answer = read_answer(200, body(complete=True))
    assert (answer.fate, answer.total, answer.hits) == ("complete", 214, (Hit("json.dumps", 9.5),))
    assert answer.ids == ("json.dumps",)


def test_a_missing_shard_makes_it_partial() -> None:
    """A 200 that is not complete is not counted as complete, and says what was missing."""
    answer = read_answer(200, body(complete=False))
    assert answer.fate == "partial"
    assert "timeout" in answer.detail


@pytest.mark.parametrize(
    ("status", "fate"), [(429, "refused"), (504, "timeout"), (503, "error"), (400, "error")]
)
def test_other_statuses_are_fates(status: int, fate: str) -> None:
    """Push-back, too late, and broken are told apart."""
    assert read_answer(status, b"{}").fate == fate
