"""From the shards' answers to one page, ranked as one index would have ranked them.

Phase one scores use global term frequencies but each shard's own average field length, so a
score is right to within a factor of 1 +- ``slack / 2`` (the manifest bounds it). Whoever *may* be
on the page is a finalist; phase two gives the finalists their exact scores, and those decide:

    certain   |  finalists                     |  out
    ----------+---------------+----------------+------------> rank
              offset                offset + k
    above any doubt            within slack of the page's first or last score

The order is total: score descending, then ordinal (that is, document id) ascending. So the
same query gives the same page whichever replicas answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

ROUNDING = 2e-6
"""Scores are summed in 32-bit floats by the leaves, in an order that may differ from document
to document: equal scores may differ by a few units in the seventh digit."""


class ShardHits(Protocol):
    """What merging needs of a shard's answer: best first, ties lowest ordinal first."""

    total: int
    scores: list[float]
    ordinals: list[int]


class Candidate(NamedTuple):
    """A document that may be on the page. Sorts in the order of results."""

    negative_score: float
    ordinal: int
    shard: int


@dataclass(frozen=True, slots=True)
class Finalists:
    """``candidates`` in phase-one order; ``skip`` of them, in final order, precede the page."""

    candidates: list[Candidate]
    skip: int
    total: int

    def by_shard(self) -> dict[int, list[int]]:
        """Return the ordinals to fetch from each shard."""
        wanted: dict[int, list[int]] = {}
        for candidate in self.candidates:
            wanted.setdefault(candidate.shard, []).append(candidate.ordinal)
        return wanted


def finalists(
    replies: Sequence[tuple[int, ShardHits]], offset: int, k: int, slack: float
) -> Finalists:
    """Return the candidates for results ``offset`` to ``offset + k``.

    Every score must be within ``slack / 2``, relatively, of the exact one, so that two whose
    ratio is below ``1 - slack`` never change places. With ``slack`` 0 scores are exact, and
    there are never more than ``k`` finalists.
    """
    total = 0
    scores: list[float] = []
    for _, hits in replies:
        total += hits.total
        scores += hits.scores
    if offset >= len(scores):
        return Finalists([], 0, total)
    scores.sort(reverse=True)
    last = scores[min(offset + k, len(scores)) - 1]
    lower = last * (1.0 - slack)
    candidates = [
        candidate
        for shard, hits in replies
        if hits.scores and hits.scores[0] >= lower
        for candidate in _at_least(lower, shard, hits)
    ]
    candidates.sort()
    if slack == 0.0:
        return Finalists(candidates[offset : offset + k], 0, total)
    certain = _surely_before(candidates, offset, slack)
    return Finalists(candidates[certain:], offset - certain, total)


def _at_least(lower: float, shard: int, hits: ShardHits) -> list[Candidate]:
    return [
        Candidate(-score, ordinal, shard)
        for score, ordinal in zip(hits.scores, hits.ordinals, strict=True)
        if score >= lower
    ]


def _surely_before(candidates: list[Candidate], offset: int, slack: float) -> int:
    """Count the candidates whose final rank is below ``offset`` beyond doubt."""
    if offset == 0 or slack >= 1.0:
        return 0
    upper = -candidates[offset].negative_score / (1.0 - slack)
    return bisect_left(candidates, -upper, key=lambda c: c.negative_score)
