"""Term statistics of a whole generation: what makes the scores of shards comparable.

BM25 weighs a term by how many documents have it and a document by its length beside the
average. Both are properties of the collection, so every leaf has the whole's.

The file is searched where it lies, through mmap, so a leaf starts at once and its processes
share one copy:

    magic, 8 bytes
    length of the header, u32
    header, JSON: documents, and for each field its tokens, terms and offset
    for each field, at its offset:
        bounds of the terms in the text below, u32 each, one more than terms
        document frequencies, u32 each
        the terms, UTF-8, ascending, joined

All numbers little-endian.
"""

from __future__ import annotations

import math
import mmap
import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import lru_cache
from heapq import nsmallest
from pathlib import Path
from typing import Final

import msgspec

from index_data.manifest import Damaged, write_through

K1: Final = 1.2
B: Final = 0.75
"""BM25's two constants as tantivy has them: saturation of repetition, weight of length."""

_MAGIC: Final = b"HGSTAT1\n"
_U32: Final = struct.Struct("<I")
_BOUNDS: Final = struct.Struct("<II")

FREQUENCIES_KEPT: Final = 1 << 16
"""Look-ups remembered: people's words repeat, and a look-up takes ten microseconds."""


class _FieldEntry(msgspec.Struct, frozen=True):
    tokens: int
    terms: int
    offset: int


class _Header(msgspec.Struct, frozen=True):
    documents: int
    fields: dict[str, _FieldEntry]


def idf(documents: int, frequency: int) -> float:
    """Return BM25's weight of a term that ``frequency`` of ``documents`` have, above 0."""
    return math.log1p((documents - frequency + 0.5) / (frequency + 0.5))


def bm25(frequency: float, length: float, average_length: float) -> float:
    """Return the part of BM25 that a document brings, times (k1 + 1): between 0 and 2.2."""
    return (K1 + 1) * frequency / (frequency + K1 * (1 - B + B * length / average_length))


class Statistics:
    """The statistics of one generation, read from its file. Safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        """Map the file. Raises Damaged when it is not a statistics file."""
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._header = _read_header(self._bytes)
        except (OSError, ValueError, struct.error) as error:
            raise Damaged(f"{path.name} cannot be read: {error}.") from error
        self._frequency = lru_cache(FREQUENCIES_KEPT)(self._look_up)

    @property
    def documents(self) -> int:
        """How many documents the generation has."""
        return self._header.documents

    def tokens(self, field: str) -> int:
        """Return how many tokens a field has in all documents together."""
        return self._header.fields[field].tokens

    def average_length(self, field: str) -> float:
        """Return the tokens of a field an average document has."""
        return self.tokens(field) / self.documents

    def frequency(self, field: str, token: str) -> int:
        """Return how many documents have a token in a field."""
        return self._frequency(field, token)

    def count(self, field: str, token: str) -> int:
        """Return the same, and do not remember it: for tokens that hardly anybody asks for."""
        return self._look_up(field, token)

    def most_frequent(self, field: str, beginning: str, k: int) -> list[tuple[str, int]]:
        """Return the ``k`` most frequent terms that begin like this, and their frequencies."""
        entry = self._header.fields[field]
        wanted = beginning.encode()

        def start_of(number: int) -> bytes:
            return self._term(entry, number)[: len(wanted)]

        first = bisect_left(range(entry.terms), wanted, key=start_of)
        end = bisect_right(range(entry.terms), wanted, key=start_of)
        at = entry.offset + _U32.size * (entry.terms + 1 + first)
        counts = struct.unpack_from(f"<{end - first}I", self._bytes, at)
        best = nsmallest(k, range(end - first), key=lambda i: (-counts[i], i))
        return [(self._term(entry, first + i).decode(), counts[i]) for i in best]

    def _look_up(self, field: str, token: str) -> int:
        entry = self._header.fields[field]
        wanted = token.encode()
        at = bisect_left(range(entry.terms), wanted, key=lambda i: self._term(entry, i))
        if at == entry.terms or self._term(entry, at) != wanted:
            return 0
        counts = entry.offset + _U32.size * (entry.terms + 1)
        frequency: int = _U32.unpack_from(self._bytes, counts + _U32.size * at)[0]
        return frequency

    def idf(self, field: str, token: str) -> float:
        """Return BM25's weight of a token in a field."""
        return idf(self.documents, self.frequency(field, token))

    def _term(self, entry: _FieldEntry, number: int) -> bytes:
        start, end = _BOUNDS.unpack_from(self._bytes, entry.offset + _U32.size * number)
        text = entry.offset + _U32.size * (2 * entry.terms + 1)
        return self._bytes[text + start : text + end]


def _read_header(raw: mmap.mmap) -> _Header:
    if raw[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is no statistics file")
    start = len(_MAGIC) + _U32.size
    (length,) = _U32.unpack_from(raw, len(_MAGIC))
    return msgspec.json.decode(raw[start : start + length], type=_Header)


def write_statistics(
    path: Path,
    documents: int,
    tokens: Mapping[str, int],
    frequencies: Mapping[str, Mapping[str, int]],
) -> None:
    """Write a statistics file: tokens by field, document frequencies by field and token."""
    sections = {field: _section(of_field) for field, of_field in frequencies.items()}
    # The header holds offsets that depend on its own length; it is padded to a fixed one.
    space = 256 + 128 * len(sections)
    offset = len(_MAGIC) + _U32.size + space
    entries: dict[str, _FieldEntry] = {}
    for field, section in sections.items():
        entries[field] = _FieldEntry(tokens[field], len(frequencies[field]), offset)
        offset += len(section)
    header = msgspec.json.encode(_Header(documents, entries)).ljust(space)
    if len(header) > space:
        raise ValueError(f"the header of {path.name} is longer than {space} bytes")
    write_through(path, b"".join((_MAGIC, _U32.pack(space), header, *sections.values())))


def _section(frequencies: Mapping[str, int]) -> bytes:
    terms = sorted((term.encode(), count) for term, count in frequencies.items())
    bounds = array("I", [0])
    for term, _ in terms:
        bounds.append(bounds[-1] + len(term))
    counts = array("I", (count for _, count in terms))
    if sys.byteorder == "big":
        bounds.byteswap()
        counts.byteswap()
    return b"".join((bounds.tobytes(), counts.tobytes(), *(term for term, _ in terms)))
