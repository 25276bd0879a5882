"""Requests that are at fault: each is told which part of it, and costs no leaf anything."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.sim.serving import Served, is_problem, served

BAD_PARAMETERS: Final[list[tuple[str, str]]] = [
    ("q=a&k=0", "k"),
    ("q=a&k=1001", "k"),
    ("q=a&k=ten", "k"),
    ("q=a&k=1e3", "k"),
    ("q=a&k=", "k"),
    ("q=a&offset=-1", "offset"),
    ("q=a&offset=9999&k=10", "offset"),
    ("q=a&offset=9223372036854775808", "offset"),
    ("q=a&timeout_ms=0", "timeout_ms"),
    ("q=a&timeout_ms=nan", "timeout_ms"),
    ("q=a&min_coverage=1.5", "min_coverage"),
    ("q=a&hedge=always", "hedge"),
    ("q=a&priority=urgent", "priority"),
    ("q=a&trace=yes", "trace"),
    ("q=a&highlight=nowhere", "highlight"),
    ("q=a&highlight=tag", "highlight"),
    ("q=a&size=3", "size"),
    ("q=a&q=b", "q"),
    ("", "q"),
    ("q=", "q"),
    ("q=+++", "q"),
    ("strict=1&q=%22a", "q"),
    ("strict=1&q=nofield:a", "q"),
    ("q=%ff", "q"),
    ("q=%00", "q"),
    ("q=%ed%a0%80", "q"),
    ("q=" + "a" * 5000, "q"),
    ("&".join(f"p{i}=1" for i in range(40)), "query string"),
]


@pytest.mark.parametrize(
    ("query_string", "field"), BAD_PARAMETERS, ids=[q[:24] for q, _ in BAD_PARAMETERS]
)
def test_a_bad_parameter_is_named_and_goes_no_further(query_string: str, field: str) -> None:
    """400 names the parameter at fault, and no leaf hears of the request."""

    async def body(serving: Served) -> None:
        answer = await serving.client.get(f"/search?{query_string}")
        assert is_problem(answer, 400)["field"] == field
        assert serving.fleet.received == 0

    served(body)


BAD_BODIES: Final[list[tuple[Any, str | None]]] = [
    (b"", "body"),
    (b"{", "body"),
    (b"\xff", "body"),
    (b"[]", "body"),
    (b"null", "body"),
    (b"[" * 60_000, "body"),
    (b'{"q": "a", "k": 1e400}', None),
    (b'{"q": "\\ud800"}', None),
    ({}, "q"),
    ({"q": None}, "q"),
    ({"q": 1}, "q"),
    ({"q": "a", "query": {"type": "all"}}, "q"),
    ({"q": "a", "k": "10"}, "k"),
    ({"q": "a", "k": True}, "k"),
    ({"q": "a", "k": None}, "k"),
    ({"q": "a", "k": 2**63}, "k"),
    ({"q": "a", "k": 1.5}, "k"),
    ({"q": "a", "offset": -1}, "offset"),
    ({"q": "a", "timeout_ms": "100"}, "timeout_ms"),
    ({"q": "a", "min_coverage": -0.1}, "min_coverage"),
    ({"q": "a", "fields": "title"}, "fields"),
    ({"q": "a", "highlight": ["nowhere"]}, "highlight"),
    ({"q": "a", "trace": 1}, "trace"),
    ({"q": "a", "shards": 3}, "shards"),
    ({"query": {"type": "fuzy"}}, "query.type"),
    ({"query": {"type": "word"}}, "query"),
    ({"query": {"type": "word", "text": "a", "boost": 0}}, "query.boost"),
    ({"query": {"type": "word", "text": "a", "field": "nowhere"}}, "query.field"),
    ({"query": {"type": "bool", "must": [{"type": "word", "text": 1}]}}, "query.must[0].text"),
]


@pytest.mark.parametrize(("sent", "field"), BAD_BODIES, ids=[str(b)[:32] for b, _ in BAD_BODIES])
def test_a_bad_body_is_named_and_goes_no_further(sent: Any, field: str | None) -> None:
    """400 names the member at fault, and no leaf hears of the request."""

    async def body(serving: Served) -> None:
        members = is_problem(await serving.client.post("/search", sent), 400)
        assert members["field"] == field or field is None
        assert serving.fleet.received == 0

    served(body)
