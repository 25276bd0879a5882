"""The API's document at ``/openapi.json``, and the page that shows it at ``/docs``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from root.openapi import document
from root.page import Page, sent, whole_file

_CONVERTOR: Final = re.compile(r":\w+\}")


class Reference:
    """The document of some routes and of its own, made once."""

    def __init__(self, others: Iterable[BaseRoute], page: Page) -> None:
        """``others`` are all other routes of the root."""
        self._page = page
        described = document(frozenset(served([*others, *self.routes()])), version("hedgerow"))
        self._document = whole_file("openapi.json", msgspec.json.encode(described))

    def routes(self) -> list[BaseRoute]:
        """Return the routes to be added to the root's."""
        return [
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/docs", self.docs, methods=["GET"]),
        ]

    async def openapi(self, request: Request) -> Response:
        """Answer ``GET /openapi.json``."""
        return sent(self._document, request)

    async def docs(self, request: Request) -> Response:
        """Answer ``GET /docs``."""
        return sent(self._page.files["docs.html"], request)


def served(routes: Iterable[BaseRoute]) -> Iterable[tuple[str, str]]:
    """Return method and path of each route, as the document writes them."""
    for route in routes:
        if isinstance(route, Route):
            path = _CONVERTOR.sub("}", route.path)
            yield from ((method.lower(), path) for method in (route.methods or set()) - {"HEAD"})
