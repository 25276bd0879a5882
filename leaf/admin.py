"""Switching injected trouble on and off while the leaf runs: for whoever has the token.

Without a configured token there is no such route. What is switched on is said at once to
every root, and in the log.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Any, Final

import msgspec
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from leaf.errors import BadSetting
from leaf.injection import InjectingWorkers
from leaf.interference import Interference
from leaf.plain import Problem, read_body
from leaf.plans import SeededPlan, profile, read
from leaf.service import Leaf

SCHEME: Final = "bearer"

NAME_CHARS_MAX: Final = 100
"""A body longer than this, or of several lines, is a plan and not the name of one."""


class Switch:
    """Puts plans in force on one leaf. Used on the event loop."""

    def __init__(self, leaf: Leaf, workers: InjectingWorkers, ordinal: int) -> None:
        self.leaf = leaf
        self.chosen: SeededPlan | None = None
        self._workers = workers
        self._ordinal = ordinal

    def turn_on(self, chosen: SeededPlan) -> None:
        """Put a plan in force, instead of any other; its time begins now."""
        self.chosen = chosen
        interference = Interference(
            chosen.plan,
            leaf=self._ordinal,
            seed=chosen.seed,
            began_s=self.leaf.clock(),
        )
        self._workers.interfere(interference)
        self.leaf.warn_of(chosen.notice)

    def turn_off(self) -> None:
        """End what is in force; what has arrived still meets what it was to meet."""
        self.chosen = None
        self._workers.interfere(None)
        self.leaf.warn_of("")


class InterferenceRoute:
    """``/interference``: GET what is in force, PUT a profile or a plan, DELETE it."""

    def __init__(self, switch: Switch, token: str, seed: int) -> None:
        """``seed`` is that of a PUT that names none."""
        self._switch = switch
        self._token = token.encode()
        self._seed = seed

    async def answer(self, request: Request) -> Response:
        """Answer one request, if it has the token. Raises HTTPException."""
        self._check(request.headers.get("authorization"))
        if request.method == "PUT":
            self._switch.turn_on(await self._read(request))
        elif request.method == "DELETE":
            self._switch.turn_off()
        return Response(orjson.dumps(self._described()), media_type="application/json")

    def _check(self, authorization: str | None) -> None:
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != SCHEME:
            headers = {"WWW-Authenticate": "Bearer"}
            raise HTTPException(HTTPStatus.UNAUTHORIZED, "the admin token is needed", headers)
        if not hmac.compare_digest(token.strip().encode(), self._token):
            raise HTTPException(HTTPStatus.FORBIDDEN, "this is not the admin token")

    async def _read(self, request: Request) -> SeededPlan:
        seed = request.query_params.get("seed", str(self._seed))
        try:
            text = (await read_body(request.receive)).decode().strip()
            if "\n" not in text and len(text) <= NAME_CHARS_MAX and not text.startswith("{"):
                return SeededPlan(text, profile(text), int(seed))
            return SeededPlan("of its own", read(text, "body"), int(seed))
        except Problem as problem:
            raise HTTPException(problem.status, problem.detail) from problem
        except BadSetting as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, str(error)) from error
        except UnicodeDecodeError as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "body: is no text in UTF-8") from error
        except ValueError as error:
            detail = f"seed must be a whole number, not {seed[:50]!r}"
            raise HTTPException(HTTPStatus.BAD_REQUEST, detail) from error

    def _described(self) -> dict[str, Any]:
        chosen = self._switch.chosen
        if chosen is None:
            return {"notice": self._switch.leaf.notice or None, "plan": None}
        return {
            "notice": self._switch.leaf.notice,
            "name": chosen.name,
            "seed": chosen.seed,
            "plan": msgspec.to_builtins(chosen.plan),
        }
