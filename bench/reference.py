"""The same query, asked of one index in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.client import Answer, Hit
from index_data.manifest import latest_generation, read_manifest
from index_data.oracle import Oracle
from root.language import parse
from root.query import combined


class Reference:
    """The oracle of the newest generation of an index directory, behind the root's language."""

    def __init__(self, index: Path) -> None:
        generation = latest_generation(index)
        self._fields = {field.name: field for field in read_manifest(generation).fields}
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
        query = parse(q, self._fields).query
        if tie_breaker is not None:
            query = combined(query, tie_breaker)
        total, hits = self._oracle.search(msgspec.to_builtins(query), k)
        return Answer("complete", tuple(Hit(name, score) for name, score in hits), total)
