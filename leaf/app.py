"""The leaf's faces over HTTP, for people and for monitoring; for roots see `leaf.wire`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any

import msgspec
import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leaf.admin import InterferenceRoute
from leaf.plain import TITLES, Problem, SearchRoute
from leaf.service import Leaf
from leaf.telemetry import registry_of

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


def create_app(
    leaf: Leaf, lifespan: Lifespan | None = None, interference: InterferenceRoute | None = None
) -> Starlette:
    """Return the application that serves one leaf over HTTP.

    ``interference``: how to switch injected trouble, where that is allowed.
    """
    registry = registry_of(leaf.ledger, leaf)

    async def healthz(_: Request) -> Response:
        alive = {"leaf": leaf.name, "alive": True, "notice": leaf.notice or None}
        return _json(HTTPStatus.OK, alive)

    async def readyz(_: Request) -> Response:
        ready = readiness(leaf)
        status = HTTPStatus.OK if ready["ready"] else HTTPStatus.SERVICE_UNAVAILABLE
        return _json(status, ready)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    async def load(_: Request) -> Response:
        return Response(msgspec.json.encode(leaf.load()), media_type="application/json")

    routes = [
        Route("/shards/{shard}/search", SearchRoute(leaf), methods=["POST"]),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/load", load),
    ]
    if leaf.watched:
        routes.append(Route("/metrics", metrics))
    if interference is not None:
        methods = ["GET", "PUT", "DELETE"]
        routes.append(Route("/interference", interference.answer, methods=methods))
    return Starlette(
        routes=routes,
        exception_handlers={HTTPException: _problem},
        lifespan=lifespan,
    )


def readiness(leaf: Leaf) -> dict[str, Any]:
    """Return whether a leaf can answer of all its collections, and for what: shards by generation,
    the refused too.
    """
    return {
        "leaf": leaf.name,
        "ready": all(leaf.holdings.newest(name) is not None for name in leaf.collections),
        "notice": leaf.notice or None,
        "generations": {
            held.card.generation: {
                "collection": held.collection,
                "shards": sorted(held.shards),
                "refused": {str(shard): why for shard, why in sorted(held.refused.items())},
            }
            for held in leaf.holdings
        },
    }


def _json(status: HTTPStatus, document: dict[str, Any]) -> Response:
    return Response(orjson.dumps(document), status, media_type="application/json")


async def _problem(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method in the form of all other errors."""
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    status = error.status_code if error.status_code in TITLES else HTTPStatus.BAD_REQUEST
    problem = Problem(status, f"{request.method} {request.url.path[:200]}: {error.detail}")
    return Response(
        problem.body(),
        problem.status,
        headers=dict(error.headers or {}),
        media_type="application/problem+json",
    )
