"""The page at ``/``: files of ``root/ui``, sent as they are, under a strict policy.

No build step, and nothing from any other host: what the browser runs is what stands in the
folder. Hits come as JSON, and the page makes nodes of text of them, never HTML.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

MEDIA: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # asks each time, and is told that nothing has changed
}

FEATURES: Final = b'name="hedgerow-features" content=""'
"""The page learns here what the root can do: asking for a route that is not there would leave an
error in the console."""


class File(NamedTuple):
    """What is sent whole, as which type, and the tag that names it."""

    body: bytes
    media: str
    tag: str


class Page:
    """The files of the page, read once."""

    def __init__(self, others: Iterable[BaseRoute] = ()) -> None:
        """``others`` are the root's routes: the page is told of those without parameters."""
        folder = files("root").joinpath("ui")
        paths = [route.path[1:] for route in others if isinstance(route, Route)]
        features = " ".join(path for path in paths if path.isalpha())
        named = f'name="hedgerow-features" content="{features}"'
        self.files = {
            entry.name: whole_file(entry.name, entry.read_bytes().replace(FEATURES, named.encode()))
            for entry in folder.iterdir()
            if entry.name.rpartition(".")[2] in MEDIA
        }

    def routes(self) -> list[BaseRoute]:
        """Return the routes to be added to the root's."""
        return [
            Route("/", self.index, methods=["GET"]),
            Route("/ui/{name}", self.file, methods=["GET"]),
        ]

    async def index(self, request: Request) -> Response:
        """Answer ``GET /``."""
        return sent(self.files["index.html"], request)

    async def file(self, request: Request) -> Response:
        """Answer ``GET /ui/{name}``. Raises HTTPException."""
        found = self.files.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return sent(found, request)


def whole_file(name: str, body: bytes) -> File:
    """Return a file of that name, whose type is that of the name's end."""
    return File(body, MEDIA[name.rpartition(".")[2]], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def sent(file: File, request: Request) -> Response:
    """Return the file; 304 where the browser has it."""
    headers = {**HEADERS, "etag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media)
