"""A query made ready for every shard of a generation, once.

What is the same for all shards is done here: analysing, looking up the whole's statistics,
making tantivy's terms. What differs, the weight that makes a shard's score the whole's, is
the shard's (``leaf.shard``).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import tantivy

from index_data.assembly import assemble, matching, weighed_natively
from index_data.manifest import Field
from index_data.plan import Alike, Best, Clause, Everything, Leaf, Plan, Within, leaves_of, numbered
from index_data.query import BadQuery, Planner
from index_data.statistics import Statistics
from leaf import errors, protocol
from leaf.scoring import Choice, Weighed, probe_of
from leaf.wanted import NOT_WANTED, Wanted


class Prepared(msgspec.Struct, frozen=True):
    """A query ready for any shard of its generation. Maps go by a number of the plan, or a field.

    ``matches`` are queries: of clauses unweighed, of all others as they score. ``parts`` are
    what the whole knows of each, ``probe`` is for exact scores, ``wanted`` are the tokens to
    highlight.
    """

    plan: Plan
    matches: dict[int, tantivy.Query]
    parts: dict[int, Weighed | Choice]
    probe: tantivy.Query | None
    wanted: dict[str, Wanted]

    def for_shard(
        self, weigh: Callable[[Clause, tantivy.Query, float], tantivy.Query | None]
    ) -> tantivy.Query | None:
        """Return the query for one shard, None when nothing in it can match.

        ``weigh`` is given each clause, what it matches, and its weight times idf in the whole.
        """

        def one(leaf: Leaf) -> tantivy.Query | None:
            match = self.matches[leaf.number]
            part = self.parts[leaf.number]
            if isinstance(leaf, Clause) and isinstance(part, Weighed):
                return weigh(leaf, match, part.factor)
            return match

        return assemble(self.plan, one)


def prepare(
    query: protocol.Query,
    fields: tuple[Field, ...],
    statistics: Statistics,
    schema: tantivy.Schema,
) -> Prepared:
    """Analyse a query and weigh it by the statistics of the whole.

    Raises leaf.errors.BadQuery.
    """
    try:
        plan = Planner(fields).plan(msgspec.to_builtins(query))
    except BadQuery as error:
        raise errors.BadQuery(str(error), error.member) from error
    return Prepared(
        plan=plan,
        matches={leaf.number: _match(leaf, schema) for leaf in leaves_of(plan)},
        parts={part.number: _part(part, statistics) for part in numbered(plan)},
        probe=probe_of(plan, schema),
        wanted=_wanted(plan, frozenset(field.name for field in fields if field.type == "text")),
    )


def _match(leaf: Leaf, schema: tantivy.Schema) -> tantivy.Query:
    return matching(leaf, schema) if isinstance(leaf, Clause) else weighed_natively(leaf, schema)


def _part(part: Leaf | Best, statistics: Statistics) -> Weighed | Choice:
    match part:
        case Best():
            return Choice(part.tie_breaker)
        case Everything():
            return Weighed(1.0, 0.0)
        case Alike() | Within():
            return Weighed(part.weight, 0.0)
        case Clause():
            # BM25 weighs a phrase like a term that is as rare as all of its tokens together.
            idf = sum(statistics.idf(part.field, token) for token in part.tokens)
            return Weighed(part.weight * idf, statistics.average_length(part.field))


def _wanted(plan: Plan, text_fields: frozenset[str]) -> dict[str, Wanted]:
    wanted: dict[str, Wanted] = {}
    for leaf in leaves_of(plan, wanted_only=True):
        if isinstance(leaf, Clause | Alike) and leaf.field in text_fields:
            wanted[leaf.field] = wanted.get(leaf.field, NOT_WANTED).and_of(leaf)
    return wanted
