"""Errors as they are sent: ``application/problem+json`` (RFC 9457), all of one form."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from root.errors import CallerError, FleetError, Overloaded, Quarantined

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"


def problem_of(error: CallerError | FleetError) -> tuple[int, dict[str, Any], Mapping[str, str]]:
    """Return (status, body, headers) of an error."""
    body = members(error.status, error.title, error.detail)
    headers = {}
    if isinstance(error, Overloaded | Quarantined):
        headers["retry-after"] = str(error.retry_after_s)
    if isinstance(error, CallerError):
        return error.status, body | {"field": error.field}, headers
    return error.status, body | (error.partial or {}), headers


def members(status: int, title: str, detail: str) -> dict[str, Any]:
    """Return what every error has."""
    return {"type": "about:blank", "title": title, "status": status, "detail": detail}


async def http_problem(_: Request, error: Exception) -> Response:
    """Answer unknown paths and wrong methods in the same form."""
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    title = HTTPStatus(error.status_code).phrase
    body = members(error.status_code, title, error.detail)
    return Response(orjson.dumps(body), error.status_code, error.headers, PROBLEM)


def sent_json(body: Any, status: int = 200, media: str = JSON) -> Response:
    """Return an answer, or what is not an error although its status is."""
    return Response(msgspec.json.encode(body), status, media_type=media)
