"""The reference answers from one index over all documents of a generation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tantivy

from index_data import oracle
from index_data.build import build
from index_data.manifest import Field
from index_data.oracle import Oracle, words
from index_data.query import BadQuery
from index_data.segment import Rows, TooLarge, add_rows
from index_data.sources import BadLine, Collection, Document


@pytest.fixture
def reference(collection: Collection, tmp_path: Path) -> Oracle:
    """The oracle of forty documents in three shards."""
    return Oracle.open(build(collection, tmp_path, 3).folder)


def test_everything_matches_all_in_the_order_of_ids(reference: Oracle) -> None:
    """All documents score 1 and come in the order of ids."""
    total, hits = reference.search({"type": "all"}, 5)
    assert total == 40
    assert hits == [(f"doc-{i:02d}", 1.0) for i in range(5)]


def test_totals_and_order_are_those_of_one_index(reference: Oracle) -> None:
    """A word in every eighth document is found there, the shortest first."""
    total, hits = reference.search({"type": "word", "text": "word8"}, 10)
    assert total == 5
    assert {identity for identity, _ in hits} == {f"doc-{i:02d}" for i in (0, 8, 16, 24, 32)}
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_nothing_and_no_hits_are_answers(reference: Oracle) -> None:
    """A query without tokens has total 0; k of 0 has a total and no hits."""
    assert reference.search(words("..."), 10) == (0, [])
    assert reference.search(words("word8"), 0) == (5, [])
    assert reference.search(words("unheard"), 10) == (0, [])


def test_plain_words_are_any_of_them(reference: Oracle) -> None:
    """Words by themselves are wishes, not demands."""
    assert reference.search(words("word7 word8"), 1)[0] == 10


def test_a_bad_query_is_refused(reference: Oracle) -> None:
    """The reference refuses what leaves refuse."""
    with pytest.raises(BadQuery, match="unknown"):
        reference.search({"type": "word", "text": "a", "field": "nowhere"}, 1)


def test_documents_that_do_not_fit_one_index_are_refused(
    docstrings: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference of several segments would break ties otherwise, so there is none."""
    folder = build(docstrings, tmp_path, 2).folder

    def add_twice(index: tantivy.Index, fields: tuple[Field, ...], rows: Rows) -> None:
        add_rows(index, fields, rows)
        add_rows(index, fields, [(0, "again", b"{}")])

    monkeypatch.setattr(oracle, "add_rows", add_twice)
    with pytest.raises(TooLarge):
        Oracle.open(folder)


def test_the_library_counts_what_the_reckoner_does(tmp_path: Path) -> None:
    """A span of an integer field, its hits and a count of values: as found by looking at all."""
    fields = (Field("text", "text"), Field("kind", "keyword"), Field("year", "integer"))

    def read() -> Iterator[Document | BadLine]:
        for i in range(60):
            source = {"text": f"word{i % 3}", "kind": f"k{i % 4}", "year": 1980 + i}
            yield Document(f"d{i:02d}", source, f"record {i}")

    made = Collection("made", "sixty", fields, read)
    reference = Oracle.open(build(made, tmp_path, 3).folder)
    tree = words("word1")
    total, hits, counts = reference.counted(
        tree, ("year", 1990, 2010), {"kind": {"terms": {"field": "kind"}}}, 5
    )
    looked_at = reference.select(
        tree,
        {
            "filter": [{"field": "year", "gte": 1990, "lte": 2010}],
            "facets": {"kind": {"type": "terms", "field": "kind"}},
            "k": 5,
        },
    )
    assert (total, hits) == (looked_at["total"], looked_at["hits"])
    found = {bucket["key"]: bucket["doc_count"] for bucket in counts["kind"]["buckets"]}
    assert found == {b["value"]: b["count"] for b in looked_at["facets"]["kind"]["buckets"]}
    assert reference.counted(words("..."), ("year", 1990, 2010), {}, 5)[0] == 0
