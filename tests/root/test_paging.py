"""How deep shards are asked, what of it makes the page, and where the next page begins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from index_data.manifest import Field, GenerationCard
from leaf.protocol import All, Hits, Query, Word
from leaf.selection import After, Selection, SortKey, TermsCount
from root import paging
from root.cursor import Position, read
from root.merge import Candidate, Finalists, Unreadable
from root.paging import (
    DEPTH_MARGIN,
    Window,
    at_position,
    depth_of,
    next_cursor,
    page_of,
    window_of,
)
from root.pursuit import Pursuit
from root.requests import SearchRequest
from root.topology import View

CARD = GenerationCard("20260101-000000-aaaa", (10, 20), (Field("n", "integer"),), 0.01)
SORTED = Selection(sort=(SortKey("n"),))


def pursuit_of(selection: Selection | None = None, **members: Any) -> Pursuit:
    """A request on its way over two shards."""
    pursuit = Pursuit(View(CARD, ((), ())), 0.0, 1.0, SearchRequest(q="a", **members))
    pursuit.selection = selection
    return pursuit


def hits(ranked: Any, total: int, facets: Any = ()) -> Hits:
    """A shard's answer."""
    raw, counted = (msgspec.Raw(msgspec.json.encode(part)) for part in (ranked, facets))
    return Hits(1, 0, 0, total, 0.0, raw, counted)


@pytest.mark.parametrize(
    ("query", "selection", "exact"),
    [(All(), None, True), (Word("a"), SORTED, True), (Word("a"), None, False)],
)
def test_only_scores_by_terms_have_to_be_looked_at_again(
    query: Query, selection: Selection | None, exact: bool
) -> None:
    """What is sorted by fields, or has no terms, is settled by phase one."""
    pursuit = pursuit_of(selection, k=5)
    window = window_of(pursuit, query)
    assert (window.slack == 0.0) is exact
    depth = depth_of(pursuit, window)
    assert depth == 5 if exact else depth >= 5 + DEPTH_MARGIN


def test_what_was_shown_ahead_is_asked_for_once_more() -> None:
    """Else it would take the place of what was not."""
    pursuit = pursuit_of(k=5)
    pursuit.position = Position(3, ahead=(1, 2, 3))
    assert depth_of(pursuit, Window(0, 5)) == 8


def test_shards_are_asked_from_the_position_on() -> None:
    """With a selection or without; a position that has no place yet changes nothing."""
    after = After((2.0,), 7)
    for selection in (None, Selection(facets=(TermsCount("n"),))):
        pursuit = pursuit_of(selection)
        assert at_position(pursuit) == selection
        pursuit.position = Position(0)
        assert at_position(pursuit) == selection
        pursuit.position = Position(1, after)
        sent = at_position(pursuit)
        assert sent is not None
        assert sent.after == after
        assert sent.facets == (selection.facets if selection else ())


def test_a_sorted_page_goes_on_after_its_last_row() -> None:
    """And ends where all has been shown."""
    pursuit = pursuit_of(SORTED, k=2)
    replies = [(0, hits([[[1], [3]], [4, 5]], 2)), (1, hits([[[2], [None]], [6, 7]], 2))]
    found = page_of(pursuit, replies, Window(0, 2))
    assert [(c.ordinal, c.shard) for c in found.candidates] == [(4, 0), (6, 1)]
    assert (found.total, found.settled) == (4, True)
    text = next_cursor(pursuit, found, [4, 6])
    assert text is not None
    cursor = read(text)
    assert cursor.generation == CARD.generation
    assert cursor.position == Position(2, After((2,), 6))
    pursuit.position = cursor.position
    assert next_cursor(pursuit, page_of(pursuit, replies, Window(0, 2)), [5, 7]) is None
    assert page_of(pursuit, [(0, hits([[], []], 0))], Window(0, 2)).candidates == []
    assert pursuit.last_row is None


def test_nobody_knows_where_hits_end_while_a_shard_is_missing() -> None:
    """There is a next page then, and after an empty one there is none."""
    pursuit = pursuit_of(SORTED, k=2)
    pursuit.missing[1] = "timeout"
    found = page_of(pursuit, [(0, hits([[[1], [3]], [4, 5]], 2))], Window(0, 2))
    assert found.total == 2
    assert next_cursor(pursuit, found, [4, 5]) is not None
    nothing = page_of(pursuit, [(0, hits([[], []], 2))], Window(0, 2))
    assert next_cursor(pursuit, nothing, []) is None


def test_a_page_by_score_goes_on_with_what_was_left_out() -> None:
    """Facets are counted on the way."""
    pursuit = pursuit_of(Selection(facets=(TermsCount("n"),)), k=1)
    reply = hits([[2.0, 1.99], [4, 5]], 2, [[[1], [2], 0]])
    found = page_of(pursuit, [(0, reply)], Window(0, 1, 0.1))
    assert len(found.candidates) == 2
    assert pursuit.facets
    text = next_cursor(pursuit, found, [5])
    assert text is not None
    position = read(text).position
    assert position == Position(1, After((1.99,), 5), (Candidate(-2.0, 4, 0),))
    pursuit.position = position
    rest = hits([[1.0], [9]], 3, [[[1], [2], 0]])
    assert page_of(pursuit, [(0, rest)], Window(0, 1, 0.1)).candidates == [Candidate(-2.0, 4, 0)]


def test_there_is_no_cursor_at_an_offset_or_after_nothing() -> None:
    """An offset says itself where to go on."""
    found = Finalists([Candidate(-1.0, 1, 0)], 0, 9)
    assert next_cursor(pursuit_of(offset=1), found, [1]) is None
    assert next_cursor(pursuit_of(), found, []) is None


def test_a_shard_that_cannot_be_read_is_named() -> None:
    """On a page with a cursor as on the first."""
    pursuit = pursuit_of()
    pursuit.position = Position(1, After((2.0,), 7))
    with pytest.raises(Unreadable, match="shard 3"):
        page_of(pursuit, [(3, hits("no hits", 1))], Window(0, 1))
    assert paging.DEPTH_SHARE
