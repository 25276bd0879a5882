"""How text becomes tokens: one way for all scripts, and what a field's language adds.

1. The text is brought into composed form (NFC), so that it does not matter how a letter and
   its accent were typed.
2. A word is letters and digits that stand together, with the marks on them. Scripts that are
   written without spaces have no such words: of Chinese, Japanese, Korean, Thai, Lao, Khmer
   and Burmese every character is a token, and so is every emoji. Tokens that come out of one
   word of a query have to stand side by side, so such a word is found wherever it stands,
   the same everywhere and without a dictionary.
3. Lower case; tokens of ``TOKEN_BYTES_END`` bytes or more are dropped.
4. The field's: stop words are dropped, accents are folded, words are stemmed.

A token keeps its place: between two words with a dropped one between them there is a gap.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
import tantivy

from index_data.manifest import Analysis, Field

ANALYSER: Final = "scripts|nfc|lowercase|short64/1"
"""Written in the manifest: data made with another analyser is not searched with this one."""

TOKEN_BYTES_END: Final = 64
"""Runs this long are encoded data, not words."""

NO_LANGUAGE: Final = "none"
STEMMED: Final = (
    "arabic",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "greek",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
)
"""Languages with a stemmer."""

WITH_STOP_WORDS: Final = (
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "russian",
    "spanish",
    "swedish",
)
"""Languages with a list of stop words."""

_WITHOUT_SPACES: Final = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Extended_Pictographic}"
)
_SEGMENTS: Final = (
    rf"[{_WITHOUT_SPACES}]"
    rf"|[[\p{{L}}\p{{N}}]--[{_WITHOUT_SPACES}]][[\p{{L}}\p{{N}}\p{{M}}]--[{_WITHOUT_SPACES}]]*"
)

_ANALYSERS_KEPT: Final = 64
"""As many as a schema has fields; there are fewer combinations in use."""


class Placed(NamedTuple):
    """A token: its text, its place among the tokens, and where it stands in the text."""

    text: str
    place: int
    start: int
    end: int


class Analyser:
    """Makes tokens of text. May be used from any thread."""

    def __init__(self, analysis: Analysis) -> None:
        """Raise ValueError for a language that there is none of."""
        builder = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(_SEGMENTS))
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.remove_long(TOKEN_BYTES_END))
        )
        if analysis.stop_words:
            builder = builder.filter(tantivy.Filter.stopword(analysis.language))
        if analysis.fold_accents:
            builder = builder.filter(tantivy.Filter.ascii_fold())
        if analysis.language != NO_LANGUAGE:
            builder = builder.filter(tantivy.Filter.stemmer(analysis.language))
        self.native = builder.build()

    def analyze(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return self.native.analyze(composed(text))

    def placed(self, text: str) -> list[Placed]:
        """Return the tokens of a text that is in composed form, with their places."""
        found = self.native.pre_tokenize(text).tokens
        return [Placed(t.text, t.position, t.char_offset_from, t.char_offset_to) for t in found]


def composed(text: str) -> str:
    """Return a text in the form in which it is analysed: it looks the same."""
    return unicodedata.normalize("NFC", text)


def tokens_of(field: Field, text: str) -> list[Placed]:
    """Return the tokens that a text would have in a text field."""
    return text_analyser(field).placed(composed(text))


def beginnings_of(field: Field, text: str) -> list[Placed]:
    """Return the tokens of a text of which the last is the beginning of a word: no beginning
    is a stop word or has a stem.
    """
    plain = msgspec.structs.replace(field.analysis, language=NO_LANGUAGE, stop_words=False)
    return _analyser(plain).placed(composed(text))


@lru_cache(_ANALYSERS_KEPT)
def _analyser(analysis: Analysis) -> Analyser:
    return Analyser(analysis)


def text_analyser(field: Field) -> Analyser:
    """Return the analyser of a text field."""
    return _analyser(field.analysis)


def analyser_name(analysis: Analysis) -> str:
    """Return what tantivy's schema calls an analyser."""
    stop_words = "-stop" if analysis.stop_words else ""
    folded = "-fold" if analysis.fold_accents else ""
    return f"hedgerow-{analysis.language}{stop_words}{folded}"
