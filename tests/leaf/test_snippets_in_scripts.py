"""What was found is marked, in every script, and no character is broken by it."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

import pytest

from index_data.build import build
from index_data.manifest import Analysis, Field
from index_data.sources import Collection, Document
from leaf.protocol import Bool, Fuzzy, Phrase, Prefix, Query, Word
from leaf.shard import Generation

TEXTS = {
    "code": "Parsing <b>JSON</b> & parsers: json.dumps serializes objects.",
    "vietnamese": "Tiếng Việt có dấu thanh",
    "decomposed": unicodedata.normalize("NFD", "Tiếng Việt có dấu thanh"),
    "chinese": "分布式搜索引擎的查詢語言",
    "japanese": "東京都に行く。カタカナで検索する",
    "korean": "한국어 검색 엔진",
    "arabic": "مرحبًا بالعالم في البحث",
    "hindi": "हिन्दी भाषा में खोज",
    "thai": "ภาษาไทย",
    "german": "Die Donaudampfschifffahrtsgesellschaft prüft Häuser",
    "emoji": "family 👩‍👩‍👧 thumbs 👍🏽 heart ❤️ flag 🇻🇳 end",
    "long": f"{'é́ 👩‍👩‍👧 ' * 60}needle{' 日本 ﷽' * 60}",
}
JOINING = "\u200d\ufe0f\U0001f3fd"
FIELDS = (Field("body", "text"), Field("german", "text", analysis=Analysis("german")))


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    """One shard of all the texts."""

    def read() -> Iterator[Document]:
        for name, text in TEXTS.items():
            yield Document(name, {"body": text, "german": text if name == "german" else ""})

    collection = Collection("made", "scripts", FIELDS, read)
    return Generation.open(build(collection, tmp_path_factory.mktemp("index"), 1).folder, [0])


def found(generation: Generation, query: Query, field: str = "body") -> dict[str, str]:
    """The highlight of each document that a query finds, where it has one, by id."""
    prepared, shard = generation.prepare(query), generation.shards[0]
    _, _, ordinals = shard.search(prepared, len(TEXTS))
    documents = shard.fetch(prepared, ordinals, (), (field,))
    return {document.id: document.highlights.get(field, "") for document in documents}


@pytest.mark.parametrize(
    ("query", "identity", "marked"),
    [
        (Prefix("pars"), "code", ["Parsing", "parsers"]),
        (Prefix("parsing"), "code", ["Parsing"]),
        (Fuzzy("jsno", 1), "code", ["JSON", "json"]),
        (Fuzzy("serialzies", 2), "code", ["serializes"]),
        (Prefix("json dum"), "code", ["JSON", "json", "dumps"]),
        (Word("tieng"), "vietnamese", ["Tiếng"]),
        (Word("Tiếng"), "decomposed", ["Tiếng"]),
        (Prefix(unicodedata.normalize("NFD", "Việ")), "vietnamese", ["Việt"]),
        (Fuzzy("thahn", 1), "decomposed", ["thanh"]),
        (Word("搜索"), "chinese", ["搜", "索"]),
        (Prefix("查詢"), "chinese", ["查", "詢"]),
        (Phrase("東京"), "japanese", ["東", "京"]),
        (Word("検索"), "japanese", ["検", "索"]),
        (Word("검색"), "korean", ["검", "색"]),
        (Prefix("بالع"), "arabic", ["بالعالم"]),
        (Fuzzy("مرحبًاا", 1), "arabic", ["مرحبًا"]),
        (Word("भाषा"), "hindi", ["भाषा"]),
        (Prefix("हिन्"), "hindi", ["हिन्दी"]),
        (Prefix("Donaudampf"), "german", ["Donaudampfschifffahrtsgesellschaft"]),
        (Word("prüft", "body"), "german", ["prüft"]),
        (Word("👍🏽"), "emoji", ["👍🏽"]),
        (Word("👧"), "emoji", ["👩‍👩‍👧"]),
        (Word("👩‍👩‍👧"), "emoji", ["👩‍👩‍👧"]),
        (Word("❤️"), "emoji", ["❤️"]),
        (Word("needle"), "long", ["needle"]),
    ],
)
def test_what_was_found_is_marked_as_a_whole(
    generation: Generation, query: Query, identity: str, marked: list[str]
) -> None:
    """Whole words or characters, with all of their marks."""
    snippet = found(generation, query)[identity]
    shown = [html.unescape(piece) for piece in re.findall("<em>(.*?)</em>", snippet)]
    assert shown == [unicodedata.normalize("NFC", piece) for piece in marked]


def test_a_language_marks_what_its_stemmer_has_joined(generation: Generation) -> None:
    """A field of German finds the plural by the singular."""
    assert "<em>Häuser</em>" in found(generation, Word("Haus", "german"), "german")["german"]


def test_what_is_excluded_is_not_marked(generation: Generation) -> None:
    """Nor is what another field was asked for."""
    query = Bool(must=(Prefix("pars"), Fuzzy("jsno", 1, "german", 1.0)))
    assert found(generation, query) == {}
    query = Bool(must=(Prefix("serial"),), must_not=(Fuzzy("jason", 1, "german"),))
    assert found(generation, query)["code"].count("<em>") == 1


@pytest.mark.parametrize("identity", TEXTS)
@pytest.mark.parametrize("letters", [1, 2, 3])
def test_no_snippet_breaks_a_character_or_the_page(
    generation: Generation, identity: str, letters: int
) -> None:
    """Marks stay with their letters, joined emoji together, and all else is escaped."""
    text = unicodedata.normalize("NFC", TEXTS[identity])
    whole = " ".join(text.split())
    for word in {word[:letters] for word in text.split()}:
        snippet = found(generation, Prefix(word)).get(identity)
        if not snippet:
            continue
        plain = html.unescape(re.sub("</?em>", "", snippet))
        plain = plain.removeprefix("… ").removesuffix(" …")
        start = whole.index(plain)
        after = whole[start + len(plain) :][:1]
        for first in plain[0], after:
            assert first == "" or (not unicodedata.combining(first) and first not in JOINING)
        for before in whole[start - 1 : start], plain[-1]:
            assert before != "\u200d"
        assert not re.search("[<>&]", re.sub("</?em>|&(lt|gt|amp|quot|#x27);", "", snippet))
