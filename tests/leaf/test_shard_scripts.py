"""Texts in many scripts, and values of every type, through a real build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from index_data.analysis import composed
from index_data.build import build
from index_data.manifest import Analysis, Field
from index_data.sources import BadLine, Collection, Document
from leaf.protocol import Phrase, Query, Word
from leaf.shard import Generation

FIELDS = (
    Field("body", "text"),
    Field("german", "text", default=False, analysis=Analysis("german")),
    Field("stopped", "text", default=False, multiple=True, analysis=Analysis(stop_words=True)),
    Field("tags", "keyword", default=False, multiple=True),
    Field("n", "integer", default=False),
    Field("f", "float", default=False, multiple=True),
    Field("at", "date", default=False),
    Field("ok", "boolean", default=False),
)
SOURCES: dict[str, dict[str, Any]] = {
    "vi": {"body": "Tiếng Việt là ngôn ngữ của người Việt"},
    "vi-nfd": {"body": "Tie\u0302\u0301ng Vie\u0323\u0302t"},
    "zh": {"body": "北京大学是一所综合性大学"},
    "ja": {"body": "東京都に行きました。サーバーを再起動する"},
    "ko": {"body": "한국어를 배우고 있습니다"},
    "th": {"body": "ภาษาไทยเขียนติดกัน"},
    "ar": {"body": "مرحبا بالعالم العربي"},
    "hi": {"body": "हिन्दी एक भाषा है"},
    "emoji": {"body": "great job 👍🏽 and a family 👩‍👩‍👧"},
    "marks": {"body": "x\u0301y\u0302 & <b>"},
    "de": {"german": "Die Häuser am Fluß, Donaudampfschiffe"},
    "stop": {"stopped": ["nothing here", "the state of the art is high"]},
    "values": {"tags": ["a", "b", "a", 2**63 - 1], "n": 2**63 - 1, "f": [1, 2.5], "ok": True},
    "date": {"at": "0001-01-01", "n": -(2**63)},
}


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    """All of them in three shards."""

    def read() -> Iterator[Document | BadLine]:
        for identity, source in SOURCES.items():
            yield Document(identity, source)

    folder = tmp_path_factory.mktemp("scripts")
    built = build(Collection("made", "scripts", FIELDS, read), folder, 3).folder
    return Generation.open(built, range(3))


def found(generation: Generation, query: Query) -> dict[str, str]:
    """What a query finds: a highlight by id, as far as there is one."""
    prepared = generation.prepare(query)
    hits: dict[str, str] = {}
    for shard in generation.shards.values():
        _, _, ordinals = shard.search(prepared, 10)
        for document in shard.fetch(prepared, ordinals, (), ("body", "german", "stopped")):
            hits[document.id] = next(iter(document.highlights.values()), "")
    return hits


@pytest.mark.parametrize(
    ("text", "hits", "marked"),
    [
        ("tiếng", {"vi", "vi-nfd"}, "Tiếng"),
        ("viet", {"vi", "vi-nfd"}, "Việt"),
        ("Vie\u0323\u0302t", {"vi", "vi-nfd"}, "Việt"),
        ("大学", {"zh"}, "大学"),
        ("学大", set(), ""),
        ("京都", {"ja"}, "京都"),
        ("サーバー", {"ja"}, "サーバ"),
        ("한국어", {"ko"}, "한국어"),
        ("ไทย", {"th"}, "ไทย"),
        ("بالعالم", {"ar"}, "بالعالم"),
        ("भाषा", {"hi"}, "भाषा"),
        ("👍", {"emoji"}, "👍🏽"),
        ("👧", {"emoji"}, "👩‍👩‍👧"),
        ("x\u0301y\u0302", {"marks"}, "x\u0301y\u0302"),
    ],
)
def test_every_script_is_found_and_marked_whole(
    generation: Generation, text: str, hits: set[str], marked: str
) -> None:
    """A word finds the texts that have it, however it is typed; what is marked is whole."""
    highlights = found(generation, Word(text))
    assert set(highlights) == hits
    for piece in highlights.values():
        inside = "".join(re.findall("<em>(.*?)</em>", piece))
        assert set(inside) <= set(composed(marked))
        assert inside
        assert "\ufffd" not in piece


def test_a_field_is_analysed_in_its_language(generation: Generation) -> None:
    """German words are found by their stems; compounds are not taken apart."""
    assert set(found(generation, Word("Haus", "german"))) == {"de"}
    assert set(found(generation, Word("fluss", "german"))) == {"de"}
    assert not found(generation, Word("Dampf", "german"))


def test_a_dropped_word_of_a_phrase_stands_for_any(generation: Generation) -> None:
    """Phrases keep the gaps that stop words leave, and stop words alone find nothing."""
    assert set(found(generation, Phrase("state of the art", "stopped"))) == {"stop"}
    assert not found(generation, Phrase("state art", "stopped"))
    assert not found(generation, Word("the", "stopped"))
    assert "state" in found(generation, Word("state", "stopped"))["stop"]


def test_values_of_several_are_found_by_each(generation: Generation) -> None:
    """A keyword field finds any of its values, integers by all their digits."""
    for text in ("a", "b", str(2**63 - 1)):
        assert set(found(generation, Word(text, "tags"))) == {"values"}
