"""Cursors come back as they were, and positions never lose or repeat a hit."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf.protocol import All, Word
from leaf.selection import After, Present, Selection, SortKey, TermsCount
from root.cursor import Cursor, Position, candidates_at, continued, fingerprint, read, written
from root.errors import BadRequest
from root.merge import Candidate

values = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text()
positions = st.builds(
    Position,
    st.integers(0, 2**53),
    st.none() | st.builds(After, st.lists(values, max_size=3).map(tuple), st.integers(0, 2**53)),
    st.lists(
        st.builds(Candidate, st.floats(-50, 0), st.integers(0, 99), st.integers(0, 9)), max_size=3
    ).map(tuple),
    st.lists(st.integers(0, 99), max_size=3).map(tuple),
)


@given(st.builds(Cursor, st.text(max_size=30), st.text(max_size=16), positions))
def test_a_cursor_comes_back_as_it_was(cursor: Cursor) -> None:
    """Through text that a URL can hold, without losing a digit."""
    text = written(cursor)
    assert read(text) == msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor)
    assert text.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("text", ["", "A", "AAAA", "\ud800", "é", "%%%%", "A" * 5000])
def test_garbage_is_refused(text: str) -> None:
    """By the name of the parameter."""
    with pytest.raises(BadRequest, match="cursor: is none that an answer has given"):
        read(text)


def test_a_changed_cursor_is_refused() -> None:
    """Whichever character it is."""
    text = written(Cursor("g", "q", Position(3, After((1.5,), 7))))
    rng = Random(1)
    for _ in range(100):
        at = rng.randrange(len(text) - 1)
        other = rng.choice("abcXYZ012")
        if other != text[at]:
            with pytest.raises(BadRequest):
                read(text[:at] + other + text[at + 1 :])


def test_a_fingerprint_is_of_what_decides_the_order() -> None:
    """Facets may change from page to page; words, filters and keys may not."""
    one = Selection((Present("n"),), (SortKey("n"),))
    same = msgspec.structs.replace(one, facets=(TermsCount("n"),))
    assert fingerprint(All(), one) == fingerprint(All(), same)
    assert fingerprint(All(), None) == fingerprint(All(), Selection())
    others = [
        fingerprint(Word("a"), one),
        fingerprint(All(), msgspec.structs.replace(one, filters=())),
        fingerprint(All(), msgspec.structs.replace(one, sort=())),
        fingerprint(All(), one),
    ]
    assert len(set(others)) == len(others)


def in_order(scores: dict[int, float], after: After | None) -> list[Candidate]:
    """What a shard finds beyond a place, in its own order."""
    found = sorted(Candidate(-score, ordinal, 0) for ordinal, score in scores.items())
    if after is None:
        return found
    (score,) = after.values
    assert isinstance(score, float)
    return [c for c in found if (c.negative_score, c.ordinal) > (-score, after.ordinal)]


@given(
    st.dictionaries(st.integers(0, 60), st.sampled_from([1.0, 1.01, 1.02, 2.0, 3.0]), max_size=40),
    st.integers(1, 6),
    st.integers(0, 8),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_pages_partition_the_hits_whatever_the_exact_scores(
    scores: dict[int, float], k: int, margin: int, rounded: bool, seed: int
) -> None:
    """Each page is any ``k`` of what was considered; together they are everything, once."""
    rng = Random(seed)
    seen: list[int] = []
    position: Position | None = None
    while len(seen) < len(scores):
        where = position or Position(0)
        depth = k + margin + len(where.ahead)
        considered = candidates_at(where, in_order(scores, where.after)[:depth])
        assert considered
        page = rng.sample([c.ordinal for c in considered], min(k, len(considered)))
        first = rounded and position is None
        position = continued(position, considered, frozenset(page), rounded=first)
        seen += page
        assert position.shown == len(seen)
    assert sorted(seen) == sorted(scores)


def test_a_position_of_another_kind_of_list_is_refused() -> None:
    """A list by score goes on from a score."""
    for wrong in ("a", True, None):
        position: Any = Position(1, After((wrong,), 7))
        with pytest.raises(BadRequest):
            continued(position, [Candidate(-1.0, 8, 0)], {8})
