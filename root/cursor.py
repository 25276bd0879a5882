"""Cursors: where a list of hits was left, as opaque text that any root can go on from.

A cursor names its generation and what was asked, so that it cannot go on with anything else,
and a position. Sorted by fields, that is the last hit's place. By score it takes more: a page
is in the order of exact scores, of which shards know only near ones, and so the pages' ends
are not ends in the order that shards can be asked to go on from:

    shards' order    ──────────────────────────┬─────────────────────────▶
                      shown, but for `skipped` │ not shown, but for `ahead`
                                             after

With both lists of exceptions pages partition the hits, whatever scores turn out to be: there
is no repeat and no gap.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from leaf.protocol import Query
from leaf.selection import After, Selection
from root.errors import BadRequest
from root.merge import Candidate

DIGEST_BYTES: Final = 8
"""Enough to tell a cursor from garbage, and one query from another. It is no signature: what a
cursor can ask for, its bearer could ask for anyway."""


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a list was left, and how many hits were shown until there."""

    shown: int
    after: After | None = None
    skipped: tuple[Candidate, ...] = ()
    ahead: tuple[int, ...] = ()


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A position in the hits of one query on one generation."""

    generation: str
    asked: str
    position: Position


def fingerprint(query: Query, selection: Selection | None) -> str:
    """Return a few bytes that stand for what is looked for, and in which order."""
    of = (query, selection.filters, selection.sort) if selection else (query, (), ())
    return blake2b(msgspec.json.encode(of), digest_size=DIGEST_BYTES).hexdigest()


def written(cursor: Cursor) -> str:
    """Return a cursor as text for a URL."""
    body = msgspec.json.encode(cursor)
    digest = blake2b(body, digest_size=DIGEST_BYTES).digest()
    return urlsafe_b64encode(digest + body).decode().rstrip("=")


def read(text: str) -> Cursor:
    """Return the cursor that a text is. Raises BadRequest."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        digest, body = raw[:DIGEST_BYTES], raw[DIGEST_BYTES:]
        if digest == blake2b(body, digest_size=DIGEST_BYTES).digest():
            return msgspec.json.decode(body, type=Cursor)
    except (ValueError, RecursionError):
        pass
    raise BadRequest("cursor", "is none that an answer has given")


def candidates_at(position: Position, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return what may come next, of what shards have found beyond a position, in their order."""
    ahead = frozenset(position.ahead)
    fresh = [one for one in candidates if one.ordinal not in ahead]
    return sorted([*position.skipped, *fresh])


def continued(
    position: Position | None,
    considered: Sequence[Candidate],
    page: Collection[int],
    *,
    rounded: bool = False,
) -> Position:
    """Return the position after a page; ``page`` are the ordinals that were shown of what was
    considered, which is all that there is from the old position to the last of them.

    ``rounded`` for a first page in another order than the shards': nothing is known then but
    what was shown.
    """
    before = position or Position(0)
    shown = before.shown + len(page)
    if rounded:
        return Position(shown, ahead=tuple(sorted(page)))
    ends = [one for one in considered if one.ordinal in page]
    if before.after is not None:
        ends.append(Candidate(-_score(before.after), before.after.ordinal, 0))
    end = max(ends, key=_place)
    skipped = [one for one in considered if _place(one) < _place(end) and one.ordinal not in page]
    after = After((-end.negative_score,), end.ordinal)
    return Position(shown, after, tuple(skipped), before.ahead)


def _score(after: After) -> float:
    (score,) = after.values
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise BadRequest("cursor", "is none that an answer has given")
    return score


def _place(one: Candidate) -> tuple[float, int]:
    return one.negative_score, one.ordinal
