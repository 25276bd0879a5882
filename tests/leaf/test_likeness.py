"""Which words tell a document from others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from index_data.build import build
from index_data.manifest import Field
from index_data.sources import Collection, Document
from leaf.likeness import TELLING_MAX
from leaf.shard import Generation
from leaf.suggestion import SuggestBody

FIELDS = (
    Field("title", "text", weight=3.0),
    Field("tags", "text", multiple=True),
    Field("hidden", "text", default=False),
    Field("kind", "keyword"),
)
SOURCES: dict[str, dict[str, Any]] = {
    "parser": {"title": "Parsing a parse tree", "tags": ["trees", "common"], "hidden": "secret"},
    "tree": {"title": "The tree", "tags": ["common", "common"], "hidden": "secret"},
    "leaf": {"title": "To parse leaves", "tags": ["common"], "kind": "k"},
    "other": {"title": "common", "tags": ["leaves"]},
    "東京": {"title": "東京 поиск", "tags": ["Größe"]},
    "京": {"title": "京都 Поиск", "tags": ["größe"]},
    "none": {"kind": "k"},
    "alone": {"title": "unheard unseen"},
    "long": {"title": " ".join(f"w{i}" for i in range(200))},
    "longer": {"title": " ".join(f"w{i}" for i in range(300))},
}


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    """Three shards of a few documents."""

    def read() -> Iterator[Document]:
        for identity, source in SOURCES.items():
            yield Document(identity, source)

    folder = build(Collection("made", "likeness", FIELDS, read), tmp_path_factory.mktemp("i"), 3)
    return Generation.open(folder.folder, range(3))


def words(generation: Generation, identity: str) -> list[str] | None:
    """The words of a document: one shard has it, or none."""
    found = [
        document
        for shard in generation.shards.values()
        for document in generation.suggest(SuggestBody(like=identity), shard)
    ]
    assert len(found) <= 1
    assert all(document.id == identity for document in found)
    return list(found[0].fields["words"]) if found else None


def test_what_is_frequent_here_and_rare_elsewhere_comes_first(generation: Generation) -> None:
    """Forms of a word are one, spelled as the document has it first, and fields are weighed."""
    found = words(generation, "parser")
    assert found is not None
    assert found[0] == "Parsing"
    assert found.index("tree") < found.index("common")
    assert not {"parse", "trees", "secret"} & set(found)


def test_a_word_of_this_document_alone_is_none(generation: Generation) -> None:
    """It finds no other; nor has a document without text any words."""
    assert words(generation, "alone") == []
    assert words(generation, "none") == []
    assert words(generation, "nowhere") is None


def test_words_are_of_any_script(generation: Generation) -> None:
    """As they are spelled, which comes to the same."""
    assert set(words(generation, "東京") or ()) == {"京", "поиск", "Größe"}


def test_there_are_only_so_many_words(generation: Generation) -> None:
    """Of equal ones always the same."""
    found = words(generation, "long")
    assert found == sorted(f"w{i}" for i in range(200))[:TELLING_MAX]
