"""What a build has read so far: ids and lengths in memory, sources in a file.

So a collection need not fit in memory; what stays there is about a hundred bytes a document.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from index_data.analysis import text_analyser
from index_data.manifest import Field
from index_data.sources import BadLine, Document
from index_data.values import values_of

BAD_LINES_KEPT: Final = 20
"""Shown to people; the count is exact however many there are."""


class Spool:
    """The accepted documents of a source: ids and lengths in memory, sources on disk.

    After ``sort`` position and ordinal are one.
    """

    def __init__(self, path: Path, fields: tuple[Field, ...]) -> None:
        self.path = path
        self.fields = fields
        self.ids: list[str] = []
        self.lengths = [array("L") for _ in fields]
        self.bad_lines: list[BadLine] = []
        self.bad: dict[str, int] = {}
        self._known: set[str] = set()
        self._starts: array[int] = array("Q", [0])
        self._order: list[int] = []

    def add(self, document: Document, file: BinaryIO) -> None:
        """Accept a document whose id is new, writing its source to ``file``."""
        source = orjson.dumps(document.source)
        file.write(source)
        self.ids.append(document.id)
        self._known.add(document.id)
        self._starts.append(self._starts[-1] + len(source))
        for field, lengths in zip(self.fields, self.lengths, strict=True):
            lengths.append(_length(document.source.get(field.name), field))

    @property
    def scored_lengths(self) -> list[array[int]]:
        """The lengths of the fields that are scored."""
        pairs = zip(self.fields, self.lengths, strict=True)
        return [lengths for field, lengths in pairs if field.scored]

    def has(self, identity: str) -> bool:
        """Whether a document of this id was accepted."""
        return identity in self._known

    def reject(self, line: BadLine) -> None:
        """Count a bad line, and keep it if it is among the first."""
        self.bad[line.reason] = self.bad.get(line.reason, 0) + 1
        if len(self.bad_lines) < BAD_LINES_KEPT:
            self.bad_lines.append(line)

    def sort(self) -> None:
        """Number the documents by their ids."""
        self._order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        self.ids = [self.ids[i] for i in self._order]
        self.lengths = [array("L", (of[i] for i in self._order)) for of in self.lengths]
        self._known.clear()

    def rows(self, ordinals: list[int]) -> Iterator[tuple[int, str, bytes]]:
        """Yield documents as a shard stores them: ordinal, id, source as JSON."""
        with self.path.open("rb") as file:
            for ordinal in ordinals:
                position = self._order[ordinal]
                file.seek(self._starts[position])
                size = self._starts[position + 1] - self._starts[position]
                yield ordinal, self.ids[ordinal], file.read(size)


def _length(value: Any, field: Field) -> int:
    """Return how many tokens a value is."""
    values = values_of(value, field) or []
    if field.type != "text":
        return len(values)
    analyse = text_analyser(field).analyze
    return sum(len(analyse(str(text))) for text in values)
