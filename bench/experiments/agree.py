"""How often the root's first page is the one that a single big index would give.

Queries are of every kind that the language has. Equal means the same ids in the same order, but
for places whose scores differ by the rounding of 32-bit numbers alone, scores within
SCORE_TOLERANCE, and the same total. What is not equal is listed with the first place where the
two differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from rich.console import Console

from bench import report
from bench.client import Answer, Hit, connected
from bench.fleet import Fleet
from bench.queries import Asked
from bench.reference import Reference

SCORE_TOLERANCE: Final = 1e-3
"""Scores are sums of 32-bit numbers, in one order here and in another there."""

RANK_ROUNDING: Final = 2.0**-22
"""Of a score: two units in the last place of a 32-bit number. What one big index ranks by less
than this it ranks by the order in which it added things up."""

SHARE_WANTED: Final = 0.995

SHOWN_MAX: Final = 20
"""Differences printed: enough to see what they have in common."""


class Difference(msgspec.Struct, frozen=True):
    """A query whose page differs, and how."""

    q: str
    how: str


class Result(msgspec.Struct, frozen=True):
    """Queries asked, and those that differ."""

    queries: int
    documents: int
    shards: int
    differences: list[Difference]
    score_error_max: float

    @property
    def share_equal(self) -> float:
        """Share of queries whose first page is the single index's."""
        return 1 - len(self.differences) / self.queries


async def run(fleet: Fleet, queries: Sequence[Asked], reference: Reference) -> Result:
    """Ask both, one query after the other."""
    differences = []
    error_max = 0.0
    async with connected(fleet.root_url) as client:
        for asked in queries:
            found = await client.search(asked.q, tie_breaker=asked.tie_breaker)
            wanted = reference.search(asked.q, tie_breaker=asked.tie_breaker)
            if how := difference(found, wanted):
                differences.append(Difference(asked.q, how))
            else:
                error_max = max(error_max, score_error(found, wanted))
        topology = await client.get_json("/topology")
    documents, shards = topology["documents"], len(topology["shards"])
    return Result(len(queries), documents, shards, differences, error_max)


def difference(found: Answer, wanted: Answer) -> str:
    """In what the two differ first, in words; empty if they are equal."""
    if found.fate != "complete":
        return f"{found.fate}: {found.detail}"
    if found.total != wanted.total:
        return f"total {found.total}, not {wanted.total}"
    for place, (one, other) in enumerate(zip(found.ids, wanted.ids, strict=False), 1):
        if one != other and not _is_rounding(found.hits[place - 1], wanted.hits[place - 1]):
            scores = f"{found.hits[place - 1].score:.6f}, {wanted.hits[place - 1].score:.6f}"
            return f"place {place}: {one}, not {other} ({scores})"
    if len(found.ids) != len(wanted.ids):
        return f"{len(found.ids)} hits, not {len(wanted.ids)}"
    error = score_error(found, wanted)
    return f"scores differ by {error:.6f}" if error > SCORE_TOLERANCE else ""


def _is_rounding(one: Hit, other: Hit) -> bool:
    """Whether two hits share a place: their scores differ by nothing but rounding."""
    return 0.0 < abs(one.score - other.score) <= RANK_ROUNDING * abs(other.score)


def score_error(found: Answer, wanted: Answer) -> float:
    """The largest difference of scores at the same place."""
    pairs = zip(found.hits, wanted.hits, strict=True)
    return max((abs(one.score - other.score) for one, other in pairs), default=0.0)


def show(result: Result, console: Console) -> None:
    """Print the share, and every difference."""
    rows: list[list[object]] = [
        ["queries", result.queries],
        ["documents", result.documents],
        ["shards", result.shards],
        ["first page equal", f"{result.share_equal:.2%}"],
        ["largest difference of scores", f"{result.score_error_max:.2g}"],
    ]
    report.show_table("the root beside one big index", ["", "value"], rows, console)
    for one in result.differences[:SHOWN_MAX]:
        console.print(f"{one.q}: {one.how}", markup=False, soft_wrap=True)
    if len(result.differences) > SHOWN_MAX:
        console.print(f"... and {len(result.differences) - SHOWN_MAX} more; --json has them all")
