"""``POST /searches``: several searches in one request, run at once and answered in order.

Each has its own deadline and its own end: one that fails says so in its place and hurts no other.
Each holds a place among the requests in work, and the whole holds one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from root.answering import Answered, Answering
from root.asking import posted, refuse_parameters, while_connected
from root.bodies import Problem
from root.requests import (
    SEARCHES_BYTES_MAX,
    SearchRequest,
    one_of_several_from_json,
    searches_from_json,
)

Search = Callable[[SearchRequest, float, str | None], Awaitable[dict[str, Any]]]


class MultiSearch:
    """The multi-searches of one root. Owned by its loop."""

    def __init__(self, answering: Answering, search: Search) -> None:
        """``search`` is given a request, the loop's time and a collection, if one is named, and
        returns an answer's body.
        """
        self._answering = answering
        self._search = search

    async def answer(self, request: Request) -> Response:
        """Answer ``POST /searches``."""
        sent = await posted(request, SEARCHES_BYTES_MAX)
        arrived_s = asyncio.get_running_loop().time()

        async def answer() -> dict[str, Any]:
            refuse_parameters(request)
            searches = [self._one(each, arrived_s) for each in searches_from_json(sent())]
            answered = await while_connected(request, asyncio.gather(*searches))
            return {"answers": [in_its_place(each) for each in answered]}

        return (await self._answering.answered("searches", arrived_s, answer)).response()

    async def _one(self, sent: bytes, arrived_s: float) -> Answered:
        return await self._answering.answered(
            "search", arrived_s, partial(self._searched, sent, arrived_s)
        )

    async def _searched(self, sent: bytes, arrived_s: float) -> dict[str, Any]:
        wanted = one_of_several_from_json(sent)
        return await self._search(wanted, arrived_s, wanted.collection)


def in_its_place(answered: Answered) -> dict[str, Any]:
    """Return what stands in the place of one search: its answer, or what went wrong with it."""
    status, body, headers = answered
    if status == 200:
        return body
    error = {name: body[name] for name in Problem.__struct_fields__ if name in body}
    placed: dict[str, Any] = {"error": error, "status": status}
    if "retry-after" in headers:
        placed["retry_after_s"] = int(headers["retry-after"])
    if "hits" in body:
        placed["partial"] = {name: body[name] for name in body if name not in error}
    return placed
