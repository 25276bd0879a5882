"""A client of the root's JSON API, as a benchmark needs it: what came back, and its fate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import aiohttp
import msgspec
import orjson

from bench.fleet import FleetError
from bench.recorder import Fate

CLIENT_TIMEOUT_S: Final = 30.0
"""Past this a request is lost: the root promises an answer long before."""

SAMPLE_MAX: Final = 10_000
NOTHING_SELECTED: Final[Mapping[str, Any]] = {}

PAGE: Final = 1000
"""How many texts are read to make queries of, and at a time: what the root allows."""


class Hit(msgspec.Struct, frozen=True):
    """One line of an answer."""

    id: str | int
    score: float


class Answer(msgspec.Struct, frozen=True):
    """What the root said. ``hits`` and ``total`` are empty and -1 where it gave no answer."""

    fate: Fate
    hits: tuple[Hit, ...] = ()
    total: int = -1
    detail: str = ""
    facets: dict[str, Any] = {}
    next: str | None = None
    """The cursor of what comes after; None where nothing does."""

    @property
    def ids(self) -> tuple[str | int, ...]:
        """The ids of the hits, best first."""
        return tuple(hit.id for hit in self.hits)


class Client:
    """Asks one root; made by ``connected``."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def search(
        self,
        q: str,
        k: int = 10,
        tie_breaker: float | None = None,
        selection: Mapping[str, Any] = NOTHING_SELECTED,
    ) -> Answer:
        """Ask for the best ``k``; a broken connection is an answer with fate ``error``.

        With a tie breaker the best field of a word counts, else the sum of its fields.
        ``selection``: filters and facets, as the request has them.
        """
        body: dict[str, Any] = {"q": q, "k": k, "fields": [], "highlight": [], **selection}
        if tie_breaker is not None:
            body |= {"combine": "best", "tie_breaker": tie_breaker}
        return await self.ask(body)

    async def ask(self, body: Mapping[str, Any]) -> Answer:
        """Send a request; a broken connection is an answer with fate ``error``."""
        try:
            async with self._session.post("/search", json=body) as response:
                return read_answer(response.status, await response.read())
        except TimeoutError as error:
            return Answer("timeout", detail=repr(error))
        except aiohttp.ClientError as error:
            return Answer("error", detail=repr(error))

    async def phases(
        self, q: str, selection: Mapping[str, Any] = NOTHING_SELECTED
    ) -> list[dict[str, Any]]:
        """Return the trace of a page as people ask for it, all fields and highlights included;
        nothing where there was no answer.
        """
        body = {"q": q, "trace": True, **selection}
        async with self._session.post("/search", json=body) as response:
            answer = orjson.loads(await response.read())
        phases: list[dict[str, Any]] = answer.get("trace", [])
        return phases

    async def suggestions(self, begun: str) -> list[tuple[str, int]]:
        """Return the ways in which a text may go on, and how many documents have the last word."""
        async with self._session.get("/suggest", params={"prefix": begun}) as response:
            answer = orjson.loads(await response.read())
        if response.status != 200:
            raise FleetError(f"the root suggests nothing for {begun!r}: {answer}")
        return [(one["text"], one["documents"]) for one in answer["suggestions"]]

    async def texts(self, field: str) -> list[str]:
        """Return a text field of the first documents by id, SAMPLE_MAX at most."""
        found: list[str] = []
        for offset in range(0, SAMPLE_MAX, PAGE):
            body = {"query": {"type": "all"}, "k": PAGE, "offset": offset, "fields": [field]}
            async with self._session.post("/search", json=body) as response:
                answer = orjson.loads(await response.read())
            if response.status != 200:
                raise FleetError(f"the root gives no texts: {answer}")
            found += [str(hit["fields"].get(field, "")) for hit in answer["hits"]]
            if len(answer["hits"]) < PAGE:
                break
        return found

    async def get_json(self, path: str) -> Any:
        """Return the JSON at a path of the root."""
        async with self._session.get(path) as response:
            return orjson.loads(await response.read())

    async def get_text(self, path: str) -> str:
        """Return the text at a path of the root."""
        async with self._session.get(path) as response:
            return await response.text()


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    """A client whose number of connections is not bounded: an open run must not queue here."""
    timeout = aiohttp.ClientTimeout(total=CLIENT_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:
        yield Client(session)
    await asyncio.sleep(0)  # aiohttp closes its sockets one tick later


def read_answer(status: int, body: bytes) -> Answer:
    """What a status and a body mean."""
    match status:
        case 200:
            return answer_of(orjson.loads(body))
        case 429:
            return Answer("refused", detail=_text(body))
        case 504:
            return Answer("timeout", detail=_text(body))
        case _:
            return Answer("error", detail=f"{status} {_text(body)}")


def answer_of(body: Mapping[str, Any]) -> Answer:
    """What a body of status 200 means."""
    hits = tuple(Hit(hit["id"], hit["score"]) for hit in body["hits"])
    complete = body["coverage"]["complete"]
    missing = "" if complete else str(body["coverage"]["missing"])
    fate: Fate = "complete" if complete else "partial"
    facets, cursor = body.get("facets", {}), body.get("next")
    return Answer(fate, hits, body["total"]["value"], missing, facets, cursor)


def _text(body: bytes) -> str:
    return body[:500].decode(errors="replace")
