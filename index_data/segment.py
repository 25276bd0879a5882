"""One shard on disk: a tantivy index of exactly one segment, written once, read for ever.

Documents are added in ascending order of their ordinals, so that the document numbers of the
segment ascend with them: tantivy breaks ties in score by the lower number, which is then the
lower id.

Replicas are copies of the same bytes, and building twice gives the same bytes. tantivy names
segment files by a random number; they are renamed by what they contain.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import orjson
import tantivy

from index_data.analysis import composed
from index_data.manifest import Field, IndexDataError, sha256_of
from index_data.schema import ID_FIELD, ORDINAL_FIELD, SOURCE_FIELD, open_for_writing
from index_data.values import Value, values_of

WRITER_BYTES: Final = 2_000_000_000
"""tantivy begins a second segment when its buffers pass this; it is no allocation."""

_META_FILE: Final = "meta.json"
_MANAGED_FILE: Final = ".managed.json"
_ADDRESSES_AT_ONCE: Final = 8192


class TooLarge(IndexDataError):
    """A shard did not fit one segment: more shards are needed."""


Rows = Iterable[tuple[int, str, bytes]]
"""Documents as a shard stores them: ordinal, id, source as JSON; ordinals ascending."""


def write_segment(
    folder: Path, schema: tantivy.Schema, fields: tuple[Field, ...], rows: Rows
) -> dict[str, str]:
    """Write a shard into a new folder and return the SHA-256 of its files, by name.

    Raises TooLarge.
    """
    folder.mkdir()
    index = open_for_writing(schema, fields, str(folder))
    add_rows(index, fields, rows)
    if index.searcher().num_segments != 1:
        raise TooLarge(f"{folder.name} does not fit one segment: use more shards.")
    _rename_by_content(folder)
    for lock in folder.glob(".tantivy-*.lock"):
        lock.unlink()
    return {file.name: sha256_of(file) for file in sorted(folder.iterdir())}


def add_rows(index: tantivy.Index, fields: tuple[Field, ...], rows: Rows) -> None:
    """Add documents to a new index and make them searchable, in their order."""
    writer = index.writer(heap_size=WRITER_BYTES, num_threads=1)
    for ordinal, identity, source in rows:
        writer.add_document(_document(fields, ordinal, identity, source))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()


def _document(
    fields: tuple[Field, ...], ordinal: int, identity: str, source: bytes
) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text(ID_FIELD, identity)
    document.add_unsigned(ORDINAL_FIELD, ordinal)
    document.add_bytes(SOURCE_FIELD, source)
    values = orjson.loads(source)
    for field in fields:
        for value in values_of(values.get(field.name), field) or ():
            _add(document, field, value)
    return document


def _add(document: tantivy.Document, field: Field, value: Value) -> None:
    match field.type:
        case "text":
            document.add_text(field.name, composed(str(value)))
        case "keyword":
            document.add_text(field.name, str(value))
        case "integer" | "date":
            document.add_integer(field.name, int(value))
        case "float":
            document.add_float(field.name, float(value))
        case "boolean":
            document.add_boolean(field.name, bool(value))


def _rename_by_content(folder: Path) -> None:
    """Give the segment's files a name that follows from their bytes."""
    meta = json.loads((folder / _META_FILE).read_bytes())
    (segment,) = meta["segments"]
    old = segment["segment_id"].replace("-", "")
    files = sorted(folder.glob(f"{old}.*"), key=lambda file: file.suffix)
    digest = hashlib.sha256("".join(sha256_of(file) for file in files).encode()).hexdigest()
    new = digest[:32]
    for file in files:
        file.rename(folder / f"{new}{file.suffix}")
    segment["segment_id"] = f"{new[:8]}-{new[8:12]}-{new[12:16]}-{new[16:20]}-{new[20:]}"
    names = [f"{new}{file.suffix}" for file in files]
    (folder / _META_FILE).write_text(json.dumps(meta, indent=2) + "\n")
    (folder / _MANAGED_FILE).write_text(json.dumps([*names, _META_FILE]) + "\n")


# --- reading -----------------------------------------------------------------------------


def open_segment(folder: Path) -> tantivy.Searcher:
    """Return a searcher of a written shard.

    Raises ValueError or OSError, as tantivy does, when it is none; TooLarge when it has
    another number of segments than one.
    """
    index = tantivy.Index.open(str(folder))
    searcher = index.searcher()
    if searcher.num_segments != 1:
        raise TooLarge(f"{folder.name} has {searcher.num_segments} segments, not one.")
    return searcher


def ordinals_of(searcher: tantivy.Searcher) -> array[int]:
    """Return the ordinal of each document of a segment, by document number; ascending."""
    ordinals = array("Q")
    for start in range(0, searcher.num_docs, _ADDRESSES_AT_ONCE):
        end = min(start + _ADDRESSES_AT_ONCE, searcher.num_docs)
        addresses = [tantivy.DocAddress(0, number) for number in range(start, end)]
        ordinals.extend(map(_ordinal, searcher.fast_field_values(ORDINAL_FIELD, addresses)))
    return ordinals


def _ordinal(value: float | None) -> int:
    if not isinstance(value, int):
        raise IndexDataError("A document of the shard has no ordinal.")
    return value


def stored(searcher: tantivy.Searcher, number: int) -> tuple[str, bytes]:
    """Return the id and the source of a document of a segment."""
    document = searcher.doc(tantivy.DocAddress(0, number))
    identity, source = document.get_first(ID_FIELD), document.get_first(SOURCE_FIELD)
    if not isinstance(identity, str) or not isinstance(source, bytes):
        raise IndexDataError(f"Document {number} of the shard lacks its id or source.")
    return identity, source


def rows_of(folder: Path) -> Iterator[tuple[int, str, bytes]]:
    """Yield the documents of a shard: ordinal, id and source, ordinals ascending."""
    searcher = open_segment(folder)
    for number, ordinal in enumerate(ordinals_of(searcher)):
        yield ordinal, *stored(searcher, number)


def frequencies_of(searcher: tantivy.Searcher, field: str) -> list[tuple[str, int]]:
    """Return every token of a field with the number of documents that have it."""
    return searcher.terms_with_prefix(field, "")
