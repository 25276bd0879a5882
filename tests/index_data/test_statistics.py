"""The statistics file answers what was written, and BM25 is BM25."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index_data.manifest import Damaged
from index_data.statistics import Statistics, bm25, idf, write_statistics

tokens = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=50)
@given(st.dictionaries(tokens, st.integers(1, 2**32 - 1), max_size=60))
def test_every_token_is_found_with_its_count(
    tmp_path_factory: pytest.TempPathFactory, frequencies: dict[str, int]
) -> None:
    """Each token written is found, and one that was not written has frequency 0."""
    path = tmp_path_factory.mktemp("statistics") / "file"
    write_statistics(path, 10, {"body": 70, "none": 0}, {"body": frequencies, "none": {}})
    statistics = Statistics(path)
    assert {token: statistics.frequency("body", token) for token in frequencies} == frequencies
    assert statistics.frequency("body", "0123456789abcdef") == 0
    assert statistics.frequency("none", "a") == 0
    assert statistics.average_length("body") == 7.0
    assert statistics.documents == 10


@settings(max_examples=50)
@given(st.dictionaries(tokens, st.integers(1, 99), max_size=60), st.text("ab日", max_size=2))
def test_the_most_frequent_terms_with_a_beginning_are_found(
    tmp_path_factory: pytest.TempPathFactory, frequencies: dict[str, int], beginning: str
) -> None:
    """Equally frequent ones in the order of their bytes; a count is that of the term."""
    frequencies |= {f"{beginning}{i}": i for i in range(1, 4)}
    path = tmp_path_factory.mktemp("statistics") / "file"
    write_statistics(path, 10, {"none": 0, "body": 70}, {"none": {}, "body": frequencies})
    statistics = Statistics(path)
    matching = [term for term in frequencies if term.startswith(beginning)]
    matching.sort(key=lambda term: (-frequencies[term], term.encode()))
    for k in (1, 2, 100):
        found = statistics.most_frequent("body", beginning, k)
        assert found == [(term, frequencies[term]) for term in matching[:k]]
    assert statistics.most_frequent("none", beginning, 5) == []
    assert statistics.count("body", matching[0]) == frequencies[matching[0]]


@given(st.integers(1, 10**9), st.data())
def test_idf_is_positive_and_falls_with_frequency(documents: int, data: st.DataObject) -> None:
    """Rarer terms weigh more, and even a term that all documents have weighs above 0."""
    frequency = data.draw(st.integers(1, documents))
    assert idf(documents, frequency) > 0.0
    assert idf(documents, frequency - 1) >= idf(documents, frequency)


def test_bm25_saturates_and_prefers_short_documents() -> None:
    """Repetition counts less and less, up to 2.2; the same count in a longer field counts less."""
    assert bm25(1, 10, 10) == pytest.approx(1.0)
    assert bm25(1, 10, 10) < bm25(2, 10, 10) < bm25(1000, 10, 10) < 2.2
    assert bm25(1, 20, 10) < bm25(1, 10, 10) < bm25(1, 5, 10)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"HGSTAT1\n", b"HGSTAT1\n\xff\xff\xff\xff{", b"z" * 99]
)
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """What is no statistics file is damaged, in one sentence that names the file."""
    path = tmp_path / "statistics.bin"
    path.write_bytes(content)
    with pytest.raises(Damaged, match=r"statistics\.bin"):
        Statistics(path)
