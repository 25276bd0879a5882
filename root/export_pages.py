"""What an export is asked for, and the searches that it is made of: one a page.

A page is as large as memory allows and no larger: how many hits that is, is learned from the
page before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import orjson

from leaf.protocol import Query, TieBreaker
from leaf.selection import ID
from root.requests import TIMEOUT_MS_MAX, Combine, SearchRequest, checked, decoded
from root.selection import FilterRequest, SortRequest

FIRST_HITS: Final = 100
"""Of documents whose size nobody knows yet, a megabyte at 10 kB each."""

PAGE_HITS_MAX: Final = 1000
PAGE_BYTES: Final = 4 * 1024 * 1024
"""What an export holds in memory, roughly. A quarter of the largest frame of a leaf, which may
have to carry a whole page."""

PIECE_BYTES: Final = 64 * 1024
"""Lines go out in pieces: one a write would cost more than what is written."""

PAGE_MS: Final = 10_000.0
"""Nobody waits for a page of an export, and those who search go first."""


class ExportRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A search for everything that matches. Give ``q`` (words) or ``query`` (a tree), not both.

    ``timeout_ms`` bounds each page, not the whole. ``min_coverage`` is the share of documents
    that must have been searched for each.
    """

    q: str | None = None
    query: Query | None = None
    strict: bool = False
    combine: Combine = "sum"
    tie_breaker: TieBreaker = 0.0
    timeout_ms: Annotated[float, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)] = PAGE_MS
    min_coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    filter: FilterRequest = ()
    sort: SortRequest = (ID,)
    fields: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] | None = None
    highlight: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()


def export_from_json(body: bytes) -> SearchRequest:
    """Return the search for the first page of the export in a POST body. Raises BadRequest."""
    wanted = msgspec.structs.asdict(decoded(body, ExportRequest))
    return checked(SearchRequest(**wanted, k=FIRST_HITS, priority="batch"))


def lines_of(hits: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return hits as lines of JSON."""
    return [orjson.dumps(hit, option=orjson.OPT_APPEND_NEWLINE) for hit in hits]


def pieces(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield lines joined to pieces that are worth a write."""
    piece = bytearray()
    for line in lines:
        piece += line
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


def page_after(request: SearchRequest, cursor: str, hits: int, size: int) -> SearchRequest:
    """Return the search for the page after one that had so many hits, at least one, of so many
    bytes in all.
    """
    k = max(1, min(PAGE_HITS_MAX, PAGE_BYTES * hits // size))
    return msgspec.structs.replace(request, cursor=cursor, k=k)
