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

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol

ROUNDING = 2e-6
"""Scores are summed in 32-bit floats by the leaves, in an order that may differ from document
to document: equal scores may differ by a few units in the seventh digit."""


FINALISTS_MAX = 1_000
"""Most documents that are scored again besides the page. Where more than that many are so near
to the page (a word that stands once in each of a thousand titles of one length), phase one
settles the order: the same on every replica and for every page, but, where shards differ in
their average lengths, not quite the single index's."""

PATTERN_FINALISTS_MAX = 100
"""The same for a query that looks up any number of terms: to score a document again costs a leaf
as much as to search all of the shard."""

SIGNIFICANT_DIGITS = 5
"""What two equal scores agree in whatever ROUNDING did to them, but for one in fifty."""


class ShardHits(Protocol):
    """What merging needs of a shard's answer."""

    @property
    def total(self) -> int:
        """How many documents match."""
        ...

    @property
    def best(self) -> float:
        """The first score; 0 without hits."""
        ...

    def read(self) -> tuple[list[float], list[int]]:
        """Return scores and ordinals, best first, ties lowest ordinal first.

        Raises ValueError where they cannot be read.
        """
        ...


class Unreadable(Exception):
    """A shard's hits cannot be read: its answer is worth nothing."""

    def __init__(self, shard: int, why: str) -> None:
        """``why`` is what was wrong with it."""
        super().__init__(f"shard {shard} answered with {why}")
        self.shard = shard


class Candidate(NamedTuple):
    """A document that may be on the page. Sorts in the order of results."""

    negative_score: float
    ordinal: int
    shard: int


@dataclass(frozen=True, slots=True)
class Finalists:
    """``candidates`` in phase-one order; ``skip`` of them, in final order, precede the page.

    ``settled`` when phase-one order is final: then the candidates are the page. ``rounded``
    when that is the order of rounded scores.
    """

    candidates: list[Candidate]
    skip: int
    total: int
    settled: bool = False
    rounded: bool = False

    def by_shard(self) -> dict[int, list[int]]:
        """Return the ordinals to fetch from each shard."""
        wanted: dict[int, list[int]] = {}
        for candidate in self.candidates:
            wanted.setdefault(candidate.shard, []).append(candidate.ordinal)
        return wanted


def finalists(
    replies: Sequence[tuple[int, ShardHits]],
    offset: int,
    k: int,
    slack: float,
    finalists_max: int = FINALISTS_MAX,
) -> Finalists:
    """Return the candidates for results ``offset`` to ``offset + k``.

    Every score must be within ``slack / 2``, relatively, of the exact one, so that two whose
    ratio is below ``1 - slack`` never change places. With ``slack`` 0 scores are exact, and
    there are never more than ``k`` finalists. Of more than ``k + finalists_max`` that may be on
    the page, none is: their order is settled here.
    """
    total = sum(hits.total for _, hits in replies)
    if offset >= total:
        return Finalists([], 0, total)
    found = [(shard, hits) for shard, hits in replies if hits.total]
    read, bound = _worth_reading(found, offset + k, slack)
    candidates = [
        Candidate(-score, ordinal, shard)
        for shard, scores, ordinals in read
        for score, ordinal in zip(scores, ordinals, strict=True)
        if score >= bound
    ]
    candidates.sort()
    if slack == 0.0 or not candidates:
        return Finalists(candidates[offset : offset + k], 0, total, settled=True)
    last = -candidates[min(offset + k, len(candidates)) - 1].negative_score
    until = bisect_right(candidates, -last * (1.0 - slack), key=_negative_score)
    certain = _surely_before(candidates, offset, slack)
    if until - certain > k + finalists_max:
        candidates.sort(key=_without_rounding)
        page = candidates[offset : offset + k]
        return Finalists(page, 0, total, settled=True, rounded=True)
    return Finalists(candidates[certain:until], offset - certain, total)


def chosen(
    candidates: list[Candidate],
    k: int,
    slack: float,
    total: int,
    finalists_max: int = FINALISTS_MAX,
) -> Finalists:
    """Return the candidates for the first ``k`` results of a list in the order of phase one."""
    if slack == 0.0 or not candidates:
        return Finalists(candidates[:k], 0, total, settled=True)
    last = -candidates[min(k, len(candidates)) - 1].negative_score
    until = bisect_right(candidates, -last * (1.0 - slack), key=_negative_score)
    if until > k + finalists_max:
        return Finalists(candidates[:k], 0, total, settled=True)
    return Finalists(candidates[:until], 0, total)


def _worth_reading(
    found: Sequence[tuple[int, ShardHits]], wanted: int, slack: float
) -> tuple[list[tuple[int, list[float], list[int]]], float]:
    """Return (shard, scores, ordinals) where needed, and a score that no finalist is below.

    With enough shards, the ``wanted``-th best of their best hits is a score that ``wanted``
    hits have: only the few shards above it are read. With fewer, all are.
    """
    if len(found) >= wanted:
        best = sorted((hits.best for _, hits in found), reverse=True)
        bound = best[wanted - 1] * (1.0 - slack)
        return [_read(shard, hits) for shard, hits in found if hits.best >= bound], bound
    read = [_read(shard, hits) for shard, hits in found]
    scores = sorted(chain.from_iterable(scores for _, scores, _ in read), reverse=True)
    bound = scores[min(wanted, len(scores)) - 1] * (1.0 - slack) if scores else 0.0
    return read, bound


def _read(shard: int, hits: ShardHits) -> tuple[int, list[float], list[int]]:
    try:
        return shard, *hits.read()
    except ValueError as error:
        raise Unreadable(shard, str(error)) from None


def _surely_before(candidates: list[Candidate], offset: int, slack: float) -> int:
    """Count the candidates whose final rank is below ``offset`` beyond doubt."""
    if offset == 0 or slack >= 1.0:
        return 0
    upper = -candidates[offset].negative_score / (1.0 - slack)
    return bisect_left(candidates, -upper, key=_negative_score)


def _without_rounding(candidate: Candidate) -> tuple[float, int]:
    return float(f"{candidate.negative_score:.{SIGNIFICANT_DIGITS}g}"), candidate.ordinal


def _negative_score(candidate: Candidate) -> float:
    return candidate.negative_score
