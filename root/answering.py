"""What comes of a request that asks leaves: it holds a place, is counted and timed, and whatever
goes wrong is translated.

Latency counts from the arrival of a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from root.answer import milliseconds
from root.errors import CallerError, FleetError, TooManyRequests
from root.live import Live
from root.problems import JSON, PROBLEM, members, problem_of
from root.search import RETRY_AFTER_S
from root.telemetry import Telemetry

log = logging.getLogger(__name__)

NO_HEADERS: Final[Mapping[str, str]] = {}
CLIENT_LEFT: Final = 499

Answer = Callable[[], Awaitable[dict[str, Any]]]


class Answered(NamedTuple):
    """What a request has come to: a body of JSON and the status it has."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]

    def response(self) -> Response:
        """Return it as it is sent."""
        media = JSON if self.status == 200 else PROBLEM
        return Response(orjson.dumps(self.body), self.status, self.headers, media)


class Answering:
    """The requests in work at one root. Owned by its loop."""

    def __init__(self, telemetry: Telemetry, live: Live | None, in_flight_max: int) -> None:
        """``live``, if any, hears of each search; ``in_flight_max`` requests may be in work."""
        self.in_flight = 0
        self._telemetry = telemetry
        self._live = live
        self._in_flight_max = in_flight_max

    async def answered(self, route: str, arrived_s: float, answer: Answer) -> Answered:
        """Run ``answer``; count, time and translate whatever comes of it."""
        telemetry = self._telemetry
        self.in_flight += 1
        telemetry.in_work(self.in_flight)
        status, headers = 200, NO_HEADERS
        try:
            self._refuse_too_many()
            body = await answer()
        except (CallerError, FleetError) as error:
            status, body, headers = problem_of(error)
            telemetry.rejected(route, error.reason)
        except ClientDisconnect:
            status = CLIENT_LEFT
            body = members(status, "Client left", "nobody waits for this answer")
        except asyncio.CancelledError:
            telemetry.ended(route, CLIENT_LEFT)
            raise
        except Exception:
            log.exception("a request to %s failed", route)
            status = 500
            body = members(500, "Internal error", "the root failed; its log says how")
        finally:
            self.in_flight -= 1
            telemetry.in_work(self.in_flight)
        took_s = asyncio.get_running_loop().time() - arrived_s
        if "took_ms" in body:
            body["took_ms"] = milliseconds(took_s)
        telemetry.ended(route, status)
        telemetry.took(route, took_s)
        if self._live is not None and route == "search" and not 400 <= status < 500:
            self._live.answered(took_s)
        return Answered(status, body, headers)

    def _refuse_too_many(self) -> None:
        most = self._in_flight_max
        if self.in_flight > most:
            raise TooManyRequests(f"{most} requests are in work already", RETRY_AFTER_S)
