"""The same query, asked of one index in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Answer, Hit
from bench.queries import PAGE, Asked
from index_data.manifest import latest_generation, read_manifest
from index_data.oracle import Oracle
from root.language import parse
from root.query import combined


class Reference:
    """The oracle of the newest generation of an index directory, behind the root's language."""

    def __init__(self, index: Path) -> None:
        generation = latest_generation(index)
        self.manifest = read_manifest(generation)
        self._fields = {field.name: field for field in self.manifest.fields}
        self._oracle = Oracle.open(generation)

    def counted(
        self, q: str, span: tuple[str, int, int], aggregations: Mapping[str, Any], k: int = 10
    ) -> tuple[Answer, dict[str, Any]]:
        """The right answer among documents in a span of an integer field, and aggregations."""
        query = msgspec.to_builtins(parse(q, self._fields).query)
        total, hits, counts = self._oracle.counted(query, span, aggregations, k)
        return Answer("complete", tuple(Hit(name, score) for name, score in hits), total), counts

    def search(self, q: str, k: int = 10, tie_breaker: float | None = None) -> Answer:
        """The right answer."""
        total, hits = self._oracle.search(self._tree(q, tie_breaker), k)
        return Answer("complete", tuple(Hit(name, score) for name, score in hits), total)

    def answer(self, asked: Asked) -> Answer:
        """The right answer to all pages in one."""
        k = PAGE * asked.pages
        if not asked.selection:
            return self.search(asked.q, k, asked.tie_breaker)
        tree = self._tree(asked.q, asked.tie_breaker)
        found = self._oracle.select(tree, {**asked.selection, "k": k})
        hits = tuple(Hit(name, score) for name, score in found["hits"])
        return Answer("complete", hits, found["total"], facets=found["facets"])

    def suggested(self, begun: str, k: int = PAGE) -> list[int]:
        """How many documents have each of the words that a text may go on with, most first."""
        return self._oracle.going_on(begun, k)

    def documents(self) -> list[tuple[str, dict[str, Any]]]:
        """All ids and sources, by id."""
        return list(self._oracle.documents())

    def _tree(self, q: str, tie_breaker: float | None) -> Mapping[str, Any]:
        query = parse(q, self._fields).query
        if tie_breaker is not None:
            query = combined(query, tie_breaker)
        tree: dict[str, Any] = msgspec.to_builtins(query)
        return tree
