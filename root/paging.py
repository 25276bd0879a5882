"""From what shards have found to one page, and where the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

import msgspec

from leaf.protocol import Hits, Query
from leaf.selection import After, Selection, SortedRow
from root.cursor import Cursor, Position, candidates_at, continued, written
from root.facets import counted
from root.merge import (
    FINALISTS_MAX,
    PATTERN_FINALISTS_MAX,
    ROUNDING,
    Candidate,
    Finalists,
    Unreadable,
    chosen,
    finalists,
)
from root.ordering import sorted_rows
from root.pursuit import Pursuit
from root.query import PATTERNS, cost_class, is_exact

DEPTH_MARGIN: Final = 4
DEPTH_SHARE: Final = 10.0
"""A shard returns this many more than could be on the page, and a share that grows with the
slack: near-ties within one shard may change places when they get their exact scores."""


class Window(NamedTuple):
    """``k`` hits after ``offset``. Scores of phase one are within ``slack`` of the final ones, 0
    where its order is final; at most ``most`` candidates get theirs.
    """

    offset: int
    k: int
    slack: float = 0.0
    most: int = FINALISTS_MAX


def window_of(pursuit: Pursuit, query: Query) -> Window:
    """Return the part of all hits that a request asks for."""
    slack = 0.0
    if not (is_exact(query) or _is_sorted(pursuit)):
        slack = 2.0 * pursuit.view.card.length_deviation + ROUNDING
    most = PATTERN_FINALISTS_MAX if cost_class(query) == PATTERNS else FINALISTS_MAX
    return Window(pursuit.request.offset, pursuit.request.k, slack, most)


def at_position(pursuit: Pursuit) -> Selection | None:
    """Return the selection that shards are sent: the request's, from its cursor's position on."""
    if pursuit.position is None or pursuit.position.after is None:
        return pursuit.selection
    selection = pursuit.selection or Selection()
    return msgspec.structs.replace(selection, after=pursuit.position.after)


def depth_of(pursuit: Pursuit, window: Window) -> int:
    """Return how many hits every shard is asked for."""
    depth, slack = window.offset + window.k, window.slack
    depth += ceil(DEPTH_MARGIN + depth * min(1.0, DEPTH_SHARE * slack)) if slack else 0
    return depth + (len(pursuit.position.ahead) if pursuit.position is not None else 0)


def page_of(pursuit: Pursuit, replies: Sequence[tuple[int, Hits]], window: Window) -> Finalists:
    """Return the finalists, and leave what was counted with the pursuit. Raises Unreadable."""
    selection, position = pursuit.selection, pursuit.position
    if selection is not None:
        pursuit.facets = counted(replies, selection.facets)
    if selection is not None and selection.sort:
        total = sum(hits.total for _, hits in replies)
        rows = sorted_rows(replies, selection.sort)[window.offset : window.offset + window.k]
        pursuit.last_row = rows[-1] if rows else None
        page = [Candidate(0.0, row.ordinal, row.shard) for row in rows]
        return Finalists(page, 0, total, settled=True)
    if position is None:
        return finalists(replies, *window)
    found = [Candidate(-s, o, shard) for shard, hits in replies for s, o in _read(shard, hits)]
    total = sum(hits.total for _, hits in replies)
    return chosen(candidates_at(position, found), window.k, window.slack, total, window.most)


def next_cursor(pursuit: Pursuit, found: Finalists, page: Sequence[int]) -> str | None:
    """Return the cursor of what comes after a page of these ordinals, None where nothing does,
    or where the page is at an offset. With a shard missing, nobody knows how much there is: the
    next page may turn out to be empty then.
    """
    if pursuit.request.offset or not page:
        return None
    position = _after(pursuit, found, page)
    if position.shown >= found.total and not pursuit.missing:
        return None
    return written(Cursor(pursuit.view.card.generation, pursuit.asked, position))


def _after(pursuit: Pursuit, found: Finalists, page: Sequence[int]) -> Position:
    row: SortedRow | None = pursuit.last_row
    if row is not None:
        shown = pursuit.position.shown if pursuit.position is not None else 0
        return Position(shown + len(page), After(tuple(row.values), row.ordinal))
    return continued(pursuit.position, found.candidates, frozenset(page), rounded=found.rounded)


def _is_sorted(pursuit: Pursuit) -> bool:
    return pursuit.selection is not None and bool(pursuit.selection.sort)


def _read(shard: int, hits: Hits) -> list[tuple[float, int]]:
    try:
        scores, ordinals = hits.read()
    except ValueError as error:
        raise Unreadable(shard, str(error)) from None
    return list(zip(scores, ordinals, strict=True))
