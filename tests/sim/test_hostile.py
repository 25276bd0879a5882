"""Requests that have broken systems of this kind: each is told once what is wrong with it, and
reaches no leaf; and answers that must not be taken for more than they are.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest

from bench.simulation.scripted import by_shard, fails, takes
from root.config import Settings
from tests.sim.serving import PLENTY, WORK_S, Served, is_problem, served

WRONG_NUMBERS: Final = {
    "-1": b"-1",
    "2 to the 31st": b"2147483648",
    "2 to the 63rd": b"9223372036854775808",
    "1e400": b"1e400",
    "text": b'"10"',
    "true": b"true",
    "null": b"null",
    "a half": b"0.5",
    "a list": b"[1]",
}


@pytest.mark.parametrize("number", WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
@pytest.mark.parametrize("name", ["k", "offset"])
def test_a_number_that_is_none_is_400_by_its_name(name: str, number: bytes) -> None:
    """In a body; nothing is sent to any leaf."""

    async def body(serving: Served) -> None:
        sent = b'{"q": "a", "' + name.encode() + b'": ' + number + b"}"
        members = is_problem(await serving.client.post("/search", sent), 400)
        assert members["field"] == name
        assert serving.fleet.received == 0

    served(body)


@pytest.mark.parametrize("text", ["-1", "2147483648", "9223372036854775808", "1e400", "true", ""])
@pytest.mark.parametrize("name", ["k", "offset"])
def test_a_number_that_is_none_is_400_in_a_query_string_too(name: str, text: str) -> None:
    """By its name, and nothing is sent to any leaf."""

    async def body(serving: Served) -> None:
        answer = await serving.client.get(f"/search?q=a&{name}={text}")
        assert is_problem(answer, 400)["field"] == name
        assert serving.fleet.received == 0

    served(body)


HOSTILE: Final[dict[str, tuple[bytes, int]]] = {
    "half of a character": (b'{"q": "\\ud800"}', 400),
    "half of a character in a tree": (b'{"query": {"type": "word", "text": "\\udfff"}}', 400),
    "the first half as bytes": (b'{"q": "\xed\xa0\x80"}', 400),
    "an overlong slash": (b'{"q": "\xc0\xaf"}', 400),
    "NUL": (b'{"q": "a\\u0000b"}', 400),
    "NUL in a tree": (b'{"query": {"type": "phrase", "text": "\\u0000"}}', 400),
    "a name twice": (b'{"q": "a", "q": "b"}', 400),
    "a name twice, further down": (b'{"query": {"type": "all", "type": "all"}}', 400),
    "NaN": (b'{"q": "a", "timeout_ms": NaN}', 400),
    "more text than a query has": (orjson.dumps({"q": "a" * 5000}), 400),
    "a megabyte": (orjson.dumps({"q": "a" * 1_000_000}), 413),
    "a megabyte of brackets": (b'{"query": ' + b"[" * 60_000, 400),
}


@pytest.mark.parametrize(("sent", "status"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_body_is_refused_once(sent: bytes, status: int) -> None:
    """No leaf hears of it, so nothing is tried again and nothing hedged; the root goes on."""

    async def body(serving: Served) -> None:
        is_problem(await serving.client.post("/search", sent), status)
        assert serving.fleet.received == 0
        assert (await serving.client.get("/search?q=a")).status == 200

    served(body)


def test_a_megabyte_in_the_query_string_is_refused_once() -> None:
    """As in a body."""

    async def body(serving: Served) -> None:
        answer = await serving.client.get("/search?q=" + "a" * 1_000_000)
        assert is_problem(answer, 400)["field"] == "q"
        assert serving.fleet.received == 0

    served(body)


def test_a_page_with_shards_missing_is_not_remembered_as_the_whole() -> None:
    """The same request, once the shard is there again, is complete."""

    async def body(serving: Served) -> None:
        request: dict[str, Any] = {"q": "a", "min_coverage": 0.5}
        partial = (await serving.client.post("/search", request)).json
        assert [each["shard"] for each in partial["coverage"]["missing"]] == [1]
        assert partial["total"]["relation"] == "gte"
        for leaf in serving.fleet.leaves:
            leaf.script = takes(WORK_S)
        whole = (await serving.client.post("/search", request)).json
        assert whole["coverage"]["complete"]
        assert whole["total"] == {"value": 100, "relation": "eq"}

    script = by_shard({1: fails("error")}, takes(WORK_S))
    served(body, Settings(budget=PLENTY, canary=False), script)


@pytest.mark.parametrize("number", [2**53 + 1, 2**63 - 1])
def test_an_id_of_many_digits_keeps_them(number: int) -> None:
    """In an error as in an answer: ids are text, whatever they look like."""

    async def body(serving: Served) -> None:
        answer = await serving.client.get(f"/documents/{quote(str(number))}")
        assert str(number) in is_problem(answer, 404)["detail"]

    served(body)
