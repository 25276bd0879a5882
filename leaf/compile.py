"""A query made ready for every shard of a generation, once.

What is the same for all shards is done here: analysing, looking up the whole's statistics,
making tantivy's terms. What differs, the weight that makes a shard's score the whole's, is
the shard's (``leaf.shard``).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import tantivy

from index_data.analysis import tokens_of
from index_data.manifest import Field
from index_data.query import (
    BadQuery,
    Clause,
    Everything,
    Plan,
    Planner,
    assemble,
    leaves_of,
    matching,
)
from index_data.statistics import Statistics
from leaf import errors, protocol
from leaf.scoring import Weighed, probe_of


class Prepared(msgspec.Struct, frozen=True):
    """A query ready for any shard of its generation. Lists and maps go by a leaf's number.

    ``matches`` are unweighed queries, ``weighed`` what the whole knows of each, ``probe`` is
    for exact scores, ``words`` are the tokens to highlight, by field.
    """

    plan: Plan
    matches: dict[int, tantivy.Query]
    weighed: dict[int, Weighed]
    probe: tantivy.Query | None
    words: dict[str, frozenset[str]]

    def for_shard(
        self, weigh: Callable[[Clause, tantivy.Query, float], tantivy.Query | None]
    ) -> tantivy.Query | None:
        """Return the query for one shard, None when nothing in it can match.

        ``weigh`` is given each clause, what it matches, and its weight times idf in the whole.
        """

        def one(leaf: Clause | Everything) -> tantivy.Query | None:
            match = self.matches[leaf.number]
            if isinstance(leaf, Everything):
                return match
            return weigh(leaf, match, self.weighed[leaf.number].factor)

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
        plan = Planner(fields, tokens_of).plan(msgspec.to_builtins(query))
    except BadQuery as error:
        raise errors.BadQuery(str(error), error.member) from error
    leaves = leaves_of(plan)
    return Prepared(
        plan=plan,
        matches={leaf.number: matching(leaf, schema) for leaf in leaves},
        weighed={leaf.number: _weighed(leaf, statistics) for leaf in leaves},
        probe=probe_of(plan, schema),
        words=_words(plan, frozenset(field.name for field in fields if field.type == "text")),
    )


def _weighed(leaf: Clause | Everything, statistics: Statistics) -> Weighed:
    if isinstance(leaf, Everything):
        return Weighed(1.0, 0.0)
    # BM25 weighs a phrase like a term that is as rare as all of its tokens together.
    idf = sum(statistics.idf(leaf.field, token) for token in leaf.tokens)
    return Weighed(leaf.weight * idf, statistics.average_length(leaf.field))


def _words(plan: Plan, text_fields: frozenset[str]) -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for leaf in leaves_of(plan, wanted_only=True):
        if isinstance(leaf, Clause) and leaf.field in text_fields:
            words.setdefault(leaf.field, set()).update(leaf.tokens)
    return {field: frozenset(tokens) for field, tokens in words.items()}
