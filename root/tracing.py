"""Which trace a request belongs to: the header ``traceparent`` of W3C Trace Context, in and out.

``Traced`` wraps the root's application. A request that carries a valid header joins that trace;
any other begins one of its own, as the recommendation has it (https://www.w3.org/TR/trace-context/).
The answer has the header too, with the root's own span, so that whoever asked can find the query
in logs, in ``GET /slow`` and in the tracing system. What is done for the request finds its trace in
``current``; legs carry it to leaves only where the caller brought one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "traceparent"

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
SAMPLED: Final = 0x01

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<rest>-.*)?"
)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A request's place in a trace. Ids are lower-case hexadecimal; ``parent`` is the caller's
    span, or empty where the trace begins here.
    """

    trace_id: str
    span_id: str
    parent: str
    sampled: bool

    @property
    def header(self) -> str:
        """The header that passes this on."""
        return f"00-{self.trace_id}-{self.span_id}-{SAMPLED if self.sampled else 0:02x}"


def joined(header: str | None, random_bytes: Callable[[int], bytes]) -> TraceContext:
    """Return a new span in the trace of a header, or in a new trace where there is none.

    A header that cannot be read is as good as none: that is for the caller's tools to see, not a
    reason to refuse a search. ``random_bytes`` returns so many.
    """
    span_id = random_bytes(SPAN_ID_BYTES).hex()
    found = _TRACEPARENT.fullmatch(header or "")
    if found is None or not _is_valid(found):
        return TraceContext(random_bytes(TRACE_ID_BYTES).hex(), span_id, "", sampled=True)
    sampled = bool(int(found["flags"], 16) & SAMPLED)
    return TraceContext(found["trace"], span_id, found["span"], sampled)


def _is_valid(found: re.Match[str]) -> bool:
    """Whether ids are not all zero, and the version is one that can be read."""
    if found["version"] == "ff" or (found["version"] == "00" and found["rest"]):
        return False
    return found["trace"].strip("0") != "" and found["span"].strip("0") != ""


current: ContextVar[TraceContext | None] = ContextVar("trace", default=None)
"""The trace of the request that is being worked on."""


query_number: ContextVar[int | None] = ContextVar("query_number", default=None)
"""The root's number of the query that is being worked on."""


def known() -> dict[str, int | str]:
    """Return what a line of the log says of the request that is being worked on."""
    context, number = current.get(), query_number.get()
    told: dict[str, int | str] = {} if number is None else {"query": number}
    return told if context is None else told | {"trace_id": context.trace_id}


def outgoing() -> str:
    """Return what goes to leaves: the header, where the caller brought a trace; else nothing."""
    context = current.get()
    return context.header if context is not None and context.parent else ""


class Traced:
    """An application whose every HTTP request has a trace, and whose every answer says which."""

    def __init__(self, app: ASGIApp, random_bytes: Callable[[int], bytes]) -> None:
        self._app = app
        self._random_bytes = random_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the header added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = joined(Headers(scope=scope).get(HEADER), self._random_bytes)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = context.header
            await send(message)

        before = current.set(context)
        try:
            await self._app(scope, receive, answer)
        finally:
            current.reset(before)
