"""Text of any script becomes tokens that its own words, typed otherwise, become too."""

from __future__ import annotations

import pytest

from index_data.analysis import (
    ANALYSER,
    STEMMED,
    WITH_STOP_WORDS,
    analyser_name,
    composed,
    text_analyser,
    tokens_of,
)
from index_data.manifest import Analysis, Field

FIELD = Field("body", "text")


def tokens(text: str, **analysis: bool | str) -> list[str]:
    """The tokens of a text with this analysis."""
    field = Field("body", "text", analysis=Analysis(**analysis))  # type: ignore[arg-type]
    return [token.text for token in tokens_of(field, text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Parsing, parse(parsed)", ["pars", "pars", "pars"]),
        ("json.dumps snake_case", ["json", "dump", "snake", "case"]),
        ("Tiếng Việt", ["tieng", "viet"]),
        ("東京都に行く", ["東", "京", "都", "に", "行", "く"]),
        ("ABC漢字", ["abc", "漢", "字"]),
        ("ภาษา", ["ภ", "า", "ษ", "า"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مرحبًا بالعالم", ["مرحبًا", "بالعالم"]),
        ("👍🏽 ok ❤️", ["👍", "ok", "❤"]),
        ("x" * 64 + " short", ["short"]),
        ("...", []),
    ],
)
def test_words_of_every_script_are_told_apart(text: str, found: list[str]) -> None:
    """Letters with their marks are words; where no spaces are written, characters are."""
    assert tokens(text) == found


def test_how_an_accent_was_typed_does_not_matter() -> None:
    """A letter and its accent are one, whether composed or not, folded or not."""
    assert tokens("e\u0301te\u0301") == tokens("\u00e9t\u00e9") == tokens("ete")
    assert tokens("e\u0301te\u0301", fold_accents=False) == tokens("été", fold_accents=False)
    assert tokens("été", fold_accents=False) != tokens("ete", fold_accents=False)


def test_places_are_where_the_tokens_stand_in_the_composed_text() -> None:
    """Offsets count characters, so that snippets never cut one."""
    text = composed("ne\u0301e 東京")
    assert [text[t.start : t.end] for t in tokens_of(FIELD, text)] == ["née", "東", "京"]
    assert [t.place for t in tokens_of(FIELD, text)] == [0, 1, 2]


def test_a_language_stems_and_drops_its_stop_words() -> None:
    """Stop words leave gaps, and without a language words stay as they are."""
    assert tokens("Häuser Haus", language="german") == ["haus", "haus"]
    field = Field("body", "text", analysis=Analysis(stop_words=True))
    assert [(t.text, t.place) for t in tokens_of(field, "state of the art")] == [
        ("state", 0),
        ("art", 3),
    ]
    assert tokens("Parsing", language="none") == ["parsing"]


@pytest.mark.parametrize("language", STEMMED)
def test_every_language_that_is_named_has_a_stemmer(language: str) -> None:
    """What the schema may name can be built, with stop words where it says so."""
    Field("body", "text", analysis=Analysis(language=language))
    assert tokens("abc", language=language, stop_words=language in WITH_STOP_WORDS)


@pytest.mark.parametrize("language", sorted({*STEMMED} - {*WITH_STOP_WORDS}))
def test_languages_without_stop_words_are_those_that_lack_a_list(language: str) -> None:
    """The list of those that have one leaves none out."""
    with pytest.raises(ValueError, match=language):
        tokens("abc", language=language, stop_words=True)


def test_one_analysis_is_one_analyser_with_a_name_of_its_own() -> None:
    """Fields that are analysed alike share it; others never have the same name."""
    assert text_analyser(FIELD) is text_analyser(Field("title", "text", weight=2.0))
    analyses = [
        Analysis(language, stop_words, fold)
        for language in ("none", "english", "german")
        for stop_words in (False, True)
        for fold in (False, True)
    ]
    assert len({analyser_name(analysis) for analysis in analyses}) == len(analyses)
    assert ANALYSER
