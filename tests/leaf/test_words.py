"""How a word may go on, and which one may have been meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from index_data.build import build
from index_data.manifest import Field
from index_data.sources import Collection, Document
from leaf.protocol import FetchedDocument
from leaf.shard import Generation
from leaf.suggestion import Misspelt, SuggestBody
from leaf.words import LETTERS_MAX, alphabet, nearby

FIELDS = (
    Field("title", "text"),
    Field("tags", "text", multiple=True),
    Field("hidden", "text", default=False),
    Field("kind", "keyword"),
)
TEXTS = [
    "Parsing JSON with a Parser",
    "Parse the json quickly",
    "parser of parsers",
    "Größe und Große",
    "поиск слова",
    "Tiếng Việt",
    "東京都",
]

KINDS = ("Function", "class")


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    """Two shards of a few texts."""

    def read() -> Iterator[Document]:
        for number, text in enumerate(TEXTS):
            source = {
                "title": text,
                "tags": [text[:5], "json"],
                "hidden": "secretive",
                "kind": KINDS[number % 2],
            }
            yield Document(f"doc-{number}", source)

    folder = build(Collection("made", "words", FIELDS, read), tmp_path_factory.mktemp("i"), 2)
    return Generation.open(folder.folder, range(2))


def suggested(generation: Generation, **asked: object) -> list[FetchedDocument]:
    """What the leaf suggests, spelled as in the first shard."""
    return generation.suggest(SuggestBody(**asked), generation.shards[0])  # type: ignore[arg-type]


def test_a_word_goes_on_as_the_most_frequent_do(generation: Generation) -> None:
    """Each term once, with the documents of the whole that have it in one field."""
    found = [(word.id, word.score) for word in suggested(generation, prefix="pars")]
    assert [score for _, score in found] == [2.0, 2.0, 1.0]
    assert all(word.startswith("pars") for word, _ in found)
    assert suggested(generation, prefix="JSO")[0].score == float(len(TEXTS))
    assert suggested(generation, prefix="jso", k=1)[0].id == "json"
    assert len(suggested(generation, prefix="p", k=1)) == 1


def test_what_stands_before_the_last_word_is_kept(generation: Generation) -> None:
    """As it was typed, composed."""
    assert suggested(generation, prefix="Quick, jso")[0].id == "Quick, json"
    assert suggested(generation, prefix="a. tie\u0302")[0].id.startswith("a. ti")


def test_there_may_be_nothing_to_go_on_with(generation: Generation) -> None:
    """No such word, no word at all, or only in a field that is not looked in by default."""
    for prefix in ("xyz", "...", "", "secr"):
        assert suggested(generation, prefix=prefix) == []


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("jsno", "json"),
        ("jsn", "json"),
        ("jzon", "json"),
        ("Quikcly", "quickly"),
        ("поикс", "поиск"),
    ],
)
def test_a_word_may_have_been_meant_that_differs_in_a_letter(
    generation: Generation, word: str, other: str
) -> None:
    """Of any alphabet; the answer says which word it is for."""
    (meant,) = suggested(generation, words=(Misspelt(word),))
    assert (meant.id, meant.fields) == (other, {"for": word, "in": None})
    assert meant.score >= 1.0


@pytest.mark.parametrize(
    "word", ["json", "parsed", "zzzz", "js", "x" * (LETTERS_MAX + 1), "js0n", "", "secretiv"]
)
def test_a_word_that_is_known_or_near_none_stays(generation: Generation, word: str) -> None:
    """So do short and long ones, and what is no word."""
    assert suggested(generation, words=(Misspelt(word),)) == []


@pytest.mark.parametrize(
    ("word", "field", "other"),
    [
        ("jsno", "title", "json"),
        ("secretiv", "hidden", "secretive"),
        ("clas", "kind", "class"),
        ("Fucntion", "kind", "Function"),
    ],
)
def test_a_word_is_meant_as_it_is_found_in_its_field(
    generation: Generation, word: str, field: str, other: str
) -> None:
    """Any field of words: one that is not looked in by default, or of whole values."""
    (meant,) = suggested(generation, words=(Misspelt(word, field),))
    assert (meant.id, meant.fields) == (other, {"for": word, "in": field})


@pytest.mark.parametrize(
    ("word", "field"),
    [("quikcly", "tags"), ("json", "title"), ("jsno", "kind"), ("class", "kind"), ("jsno", "x")],
)
def test_what_a_field_has_not_was_not_meant_in_it(
    generation: Generation, word: str, field: str
) -> None:
    """Not what others have, and not what is there as it was typed."""
    assert suggested(generation, words=(Misspelt(word, field),)) == []


def test_near_words_differ_in_one_letter_or_the_order_of_two() -> None:
    """Left out, added, another, changed over."""
    near = set(nearby("abc"))
    assert {"ab", "bc", "abcd", "xabc", "xbc", "abx", "bac", "acb"} <= near
    assert not {"cba", "abxx", "a"} & near
    assert len(list(nearby("x" * LETTERS_MAX))) < 2000


def test_an_alphabet_is_that_of_the_word() -> None:
    """Small letters only."""
    assert alphabet("abc")[:3] == ["a", "b", "c"]
    assert "Z" not in alphabet("abc")
    assert {"п", "ж"} <= set(alphabet("слово"))
    assert "ж" not in alphabet("abc")
