"""The shards of a generation as a leaf searches them.

``search`` ranks with the whole's term weights and the shard's average lengths; its scores are
within ``length_deviation`` of the final ones. ``fetch`` gives the final ones (``leaf.scoring``).
Everything may be called from several threads at once; tantivy searches without the GIL.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

import orjson
import tantivy

from index_data.analysis import ANALYSER, composed, text_analyser
from index_data.manifest import (
    STATISTICS_FILE,
    BadManifest,
    Field,
    GenerationCard,
    IndexDataError,
    Manifest,
    ShardEntry,
    read_manifest,
    shard_folder,
    verify,
    verify_shard,
)
from index_data.plan import Clause, label_of, leaves_of
from index_data.schema import ID_FIELD, tantivy_schema
from index_data.segment import open_segment, ordinals_of, stored
from index_data.statistics import Statistics, idf
from leaf.compile import Prepared, prepare
from leaf.likeness import telling
from leaf.protocol import DEFAULT_COLLECTION, FetchedDocument, Query
from leaf.scoring import exact_score, shares
from leaf.selecting import Selected, select, selected
from leaf.selection import Selection
from leaf.snippets import SCAN_CHARS_MAX, Token, snippet
from leaf.suggestion import SuggestBody
from leaf.wanted import Wanted
from leaf.words import Words

PREPARED_KEPT: Final = 256
"""Queries whose preparation is remembered: both phases of a query, and its hedges, share it."""


class Shard:
    """One shard, open for searching."""

    def __init__(self, folder: Path, schema: tantivy.Schema, fields: Sequence[Field]) -> None:
        """Open a shard's folder. Raises what ``open_segment`` raises."""
        self._searcher = open_segment(folder)
        self._ordinals = ordinals_of(self._searcher)
        self._schema = schema
        self._text_fields = {field.name: field for field in fields if field.type == "text"}

    @property
    def documents(self) -> int:
        """How many documents it has."""
        return len(self._ordinals)

    # -- phase one ------------------------------------------------------------------------

    def search(self, prepared: Prepared, k: int) -> tuple[int, list[float], list[int]]:
        """Return how many documents match, and scores and ordinals of the best ``k``.

        Best first; equal scores in the order of ordinals.
        """
        query = prepared.for_shard(self._weigh)
        if query is None:
            return 0, [], []
        total, scores, documents = self._ranked(query, k)
        ordinals = self._ordinals
        return total, scores, [ordinals[document] for document in documents]

    def select(self, prepared: Prepared, selected: Selected, k: int) -> tuple[Any, ...]:
        """Return total, best, ranked and facets, as Hits has them, of a selection.

        Raises BadQuery.
        """
        query = prepared.for_shard(self._weigh) or tantivy.Query.empty_query()
        k = min(k, self.documents)
        found = select(self._searcher, query, selected, k, self._ranked, self._ordinals)
        values, documents = found.columns
        columns = values, [self._ordinals[document] for document in documents]
        return found.total, found.best, columns, found.facets

    def _ranked(self, query: tantivy.Query, k: int) -> tuple[int, list[float], list[int]]:
        """Return how many documents match, and scores and numbers of the best ``k``."""
        found = self._searcher.search(query, max(1, min(k, len(self._ordinals))))
        total: int = found.count  # type: ignore[attr-defined]  # missing in tantivy's stubs
        hits = found.hits[:k]
        return total, [score for score, _ in hits], [place.doc for _, place in hits]

    def _weigh(self, clause: Clause, match: tantivy.Query, factor: float) -> tantivy.Query | None:
        """Return the clause boosted so that its idf here becomes its idf in the whole."""
        local_idf = 0.0
        for token in clause.tokens:
            frequency = self._searcher.doc_freq(clause.field, token)
            if not frequency:
                return None
            local_idf += idf(len(self._ordinals), frequency)
        return tantivy.Query.boost_query(match, factor / local_idf)

    # -- phase two ------------------------------------------------------------------------

    def fetch(
        self,
        prepared: Prepared | None,
        ordinals: Sequence[int],
        fields: Sequence[str] | None,
        highlight: Sequence[str],
    ) -> list[FetchedDocument]:
        """Return documents with their final scores, in the order asked for.

        ``fields`` None means all. A field that a document lacks is left out, and so is a
        highlight without a match. Raises LookupError for an ordinal that is not here.
        """
        return [self._fetch(prepared, ordinal, fields, highlight) for ordinal in ordinals]

    def _fetch(
        self,
        prepared: Prepared | None,
        ordinal: int,
        fields: Sequence[str] | None,
        highlight: Sequence[str],
    ) -> FetchedDocument:
        document = self._document_of(ordinal)
        identity, raw = stored(self._searcher, document)
        source: dict[str, Any] = orjson.loads(raw)
        score, highlights = 0.0, {}
        if prepared is not None:
            highlights = self._highlights(prepared, source, highlight)
            if prepared.probe is not None:
                score = exact_score(prepared.probe, self._searcher, document, prepared.parts)
        chosen = (
            source if fields is None else {name: source[name] for name in fields if name in source}
        )
        return FetchedDocument(ordinal, score, identity, chosen, highlights)

    def explain(
        self, prepared: Prepared, ordinals: Sequence[int]
    ) -> list[list[tuple[str, str, float]]]:
        """Return what the score of each document is made of: field, text and share of each part
        of the query that adds to it. Raises LookupError for an ordinal that is not here.
        """
        if prepared.probe is None:
            return [[] for _ in ordinals]
        labels = {leaf.number: label_of(leaf) for leaf in leaves_of(prepared.plan)}
        return [
            [
                (*labels[number], score)
                for number, score in shares(
                    prepared.probe, self._searcher, self._document_of(ordinal), prepared.parts
                )
            ]
            for ordinal in ordinals
        ]

    def _document_of(self, ordinal: int) -> int:
        document = bisect_left(self._ordinals, ordinal)
        if document == len(self._ordinals) or self._ordinals[document] != ordinal:
            raise LookupError(f"ordinal {ordinal} is not in this shard")
        return document

    def _highlights(
        self, prepared: Prepared, source: Mapping[str, Any], highlight: Sequence[str]
    ) -> dict[str, str]:
        highlights = {}
        for field in highlight:
            wanted, value = prepared.wanted.get(field), source.get(field)
            for text in value if isinstance(value, list) else [value]:
                piece = self._snippet(text, field, wanted) if wanted and text else None
                if piece is not None:
                    highlights[field] = piece
                    break
        return highlights

    def _snippet(self, text: str, field: str, wanted: Wanted) -> str | None:
        text = composed(text)
        tokens = text_analyser(self._text_fields[field]).placed(text[:SCAN_CHARS_MAX])
        return snippet(text, [Token(t.text, t.start, t.end) for t in tokens], wanted)

    def lookup(self, document_id: str) -> list[int]:
        """Return the ordinal of the document with this id, or nothing."""
        query = tantivy.Query.term_query(self._schema, ID_FIELD, document_id, "basic")
        return [self._ordinals[place.doc] for _, place in self._searcher.search(query, 1).hits]

    def source(self, ordinal: int) -> dict[str, Any]:
        """Return the stored fields of a document. Raises LookupError where it is not here."""
        found: dict[str, Any] = orjson.loads(stored(self._searcher, self._document_of(ordinal))[1])
        return found

    def spelled(self, field: str, term: str) -> str:
        """Return a term of a text field as the first document that has it spells it, in small
        letters; the term itself where none here has it.
        """
        query = tantivy.Query.term_query(self._schema, field, term, "basic")
        for _, place in self._searcher.search(query, 1).hits:
            value = orjson.loads(stored(self._searcher, place.doc)[1]).get(field)
            for text in map(composed, value if isinstance(value, list) else [value]):
                for token in text_analyser(self._text_fields[field]).placed(text):
                    if token.text == term:
                        return text[token.start : token.end].lower()
        return term


class Generation:
    """A generation as one leaf holds it: some of its shards, and the whole's statistics."""

    def __init__(
        self, manifest: Manifest, statistics: Statistics, collection: str = DEFAULT_COLLECTION
    ) -> None:
        self.collection = collection
        self.card: GenerationCard = manifest.card()
        self.shards: dict[int, Shard] = {}
        self.refused: dict[int, str] = {}
        self.leaving: Mapping[int, int] = {}
        self._schema = schema = tantivy_schema(manifest.fields)
        self._fields = fields = manifest.fields
        self._statistics = statistics
        self._words = Words(fields, statistics)

        # It must not know this object: what is in a cycle, and frozen when that was last done,
        # is never freed, and with it the shards.
        @lru_cache(PREPARED_KEPT)
        def prepare_anew(query: Query) -> Prepared:
            return prepare(query, fields, statistics, schema)

        @lru_cache(PREPARED_KEPT)
        def select_anew(selection: Selection) -> Selected:
            return selected(selection, fields, schema)

        self._prepare, self._select = prepare_anew, select_anew

    @classmethod
    def open(
        cls, folder: Path, shards: Collection[int], collection: str = DEFAULT_COLLECTION
    ) -> Generation:
        """Open shards of the generation in a folder, verifying every file.

        A shard that is damaged is refused and the rest served. Raises BadManifest, or
        Damaged when the statistics are, without which no shard can be served.
        """
        manifest = read_manifest(folder)
        if manifest.analyser != ANALYSER:
            raise BadManifest(
                f"{folder.name} was analysed by {manifest.analyser}, not by {ANALYSER}: "
                "build the index again."
            )
        verify(folder / STATISTICS_FILE, manifest.statistics_sha256)
        generation = cls(manifest, Statistics(folder / STATISTICS_FILE), collection)
        for shard in sorted(shards):
            generation.take(folder, shard, manifest.shards)
        return generation

    def adjusted(self, folder: Path, shards: Collection[int], leaving: Mapping[int, int]) -> Self:
        """Return the same with these shards open too, and others that are to be given up.

        What is open already is shared. Raises BadManifest.
        """
        generation = copy.copy(self)
        generation.shards, generation.refused = {**self.shards}, {**self.refused}
        generation.leaving = leaving
        missing = sorted({*shards} - self.shards.keys() - self.refused.keys())
        entries = read_manifest(folder).shards if missing else ()
        for shard in missing:
            generation.take(folder, shard, entries)
        return generation

    def without(self, shards: Iterable[int], /) -> Self:
        """Return the same without some shards. Whoever has this one keeps them."""
        gone = frozenset(shards)
        generation = copy.copy(self)
        generation.shards = {s: shard for s, shard in self.shards.items() if s not in gone}
        generation.leaving = {s: count for s, count in self.leaving.items() if s not in gone}
        return generation

    def take(self, folder: Path, shard: int, entries: Sequence[ShardEntry]) -> None:
        """Open one more shard, or note why not: before anybody else has this generation."""
        if not 0 <= shard < len(entries):
            self.refused[shard] = f"there is no shard {shard}"
            return
        try:
            verify_shard(folder, shard, entries[shard])
            self.shards[shard] = Shard(folder / shard_folder(shard), self._schema, self._fields)
        except (IndexDataError, OSError, ValueError) as error:  # tantivy raises the last two
            self.refused[shard] = str(error)

    def suggest(self, body: SuggestBody, shard: Shard) -> list[FetchedDocument]:
        """Return words to search for instead, as people spell them in a shard."""
        found = []
        if body.prefix:
            before, known = self._words.going_on(body.prefix, body.k)
            spelled = [(shard.spelled(k.field.name, k.term), k.documents) for k in known]
            found = [
                FetchedDocument(0, float(documents), before + word, {}, {})
                for word, documents in spelled
            ]
        for word in body.words:
            meant = self._words.meant(word.text, word.field, shard.spelled)
            if meant is not None:
                about = {"for": word.text, "in": word.field}
                found.append(FetchedDocument(0, float(meant[1]), meant[0], about, {}))
        if body.like is not None:
            for ordinal in shard.lookup(body.like):
                words = telling(self._fields, self._statistics, shard.source(ordinal))
                found.append(FetchedDocument(ordinal, 0.0, body.like, {"words": words}, {}))
        return found

    def prepare(self, query: Query) -> Prepared:
        """Analyse a query and weigh it, for every shard. Raises BadQuery."""
        return self._prepare(query)

    def selected(self, selection: Selection) -> Selected:
        """Make the filters of a selection, for every shard. Raises BadQuery."""
        return self._select(selection)
