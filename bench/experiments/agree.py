"""How often the root's answer is the one that a single big index would give.

Queries are of every kind that the language has, with filters, orders and facets, of one page and
of several by cursor; and words that are only begun. Equal means the same ids in the same order,
but for places whose scores differ by the rounding of 32-bit numbers alone, scores within
SCORE_TOLERANCE, and the same total and facets. What is not equal is listed with the first place
where the two differ.

Each collection is changed before it is asked: while the fleet serves it, one document in twenty
is deleted and one in twenty replaced, and the fleet follows.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console

from bench import report
from bench.client import Answer, Client, Hit, connected
from bench.fleet import Fleet, FleetError
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

FACET_TOLERANCE: Final = 1e-9
"""Of what is computed with doubles, added up in one order here and in another there."""

FOLLOW_S_MAX: Final = 30.0
POLL_S: Final = 0.1
"""A fleet looks for a new generation every second, and opens one in a second or two."""

Ask = Callable[[Mapping[str, Any]], Awaitable[Answer]]
"""Sends the body of a request."""


class Difference(msgspec.Struct, frozen=True):
    """A query whose page differs, and how."""

    q: str
    how: str


class Result(msgspec.Struct, frozen=True):
    """Queries asked of a collection, and those that differ.

    ``selected`` had a filter, an order or facets, ``paged`` several pages, ``begun`` were words
    only begun; ``counts_wrong`` is how many totals, facets and suggestions differ, all told.
    """

    collection: str
    updates: int
    documents: int
    shards: int
    queries: int
    selected: int
    paged: int
    begun: int
    counts_wrong: int
    differences: list[Difference]
    score_error_max: float

    @property
    def asked(self) -> int:
        """Queries, and words only begun."""
        return self.queries + self.begun

    @property
    def share_equal(self) -> float:
        """Share of what was asked that is answered as by the single index."""
        return 1 - len(self.differences) / self.asked

    @property
    def good(self) -> bool:
        """Whether it is as it is to be: all counts, and nearly all pages."""
        return self.share_equal >= SHARE_WANTED and not self.counts_wrong


class Results(msgspec.Struct, frozen=True):
    """All collections."""

    collections: tuple[Result, ...]

    @property
    def good(self) -> bool:
        """Whether each is as it is to be."""
        return all(one.good for one in self.collections)


async def run(
    fleet: Fleet, queries: Sequence[Asked], begun: Sequence[str], reference: Reference
) -> Result:
    """Ask both, one query after the other, once the fleet serves what the reference has."""
    differences = []
    error_max, counts_wrong = 0.0, 0
    async with connected(fleet.root_url) as client:
        await follow(client, reference.manifest.generation)
        for asked in queries:
            found, wanted = await whole(client.ask, asked), reference.answer(asked)
            counts_wrong += not counts_equal(found, wanted)
            if how := difference(found, wanted):
                differences.append(Difference(str(asked), how))
            else:
                error_max = max(error_max, score_error(found, wanted))
        for text in begun:
            suggested = [count for _, count in await client.suggestions(text)]
            if suggested != (right := reference.suggested(text)):
                counts_wrong += 1
                differences.append(Difference(f"{text}...", f"counts {suggested}, not {right}"))
    return Result(
        collection=reference.manifest.source.name,
        updates=reference.manifest.source.updates,
        documents=reference.manifest.documents,
        shards=len(reference.manifest.shards),
        queries=len(queries),
        selected=sum(bool(asked.selection) for asked in queries),
        paged=sum(asked.pages > 1 for asked in queries),
        begun=len(begun),
        counts_wrong=counts_wrong,
        differences=differences,
        score_error_max=error_max,
    )


async def follow(client: Client, generation: str) -> None:
    """Wait until a root serves a generation. Raises FleetError."""
    for _ in range(round(FOLLOW_S_MAX / POLL_S)):
        if (await client.get_json("/topology"))["generation"] == generation:
            return
        await asyncio.sleep(POLL_S)
    raise FleetError(f"the root does not serve {generation}")


async def whole(ask: Ask, asked: Asked) -> Answer:
    """Ask for all pages, one after the other; return them as one, with the first one's counts."""
    first = page = await ask(asked.request)
    hits = page.hits
    for _ in range(asked.pages - 1):
        if page.next is None:
            break
        page = await ask(asked.request | {"cursor": page.next, "facets": {}})
        if (page.fate, page.total) != ("complete", first.total):
            return msgspec.structs.replace(page, facets=first.facets)
        hits += page.hits
    return msgspec.structs.replace(first, hits=hits)


def counts_equal(found: Answer, wanted: Answer) -> bool:
    """Whether the totals are equal, and the facets."""
    return found.total == wanted.total and _is_close(found.facets, wanted.facets)


def _is_close(found: Any, wanted: Any) -> bool:
    """Equal, but for the last digits of what is computed with doubles."""
    match wanted:
        case dict():
            same = found.keys() == wanted.keys()
            return same and all(_is_close(found[name], wanted[name]) for name in wanted)
        case list():
            return len(found) == len(wanted) and all(map(_is_close, found, wanted))
        case float():
            return isinstance(found, int | float) and math.isclose(
                found, wanted, rel_tol=FACET_TOLERANCE, abs_tol=FACET_TOLERANCE
            )
        case _:
            return bool(found == wanted)


def difference(found: Answer, wanted: Answer) -> str:
    """In what the two differ first, in words; empty if they are equal."""
    if found.fate != "complete":
        return f"{found.fate}: {found.detail}"
    if found.total != wanted.total:
        return f"total {found.total}, not {wanted.total}"
    for name, facet in wanted.facets.items():
        if not _is_close(found.facets.get(name, {}), facet):
            return f"facet {name}: {found.facets.get(name)}, not {facet}"
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


def show(result: Results, console: Console) -> None:
    """Print the shares, a column a collection, and every difference."""
    results = result.collections
    rows: list[list[object]] = [
        ["documents", *(one.documents for one in results)],
        ["updates", *(one.updates for one in results)],
        ["shards", *(one.shards for one in results)],
        ["queries", *(one.queries for one in results)],
        ["  with filter, order or facets", *(one.selected for one in results)],
        ["  of several pages", *(one.paged for one in results)],
        ["words only begun", *(one.begun for one in results)],
        ["answers equal", *(f"{one.share_equal:.2%}" for one in results)],
        ["wrong totals, facets, suggestions", *(one.counts_wrong for one in results)],
        ["largest difference of scores", *(f"{one.score_error_max:.2g}" for one in results)],
    ]
    names = [one.collection for one in results]
    report.show_table("the root beside one big index", ["", *names], rows, console)
    for each in results:
        for one in each.differences[:SHOWN_MAX]:
            console.print(f"{each.collection}: {one.q}: {one.how}", markup=False, soft_wrap=True)
        if len(each.differences) > SHOWN_MAX:
            more = len(each.differences) - SHOWN_MAX
            console.print(f"{each.collection}: ... and {more} more; --json has them all")
