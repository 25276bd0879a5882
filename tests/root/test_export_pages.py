"""What an export is asked for, and how large its pages are."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from root.errors import BadRequest
from root.export_pages import (
    FIRST_HITS,
    PAGE_BYTES,
    PAGE_HITS_MAX,
    PIECE_BYTES,
    ExportRequest,
    export_from_json,
    lines_of,
    page_after,
    pieces,
)
from root.requests import SearchRequest


def test_an_export_is_a_search_that_waits_behind_others() -> None:
    """By id, with everything searched and nothing highlighted unless it says otherwise."""
    plain = export_from_json(b'{"q": "json"}')
    assert (plain.priority, plain.k, plain.sort) == ("batch", FIRST_HITS, ("_id",))
    assert (plain.min_coverage, plain.highlight) == (1.0, ())
    asked = {"q": "json", "sort": ["-year"], "min_coverage": 0.5, "fields": ["a"], "strict": True}
    wanted = export_from_json(orjson.dumps(asked))
    assert (wanted.sort, wanted.min_coverage) == (("-year",), 0.5)
    assert (wanted.fields, wanted.strict) == (("a",), True)


def test_an_export_has_the_members_of_a_search() -> None:
    """But for those that are about one page of it, or of answers only."""
    without = {"k", "offset", "cursor", "facets", "hedge", "priority", "trace"}
    without |= {"explain", "similar_to"}
    search, export = SearchRequest.__struct_fields__, ExportRequest.__struct_fields__
    assert {*search} - {*export} == without
    assert not {*export} - {*search}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "q"),
        ({"q": "a", "query": {"type": "all"}}, "q"),
        ({"q": "a", "k": 3}, "k"),
        ({"q": "a", "cursor": "x"}, "cursor"),
        ({"q": "a", "priority": "interactive"}, "priority"),
        ({"q": "a", "timeout_ms": 0}, "timeout_ms"),
        ({"query": {"type": "all"}, "strict": True}, "strict"),
        ([], "body"),
    ],
)
def test_what_cannot_be_exported_is_refused(asked: Any, field: str) -> None:
    """With the member that is at fault."""
    with pytest.raises(BadRequest) as caught:
        export_from_json(orjson.dumps(asked))
    assert caught.value.field == field


def test_pieces_are_whole_lines_and_worth_a_write() -> None:
    """All of them, in order; only the last may be small."""
    lines = lines_of([{"id": "é" * 500, "n": n} for n in range(1000)])
    joined = list(pieces(lines))
    assert b"".join(joined) == b"".join(lines)
    assert all(piece.endswith(b"}\n") for piece in joined)
    assert all(PIECE_BYTES <= len(piece) < 2 * PIECE_BYTES for piece in joined[:-1])
    assert len(joined) > 10
    assert list(pieces([])) == []
    exact = [b"x" * PIECE_BYTES]
    assert list(pieces(exact)) == exact


@pytest.mark.parametrize(
    ("hits", "size", "k"),
    [
        (100, 100 * 200, PAGE_HITS_MAX),
        (100, 100 * 40_000, PAGE_BYTES // 40_000),
        (1, 10 * PAGE_BYTES, 1),
    ],
)
def test_pages_are_as_large_as_memory_allows(hits: int, size: int, k: int) -> None:
    """Small documents a thousand at a time, large ones a few, and one at the least."""
    first = export_from_json(b'{"q": "json"}')
    after = page_after(first, "there", hits, size)
    assert after == msgspec.structs.replace(first, cursor="there", k=k)
