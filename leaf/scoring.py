"""The exact score of a document: what one big index over the whole generation would give.

A shard's own scores use the shard's average lengths. For the few finalists the parts of BM25
that belong to the document (how often a term occurs, how long the field is) are taken from
tantivy's explanation, and those of the collection from the whole's statistics.

An explanation leaves out what does not match and does not say which clause a phrase was. So
what is explained is a *probe*: the query with everything that has a number boosted by it, plus one.
The boost is part of the explanation and says which part of the plan a node is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
import tantivy

from index_data.assembly import assemble, matching
from index_data.plan import Best, Leaf, Plan
from index_data.statistics import bm25

_BOOST: Final = "Boost x"
_FREQUENCY: Final = "freq, "
_LENGTH: Final = "dl, "
"""How tantivy begins the description of a boost, a term's count and a field's length."""


class Weighed(msgspec.Struct, frozen=True):
    """A leaf of the plan with what the collection adds to it.

    ``factor`` is weight times idf; a leaf that scores its factor in every document has an
    average length of 0.
    """

    factor: float
    average_length: float


class Choice(msgspec.Struct, frozen=True):
    """A Best of the plan: how it makes one score of several."""

    tie_breaker: float


class _Node(msgspec.Struct):
    value: float
    description: str
    details: list[_Node] = []


_NODE: Final = msgspec.json.Decoder(_Node)


def probe_of(plan: Plan, schema: tantivy.Schema) -> tantivy.Query | None:
    """Return the query whose explanations ``exact_score`` reads."""

    def tagged(part: Leaf | Best, query: tantivy.Query) -> tantivy.Query:
        return tantivy.Query.boost_query(query, float(part.number + 1))

    return assemble(plan, lambda leaf: tagged(leaf, matching(leaf, schema)), tagged)


def exact_score(
    probe: tantivy.Query,
    searcher: tantivy.Searcher,
    document: int,
    parts: Mapping[int, Weighed | Choice],
) -> float:
    """Return the score of a document of a shard, 0 when it does not match."""
    try:
        explanation = probe.explain(searcher, tantivy.DocAddress(0, document))
    except ValueError:  # how tantivy says that the document does not match
        return 0.0
    return _score(_NODE.decode(explanation.to_json()), parts)


def _score(node: _Node, parts: Mapping[int, Weighed | Choice]) -> float:
    if not node.description.startswith(_BOOST):
        return sum(_score(detail, parts) for detail in node.details)
    part = parts[_number(node)]
    if isinstance(part, Choice):
        (union,) = node.details
        scores = [_score(detail, parts) for detail in union.details]
        best = max(scores)
        return best + part.tie_breaker * (sum(scores) - best)
    return _weighed(node, part)


def _weighed(node: _Node, part: Weighed) -> float:
    if part.average_length == 0.0:
        return part.factor
    frequency, length = _value(node, _FREQUENCY), _value(node, _LENGTH)
    return part.factor * bm25(frequency, length, part.average_length)


def shares(
    probe: tantivy.Query,
    searcher: tantivy.Searcher,
    document: int,
    parts: Mapping[int, Weighed | Choice],
) -> list[tuple[int, float]]:
    """Return what each part of a plan adds to the exact score of a document, by its number."""
    try:
        explanation = probe.explain(searcher, tantivy.DocAddress(0, document))
    except ValueError:  # as above
        return []
    return _shares(_NODE.decode(explanation.to_json()), parts)


def _shares(node: _Node, parts: Mapping[int, Weighed | Choice]) -> list[tuple[int, float]]:
    if not node.description.startswith(_BOOST):
        return [share for detail in node.details for share in _shares(detail, parts)]
    number = _number(node)
    part = parts[number]
    if isinstance(part, Weighed):
        return [(number, _weighed(node, part))]
    (union,) = node.details
    scored = [(_score(detail, parts), _shares(detail, parts)) for detail in union.details]
    best = max(range(len(scored)), key=lambda place: scored[place][0])
    return [
        (leaf, score if place == best else part.tie_breaker * score)
        for place, (_, within) in enumerate(scored)
        for leaf, score in within
    ]


def _number(node: _Node) -> int:
    """Return the number of the part of the plan that a boost marks."""
    return int(node.description[len(_BOOST) :].split(maxsplit=1)[0]) - 1


def _value(node: _Node, beginning: str) -> float:
    """Return the value of the one node below whose description begins like this."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.description.startswith(beginning):
            return node.value
        waiting += node.details
    raise LookupError(f"tantivy's explanation has no {beginning!r}")
