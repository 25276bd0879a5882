"""Shards together are one index: the same totals, the same order, the same scores."""

from __future__ import annotations

import random
import re
import shutil
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from index_data.build import build
from index_data.manifest import (
    STATISTICS_FILE,
    BadManifest,
    Damaged,
    encode,
    read_manifest,
    shard_folder,
)
from index_data.oracle import Oracle
from index_data.pydocs import pydocs
from index_data.sources import Collection, Document
from leaf.errors import BadQuery
from leaf.protocol import All, Bool, Fuzzy, Phrase, Prefix, Query, Word
from leaf.shard import Generation
from root.query import combined

SHARDS = 16
K = 10
QUERIES = 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generation of the docstrings of some packages, about eight hundred, in 16 shards."""
    sources = tmp_path_factory.mktemp("packages")
    for package in ("json", "email", "http", "logging", "urllib", "xml", "asyncio", "argparse.py"):
        (sources / package).symlink_to(Path(sysconfig.get_paths()["stdlib"]) / package)
    return build(pydocs((sources,)), tmp_path_factory.mktemp("index"), SHARDS).folder


@pytest.fixture(scope="module")
def generation(folder: Path) -> Generation:
    """All shards of it."""
    return Generation.open(folder, range(SHARDS))


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Oracle:
    """One index over the same documents."""
    return Oracle.open(folder)


# --- the same as one index ---------------------------------------------------------------


def gathered(generation: Generation, query: Query) -> tuple[int, list[tuple[str, float]]]:
    """What a root makes of all shards: rescore all that may be among the best, then rank."""
    prepared = generation.prepare(query)
    total, candidates = 0, []
    for number, shard in generation.shards.items():
        matched, scores, ordinals = shard.search(prepared, 2 * K)
        total += matched
        candidates += [(s, o, number) for s, o in zip(scores, ordinals, strict=True)]
    candidates.sort(key=lambda candidate: (-candidate[0], candidate[1]))
    if not candidates:
        return total, []
    cut = candidates[:K][-1][0] * (1 - 2 * generation.card.length_deviation)
    finalists = [
        document
        for score, ordinal, number in candidates
        if score >= cut
        for document in generation.shards[number].fetch(prepared, [ordinal], (), ())
    ]
    finalists.sort(key=lambda document: (-document.score, document.ordinal))
    return total, [(document.id, document.score) for document in finalists[:K]]


class Asker:
    """Makes queries of every kind from words and phrases of real texts."""

    def __init__(self, generation: Generation, seed: str) -> None:
        self.rng = random.Random(seed)
        self.bodies = [
            re.findall(r"\w+", document.fields["body"])
            for shard in generation.shards.values()
            for document in shard.fetch(None, list(shard._ordinals), ("body",), ())
        ]
        self.bodies = [body for body in self.bodies if len(body) > 3]

    def word(self, field: str | None = None) -> Word:
        text = self.rng.choice(self.rng.choice(self.bodies))
        return Word(text, field, self.rng.choice([1.0, 1.0, 2.5]))

    def words(self, least: int, most: int) -> tuple[Word, ...]:
        return tuple(self.word() for _ in range(self.rng.randint(least, most)))

    def phrase(self) -> Phrase:
        body = self.rng.choice(self.bodies)
        start = self.rng.randrange(len(body) - 2)
        length = self.rng.choice([2, 3])
        return Phrase(" ".join(body[start : start + length]), self.rng.choice([None, "body"]))

    def pattern(self) -> Query:
        """A word of which not all letters are known, or a phrase of which the end is not."""
        text = self.word().text
        field, boost = self.rng.choice([None, None, "name", "body"]), self.rng.choice([1.0, 2.5])
        match self.rng.randrange(3):
            case 0:
                return Prefix(text[: self.rng.randint(1, 5)], field, boost)
            case 1:
                return Prefix(self.phrase().text[:-1], field, boost)
            case _:
                at = self.rng.randrange(len(text))
                other = text[:at] + self.rng.choice(["", "e", text[at] * 2]) + text[at + 1 :]
                return Fuzzy(other or "a", self.rng.choice([1, 2]), field, boost)

    def query(self) -> Query:
        match self.rng.randrange(9):
            case 6:
                return self.pattern()
            case 7:
                return Bool(must=(self.pattern(),), should=self.words(1, 2))
            case 8:
                query = Bool(should=(*self.words(1, 3), self.phrase(), self.pattern()))
                return combined(query, self.rng.choice([0.0, 0.3]))
            case 0:
                return Bool(should=self.words(1, 4))
            case 1:
                return Bool(should=(self.word("name"), self.word("body"), self.word("body")))
            case 2:
                return Bool(should=(self.phrase(), *self.words(0, 2)))
            case 3:
                return Bool(must=self.words(1, 2), should=self.words(0, 2))
            case 4:
                return Bool(should=self.words(1, 3), must_not=self.words(1, 1))
            case _:
                kind = Word(self.rng.choice(["method", "class", "function"]), "kind")
                return Bool(must=(kind, Bool(should=self.words(1, 3))), must_not=(self.phrase(),))


def same(
    hits: list[tuple[str, float]], expected: list[tuple[str, float]], tolerance: float
) -> bool:
    """Whether ids and order are equal and scores within a tolerance."""
    return [identity for identity, _ in hits] == [identity for identity, _ in expected] and all(
        abs(score - other) <= tolerance
        for (_, score), (_, other) in zip(hits, expected, strict=True)
    )


def test_five_hundred_mixed_queries_equal_the_oracle(
    generation: Generation, oracle: Oracle
) -> None:
    """The best ten, their order, their scores and the total are those of one single index."""
    asker = Asker(generation, "mixed queries")
    wrong = []
    for _ in range(QUERIES):
        query = asker.query()
        total, hits = gathered(generation, query)
        expected_total, expected = oracle.search(msgspec.to_builtins(query), K)
        assert total == expected_total, query
        if not same(hits, expected, 1e-3):
            wrong.append((query, hits, expected))
    assert len(wrong) <= QUERIES // 100, wrong[:3]


@pytest.mark.parametrize(
    "query",
    [
        All(),
        Bool(must_not=(Word("json"),)),
        Bool(should=(Word("json"), All())),
        Bool(must=(All(),), should=(Word("json", "body"),)),
        Bool(should=(Word("json", boost=0.0), Word("parse"))),
        Word("json.decoder"),
        Word("json.dumps", "path"),
        Word("json", "module"),
        Bool(should=(Bool(must=(Word("json"), Word("parse"))), Word("encoder"))),
        Word("json", tie_breaker=0.0),
        Word("json", tie_breaker=0.4),
        Bool(must=(Word("json", tie_breaker=0.1), Phrase("file like", tie_breaker=0.0))),
        Prefix("pars"),
        Prefix("parsing"),
        Prefix("e"),
        Prefix("json dec"),
        Prefix("file objects", "body"),
        Prefix("json.d", "path"),
        Prefix("pars", tie_breaker=0.0),
        Fuzzy("jsno", 1),
        Fuzzy("objcet", 2, "body", boost=3.0),
        Fuzzy("mehtod", 1, "kind"),
        Fuzzy("file jsno", 1, "body"),
        Bool(should=(Fuzzy("jsno", tie_breaker=0.5), Word("parse")), must_not=(Prefix("x"),)),
        Bool(must_not=(Prefix("e", "body"), Fuzzy("clas", 1, "kind"))),
    ],
    ids=str,
)
def test_queries_of_special_kinds_equal_the_oracle(
    generation: Generation, oracle: Oracle, query: Query
) -> None:
    """So do those that match everything, exclude only, nest, or are a keyword or dotted name."""
    total, hits = gathered(generation, query)
    expected_total, expected = oracle.search(msgspec.to_builtins(query), K)
    assert total == expected_total > 0
    assert same(hits, expected, 1e-4), (hits, expected)


def test_phase_one_scores_are_within_the_promised_bound(generation: Generation) -> None:
    """A score before rescoring is within length_deviation of the final one."""
    asker, bound = Asker(generation, "bounds"), generation.card.length_deviation
    assert bound < 0.02
    for _ in range(50):
        prepared = generation.prepare(asker.query())
        for shard in generation.shards.values():
            _, scores, ordinals = shard.search(prepared, 5)
            final = [d.score for d in shard.fetch(prepared, ordinals, (), ())]
            for first, last in zip(scores, final, strict=True):
                assert last * (1 - bound) <= first <= last / (1 - bound)


# --- searching ---------------------------------------------------------------------------


def test_equal_scores_come_in_the_order_of_ordinals(generation: Generation) -> None:
    """Ties are broken by the lower ordinal, and k cuts the list but not the total."""
    shard = generation.shards[0]
    total, scores, ordinals = shard.search(generation.prepare(All()), 7)
    assert total == shard.documents
    assert scores == [1.0] * 7
    assert ordinals == sorted(ordinals)
    assert shard.search(generation.prepare(All()), 0) == (total, [], [])
    assert len(shard.search(generation.prepare(All()), 10**6)[1]) == total


def test_words_that_a_shard_lacks_match_nothing_there(generation: Generation) -> None:
    """A query for what is not there has no hits, and no error."""
    for query in (Word("unheardof"), Word("..."), Phrase("json unheardof"), Bool()):
        prepared = generation.prepare(query)
        for shard in generation.shards.values():
            assert shard.search(prepared, K) == (0, [], [])
            assert shard.fetch(prepared, [shard._ordinals[0]], (), ())[0].score == 0.0


def test_a_bad_query_is_refused_by_its_member(generation: Generation) -> None:
    """No shard is asked what no shard can answer."""
    with pytest.raises(BadQuery, match="titel") as caught:
        generation.prepare(Word("json", "titel"))
    assert caught.value.field == "query.field"


def test_many_threads_get_the_same_answers(generation: Generation) -> None:
    """Everything may be called from several threads at once."""
    asker = Asker(generation, "threads")
    queries = [asker.query() for _ in range(100)]

    def work(query: Query) -> list[Any]:
        prepared = generation.prepare(query)
        answers = []
        for shard in generation.shards.values():
            found = shard.search(prepared, K)
            answers.append((found, shard.fetch(prepared, found[2][:2], None, ("body", "path"))))
        return answers

    alone = [work(query) for query in queries]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, queries)) == alone


# --- fetching ----------------------------------------------------------------------------


def holder_of(generation: Generation, identity: str) -> tuple[int, int]:
    """The shard and the ordinal of a document."""
    for number, shard in generation.shards.items():
        for ordinal in shard.lookup(identity):
            return number, ordinal
    raise LookupError(identity)


def test_documents_come_with_the_fields_and_highlights_asked_for(generation: Generation) -> None:
    """Fields asked for and there, highlights asked for and matching; excluded words are not."""
    number, ordinal = holder_of(generation, "json.dumps")
    query = Bool(should=(Word("serialize", "body"), Word("dumps")), must_not=(Word("formatted"),))
    prepared, shard = generation.prepare(query), generation.shards[number]
    (document,) = shard.fetch(prepared, [ordinal], ("name", "nope"), ("body", "kind", "nope"))
    assert document.id == "json.dumps"
    assert document.fields == {"name": "dumps"}
    assert set(document.highlights) == {"body"}
    assert "<em>Serialize</em> ``obj`` to a JSON formatted" in document.highlights["body"]


def test_a_document_can_be_fetched_without_a_query(generation: Generation) -> None:
    """A look-up by id has all fields, score 0 and no highlight, in the order asked for."""
    number, ordinal = holder_of(generation, "json.loads")
    shard = generation.shards[number]
    other = next(o for o in shard._ordinals if o != ordinal)
    documents = shard.fetch(None, [ordinal, other, ordinal], None, ("body",))
    assert [document.ordinal for document in documents] == [ordinal, other, ordinal]
    assert documents[0].fields["kind"] == "function"
    assert (documents[0].score, documents[0].highlights) == (0.0, {})


def test_an_ordinal_of_another_shard_is_an_error(generation: Generation) -> None:
    """What a shard does not hold is not silently left out."""
    number, ordinal = holder_of(generation, "json.loads")
    other = generation.shards[(number + 1) % SHARDS]
    for absent in (ordinal, -1, 2**63):
        with pytest.raises(LookupError):
            other.fetch(None, [absent], None, ())


def test_an_unknown_id_is_nowhere(generation: Generation) -> None:
    """Only the whole id, exactly, is found."""
    for shard in generation.shards.values():
        assert shard.lookup("json.load.") == shard.lookup("JSON.loads") == shard.lookup("") == []


def test_integers_survive_in_fields(tmp_path: Path) -> None:
    """An integer of 63 bits comes back with every digit."""
    generation = one_document({"n": 2**63 - 1, "body": "x"}, tmp_path)
    (document,) = generation.shards[0].fetch(None, [0], None, ())
    assert document.fields["n"] == 2**63 - 1


def one_document(source: dict[str, Any], directory: Path) -> Generation:
    """A generation of one document."""

    def read() -> Iterator[Document]:
        yield Document("only", source)

    collection = Collection("one", "one", pydocs().fields, read)
    return Generation.open(build(collection, directory, 1).folder, [0])


def test_long_phrases_and_empty_fields_have_finite_scores(tmp_path: Path) -> None:
    """A collection in which a field has no token at all still scores."""
    generation = one_document({"body": "one two three"}, tmp_path)
    shard = generation.shards[0]
    for query in (Word("one two three"), Bool(should=(Word("one"), Word("x", "name")))):
        prepared = generation.prepare(query)
        _, scores, ordinals = shard.search(prepared, 1)
        (document,) = shard.fetch(prepared, ordinals, None, ())
        assert 0.0 < document.score == pytest.approx(scores[0])


# --- opening -----------------------------------------------------------------------------


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A generation to spoil."""
    return Path(shutil.copytree(folder, tmp_path / folder.name))


def test_a_damaged_shard_is_refused_and_the_rest_served(copy: Path) -> None:
    """A wrong byte, a missing file or a missing shard costs that shard only."""
    store = next((copy / shard_folder(3)).glob("*.store"))
    content = bytearray(store.read_bytes())
    content[len(content) // 2] ^= 1
    store.write_bytes(content)
    next((copy / shard_folder(4)).glob("*.idx")).unlink()
    shutil.rmtree(copy / shard_folder(5))
    generation = Generation.open(copy, [0, 3, 4, 5, 99])
    assert set(generation.shards) == {0}
    assert set(generation.refused) == {3, 4, 5, 99}
    assert "checksum" in generation.refused[3]
    assert "no shard 99" in generation.refused[99]


def test_damaged_statistics_refuse_the_generation(copy: Path) -> None:
    """Without the whole's statistics no shard's scores would be right."""
    with (copy / STATISTICS_FILE).open("ab") as file:
        file.write(b"x")
    with pytest.raises(Damaged, match=STATISTICS_FILE):
        Generation.open(copy, [0])


def test_data_of_another_analyser_is_refused(copy: Path) -> None:
    """Tokens of another analyser would not be found, so the index must be built again."""
    manifest = msgspec.structs.replace(read_manifest(copy), analyser="other")
    (copy / "manifest.json").write_bytes(encode(manifest))
    with pytest.raises(BadManifest, match="build the index again"):
        Generation.open(copy, [0])


def test_only_the_shards_asked_for_are_opened(folder: Path) -> None:
    """A leaf holds its own shards; the card is the same on every leaf."""
    generation = Generation.open(folder, [2, 1])
    assert list(generation.shards) == [1, 2]
    assert generation.card == read_manifest(folder).card()
    assert len(generation.card.documents) == SHARDS
