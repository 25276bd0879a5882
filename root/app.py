"""The root's HTTP face: its routes, and where the clock starts.

A client that goes away takes its query along. Whatever goes wrong is answered as
``application/problem+json`` (RFC 9457).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from leaf.pulse import Pulse
from root.answering import Answer, Answering
from root.asking import posted, refuse_parameters, while_connected
from root.config import Settings
from root.discovery import Fleet
from root.errors import UnknownCollection
from root.export import Exports
from root.multi_search import MultiSearch
from root.page import Page
from root.problems import PROBLEM, http_problem, problem_of, sent_json
from root.reference import Reference
from root.requests import (
    SearchRequest,
    search_from_json,
    search_from_query_string,
    suggest_from_query_string,
)
from root.search import Searches
from root.snapshot import collections, snapshot, topology
from root.telemetry import Telemetry, Unwatched
from root.tracing import Traced
from root.trouble import Trouble
from root.viewers import EVERY_S, Viewers

log = logging.getLogger(__name__)

NOT_READY_S: Final = 10.0
"""How often a root that waits for its leaves says what it waits for."""


class Root:
    """One root: a fleet, what was learned about it, and the routes."""

    def __init__(
        self,
        fleet: Fleet,
        settings: Settings,
        announce: Callable[[Fleet], None],
        pulse: Pulse,
        trouble: Trouble | None = None,
    ) -> None:
        """``announce`` is called once, when every shard has a live replica. With ``trouble`` the
        page has buttons for it.
        """
        self.fleet = fleet
        self.settings = settings
        self.searches = Searches(fleet, settings, asyncio.get_running_loop().time())
        counts = Telemetry if settings.watch else Unwatched
        self.telemetry = counts(fleet, self.searches, pulse)
        self.viewers = Viewers(self._snapshot)
        self.trouble = trouble
        live = self.searches.live if settings.watch else None
        self.answering = Answering(self.telemetry, live, settings.in_flight_max)
        self._announce = announce

    def app(self) -> Starlette:
        """Return the ASGI application."""
        exports = Exports(self.searches.search, self.telemetry)
        routes: list[BaseRoute] = [
            *self._searching("", exports),
            *self._searching("/collections/{collection}", exports),
            Route("/collections", self.collections, methods=["GET"]),
            Route("/searches", MultiSearch(self.answering, self._search).answer, methods=["POST"]),
            Route("/healthz", self.healthz, methods=["GET"]),
            Route("/readyz", self.readyz, methods=["GET"]),
            Route("/hedging", self.hedging, methods=["GET"]),
        ]
        if self.settings.watch:
            routes += [
                Route("/slow", self.slow, methods=["GET"]),
                Route("/metrics", self.metrics, methods=["GET"]),
                Route("/live", self.viewers.live, methods=["GET"]),
            ]
        if self.trouble is not None:
            routes.append(Route("/trouble", self.trouble.answer, methods=["POST"]))
        page = Page(routes)
        routes += page.routes()
        app = Starlette(
            routes=[*routes, *Reference(routes, page).routes()],
            exception_handlers={HTTPException: http_problem},
            middleware=[Middleware(Traced, os.urandom)],
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False
        return app

    def _searching(self, within: str, exports: Exports) -> list[BaseRoute]:
        """Return the routes that are about one collection: the first, or the one in the path."""
        return [
            Route(within + "/search", self.search, methods=["GET", "POST"]),
            Route(within + "/export", exports, methods=["POST"]),
            Route(within + "/suggest", self.suggest, methods=["GET"]),
            Route(within + "/documents/{id:path}", self.document, methods=["GET"]),
            Route(within + "/topology", self.topology, methods=["GET"]),
        ]

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(self.fleet.run()),
            asyncio.create_task(self._announce_when_ready()),
        ]
        if self.settings.watch:
            tasks += [
                asyncio.create_task(self.telemetry.keep_time()),
                asyncio.create_task(self._live()),
            ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self.trouble is not None:
                self.trouble.end()

    async def _announce_when_ready(self) -> None:
        while not self.fleet.ready.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.fleet.ready.wait(), NOT_READY_S)
                break
            log.warning("not ready yet: %s", self.fleet.lacking)
        self._announce(self.fleet)

    async def _live(self) -> None:
        """Look at the counters each second, and tell whoever watches."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(EVERY_S)
            self.searches.live.tick(self.searches.ledger, loop.time())
            self.viewers.tell()

    def _snapshot(self) -> dict[str, Any]:
        now = asyncio.get_running_loop().time()
        return snapshot(self.searches, self.answering.in_flight, now, self.trouble)

    # --- routes ---

    async def search(self, request: Request) -> Response:
        """Answer ``GET /search?q=...`` and ``POST /search``."""
        sent = await posted(request) if request.method == "POST" else None
        arrived_s = asyncio.get_running_loop().time()

        async def answer() -> dict[str, Any]:
            if sent is not None:
                refuse_parameters(request)
                wanted = search_from_json(sent())
            else:
                wanted = search_from_query_string(request.scope["query_string"])
            searching = self._search(wanted, arrived_s, _collection(request))
            return await while_connected(request, searching)

        return await self._answered("search", arrived_s, answer)

    async def _search(
        self, wanted: SearchRequest, arrived_s: float, collection: str | None
    ) -> dict[str, Any]:
        """Return the body of an answer, counted if a shard is missing."""
        body = await self.searches.search(wanted, arrived_s, collection)
        if not body["coverage"]["complete"]:
            self.telemetry.answered_in_part()
        return body

    async def document(self, request: Request) -> Response:
        """Answer ``GET /documents/{id}``."""
        arrived_s = asyncio.get_running_loop().time()

        async def answer() -> dict[str, Any]:
            refuse_parameters(request)
            document_id = request.path_params["id"]
            finding = self.searches.document(document_id, arrived_s, _collection(request))
            return await while_connected(request, finding)

        return await self._answered("document", arrived_s, answer)

    async def suggest(self, request: Request) -> Response:
        """Answer ``GET /suggest?prefix=...``."""
        arrived_s = asyncio.get_running_loop().time()

        async def answer() -> dict[str, Any]:
            wanted = suggest_from_query_string(request.scope["query_string"])
            suggesting = self.searches.suggest(wanted, arrived_s, _collection(request))
            return await while_connected(request, suggesting)

        return await self._answered("suggest", arrived_s, answer)

    async def topology(self, request: Request) -> Response:
        """Answer ``GET /topology``: leaves, generations, and who holds what."""
        try:
            return sent_json(topology(self.fleet, _collection(request)))
        except UnknownCollection as error:
            status, body, _ = problem_of(error)
            return sent_json(body, status, PROBLEM)

    async def collections(self, _: Request) -> Response:
        """Answer ``GET /collections``."""
        return sent_json({"collections": collections(self.fleet)})

    async def healthz(self, _: Request) -> Response:
        """Answer ``GET /healthz``: the process is alive."""
        return sent_json({"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        """Answer ``GET /readyz``: 200 when every shard has a live replica."""
        fleet = self.fleet
        if not fleet.in_use or fleet.uncovered:
            lacking = {"detail": fleet.lacking, "uncovered": fleet.uncovered}
            return sent_json({"ready": False, **lacking}, 503)
        return sent_json({"ready": True})

    async def hedging(self, _: Request) -> Response:
        """Answer ``GET /hedging``: the policy, and what others would have done."""
        return sent_json({"hedge": self.settings.hedge, **self.searches.rehearsal.report()})

    async def slow(self, _: Request) -> Response:
        """Answer ``GET /slow``: the slowest queries of each of the last minutes."""
        now = asyncio.get_running_loop().time()
        return sent_json({"minutes": self.searches.slow.listed(now)})

    async def metrics(self, _: Request) -> Response:
        """Answer ``GET /metrics`` for Prometheus."""
        return Response(generate_latest(self.telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    async def _answered(self, route: str, arrived_s: float, answer: Answer) -> Response:
        return (await self.answering.answered(route, arrived_s, answer)).response()


def _collection(request: Request) -> str | None:
    """Return the collection that a request names in its path, if it does."""
    name: str | None = request.path_params.get("collection")
    return name
