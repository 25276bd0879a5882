"""From a plan to a query of tantivy's.

Shards and the one big index differ only in how a leaf is weighed, so ``assemble`` is told that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import tantivy

from index_data.plan import Alike, Best, Clause, Everything, Group, Leaf, Nothing, Plan, Within

Weigh = Callable[[Leaf], tantivy.Query | None]
"""Returns the query of a leaf as it shall score, None where it cannot match."""

Mark = Callable[[Best, tantivy.Query], tantivy.Query]
"""Returns the query of a Best as it shall be explained."""

_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
"""What may mean something in tantivy's regular expressions; tokens seldom have any of it."""


def assemble(plan: Plan, weigh: Weigh, mark: Mark | None = None) -> tantivy.Query | None:
    """Return the tantivy query of a plan, None when it cannot match any document."""
    match plan:
        case Clause() | Alike() | Within() | Everything():
            return weigh(plan)
        case Nothing():
            return None
        case Best():
            return _assemble_best(plan, weigh, mark)
        case Group():
            return _assemble_group(plan, weigh, mark)


def _assemble_best(best: Best, weigh: Weigh, mark: Mark | None) -> tantivy.Query | None:
    parts = [assemble(plan, weigh, mark) for plan in best.parts]
    possible = [part for part in parts if part is not None]
    if not possible:
        return None
    query = tantivy.Query.disjunction_max_query(possible, best.tie_breaker)
    return query if mark is None else mark(best, query)


def _assemble_group(group: Group, weigh: Weigh, mark: Mark | None) -> tantivy.Query | None:
    must, should, must_not = (
        [assemble(plan, weigh, mark) for plan in plans]
        for plans in (group.must, group.should, group.must_not)
    )
    if None in must:
        return None
    parts = _parts(tantivy.Occur.Must, must) + _parts(tantivy.Occur.Should, should)
    if not parts:
        return None
    parts += _parts(tantivy.Occur.MustNot, must_not)
    return tantivy.Query.boolean_query(parts)


def _parts(
    occur: tantivy.Occur, queries: list[tantivy.Query | None]
) -> list[tuple[tantivy.Occur, tantivy.Query]]:
    return [(occur, query) for query in queries if query is not None]


def matching(leaf: Leaf, schema: tantivy.Schema) -> tantivy.Query:
    """Return the query of the documents that a leaf matches, with tantivy's own score."""
    match leaf:
        case Everything():
            return tantivy.Query.all_query()
        case Clause(_, field, (token,)):
            return tantivy.Query.term_query(schema, field, token, "freq")
        case Clause():
            words = _placed(leaf.places, leaf.tokens)
            return tantivy.Query.phrase_query(schema, leaf.field, words)
        case Alike():
            return tantivy.Query.const_score_query(_alike(leaf, schema), 1.0)
        case Within():
            return tantivy.Query.const_score_query(_within(leaf, schema), 1.0)


def _alike(leaf: Alike, schema: tantivy.Schema) -> tantivy.Query:
    if len(leaf.tokens) == 1 and not (leaf.distance or leaf.open_ended):
        return tantivy.Query.term_query(schema, leaf.field, leaf.tokens[0], "basic")
    if len(leaf.tokens) == 1:
        return tantivy.Query.fuzzy_term_query(
            schema, leaf.field, leaf.tokens[0], leaf.distance, True, leaf.open_ended
        )
    patterns = [_SPECIAL.sub(r"\\\g<0>", token) for token in leaf.tokens]
    if leaf.open_ended:
        patterns.append(f"{patterns.pop()}.*")
    words = _placed(leaf.places, patterns)
    return tantivy.Query.regex_phrase_query(schema, leaf.field, words)


def _within(leaf: Within, schema: tantivy.Schema) -> tantivy.Query:
    if leaf.low is None and leaf.high is None:
        return tantivy.Query.exists_query(leaf.field)
    if leaf.low == leaf.high and not (leaf.low_open or leaf.high_open):
        return tantivy.Query.term_query(schema, leaf.field, leaf.low, "basic")
    kind = tantivy.FieldType.Integer
    if isinstance(leaf.low if leaf.high is None else leaf.high, float):
        kind = tantivy.FieldType.Float
    return tantivy.Query.range_query(
        schema, leaf.field, kind, leaf.low, leaf.high, not leaf.low_open, not leaf.high_open
    )


def _placed(places: Sequence[int], words: Sequence[str]) -> list[str | tuple[int, str]]:
    """Return the words of a phrase with their places, if they have any of their own."""
    return [*zip(places, words, strict=True)] if places else [*words]


def weighed_natively(leaf: Leaf, schema: tantivy.Schema) -> tantivy.Query:
    """Return a leaf as one big index scores it: tantivy's own score times its weight."""
    query = matching(leaf, schema)
    if isinstance(leaf, Everything) or leaf.weight == 1.0:
        return query
    return tantivy.Query.boost_query(query, leaf.weight)
