"""The reference: one tantivy index over all documents, in one process, with its own scores.

What a distributed search ought to answer is what this answers. It is built from the sources
that the shards of a generation store, in the order of ids, as one segment, so that equal
scores come in the order of ids here too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import tantivy

from index_data.analysis import beginnings_of
from index_data.assembly import assemble, weighed_natively
from index_data.manifest import Manifest, read_manifest, shard_folder
from index_data.query import Planner
from index_data.reckoning import Reckoner
from index_data.schema import open_for_writing, tantivy_schema
from index_data.segment import TooLarge, add_rows, rows_of

PAGE: Final = 10
"""Hits of an answer that does not say how many."""

Ranked = list[tuple[str, float]]
"""Ids with their scores, best first."""


class Oracle:
    """A generation as one index, held in memory."""

    def __init__(self, manifest: Manifest, generation: Path) -> None:
        """Read every document of the generation. Raises TooLarge."""
        self._fields = manifest.fields
        self._schema = tantivy_schema(manifest.fields)
        self._ids: list[str] = []
        self._sources: list[bytes] = []
        self._reckoner = Reckoner(manifest.fields)
        index = open_for_writing(self._schema, manifest.fields)
        shards = (rows_of(generation / shard_folder(i)) for i in range(len(manifest.shards)))
        add_rows(index, manifest.fields, map(self._remember_id, heapq.merge(*shards)))
        self._searcher = index.searcher()
        if self._searcher.num_segments != 1:
            raise TooLarge(f"{generation.name} does not fit one index in memory.")

    @classmethod
    def open(cls, generation: Path) -> Oracle:
        """Build the reference of a generation's folder. Raises BadManifest, TooLarge."""
        return cls(read_manifest(generation), generation)

    def _remember_id(self, row: tuple[int, str, bytes]) -> tuple[int, str, bytes]:
        self._ids.append(row[1])
        self._sources.append(row[2])
        return row

    def documents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the ids and sources of all documents, in the order of ids."""
        return zip(self._ids, map(orjson.loads, self._sources), strict=True)

    def going_on(self, text: str, k: int) -> list[int]:
        """Return how many documents have each of the words that the last word of a text may be
        the beginning of, most first, ``k`` at the most; of several fields the one that has it
        in most documents.
        """
        counts: dict[str, int] = {}
        for field in self._fields:
            begun = beginnings_of(field, text) if field.type == "text" and field.default else []
            if begun:
                for term, count in self._searcher.terms_with_prefix(field.name, begun[-1].text):
                    counts[term] = max(count, counts.get(term, 0))
        return sorted(counts.values(), reverse=True)[:k]

    def search(self, tree: Mapping[str, Any], k: int) -> tuple[int, Ranked]:
        """Return how many documents match a query in its JSON form, and the best ``k``.

        Raises BadQuery.
        """
        plan = Planner(self._fields).plan(tree)
        query = assemble(plan, lambda clause: weighed_natively(clause, self._schema))
        if query is None:
            return 0, []
        return self._best(query, k)

    def counted(
        self,
        tree: Mapping[str, Any],
        span: tuple[str, int, int],
        aggregations: Mapping[str, Any],
        k: int,
    ) -> tuple[int, Ranked, dict[str, Any]]:
        """Return what ``search`` does, of documents whose integer field lies between two values,
        both included, and what the library's own aggregations come to over all of them.

        Raises BadQuery.
        """
        plan = Planner(self._fields).plan(tree)
        query = assemble(plan, lambda clause: weighed_natively(clause, self._schema))
        if query is None:
            query = tantivy.Query.empty_query()
        field, low, high = span
        within = tantivy.Query.range_query(
            self._schema, field, tantivy.FieldType.Integer, low, high
        )
        must = tantivy.Occur.Must
        passing = tantivy.Query.const_score_query(within, 0.0)
        query = tantivy.Query.boolean_query([(must, query), (must, passing)])
        total, ranked = self._best(query, k)
        return total, ranked, self._searcher.aggregate(query, dict(aggregations))

    def _best(self, query: tantivy.Query, k: int) -> tuple[int, Ranked]:
        result = self._searcher.search(query, limit=max(1, min(k, len(self._ids))))
        total: int = result.count  # type: ignore[attr-defined]  # missing in tantivy's stubs
        return total, [(self._ids[address.doc], score) for score, address in result.hits[:k]]

    def select(self, tree: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
        """Return total, hits and facets of a query with the ``filter``, ``sort``, ``facets``,
        ``offset`` and ``k`` of a request, looking at every document. Raises BadQuery.
        """
        _, ranked = self.search(tree, len(self._ids))
        places = {identity: place for place, identity in enumerate(self._ids)}
        found = {
            identity: (score, source)
            for identity, score in ranked
            for source in [orjson.loads(self._sources[places[identity]])]
            if self._reckoner.passes(source, request.get("filter", ()))
        }
        order = list(found)
        if request.get("sort", ["_score"]) != ["_score"]:
            documents = [(identity, source) for identity, (_, source) in found.items()]
            order = self._reckoner.arranged(documents, request["sort"])
        first = request.get("offset", 0)
        page = order[first : first + request.get("k", PAGE)]
        sources = [source for _, source in found.values()]
        return {
            "total": len(found),
            "hits": [(identity, found[identity][0]) for identity in page],
            "facets": {
                name: {"type": asked["type"], **self._reckoner.facet(sources, asked)}
                for name, asked in request.get("facets", {}).items()
            },
        }


def words(text: str) -> dict[str, Any]:
    """Return the query of plain words, any of them, in its JSON form."""
    return {"type": "bool", "should": [{"type": "word", "text": word} for word in text.split()]}
