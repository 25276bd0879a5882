"""Snippets show matches, are safe as HTML, and never cut inside a word or a character."""

from __future__ import annotations

import html
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from index_data.analysis import text_analyser
from index_data.manifest import Field
from leaf.snippets import SNIPPET_CHARS, Token, snippet

words = st.sampled_from(
    [
        "json",
        "<b>",
        "&amp;",
        "e\u0301te\u0301",
        "naïve",
        "👩‍👩‍👧",
        "日本",
        "loads",
        "\n\n",
        "x" * 90,
        '"q"',
    ]
)
texts = st.lists(words, max_size=120).map(" ".join)


def tokens_of(text: str) -> list[Token]:
    """A text's tokens, as the shard makes them."""
    found = text_analyser(Field("body", "text")).placed(text)
    return [Token(t.text, t.start, t.end) for t in found]


def cut(text: str, *wanted: str) -> str | None:
    """The snippet of a text for some tokens."""
    return snippet(text, tokens_of(text), set(wanted))


def plain(piece: str) -> str:
    """A snippet as a person reads it, without ellipses."""
    return html.unescape(re.sub(r"</?em>", "", piece)).removeprefix("… ").removesuffix(" …")


@given(texts)
def test_a_snippet_is_a_piece_of_the_text(text: str) -> None:
    """Unescaped and unmarked it is found in the text, spaces aside; without a match it is None."""
    piece = cut(text, "json", "load")
    assert (piece is None) == (not re.search("json|loads", text))
    if piece is not None:
        assert plain(piece) in " ".join(text.split())
        assert "<em>" in piece
        # The last character may be of several parts, which stay together.
        assert len(plain(piece)) <= SNIPPET_CHARS + 4


@given(texts)
def test_nothing_of_the_text_is_markup(text: str) -> None:
    """The only tags are ours, in pairs."""
    piece = cut(text, "json", "ete", "b") or ""
    assert re.sub(r"<em>[^<>]*</em>", "", piece).count("<") == 0


@given(texts)
def test_accents_stay_with_their_letters(text: str) -> None:
    """No mark that combines stands first in a piece or behind a tag."""
    piece = cut(text, "json", "ete") or ""
    for part in re.split(r"</?em>", piece):
        assert not part or unicodedata.category(part[0]) != "Mn"


def test_short_texts_are_whole() -> None:
    """A text that fits is not cut, and every match in it is marked."""
    assert cut("Parse JSON, then parse again", "pars") == (
        "<em>Parse</em> JSON, then <em>parse</em> again"
    )


def test_cut_ends_show_an_ellipsis() -> None:
    """Both ends that are cut are shown, between words."""
    text = "before " * 50 + "json" + " after" * 50
    piece = cut(text, "json")
    assert piece is not None
    assert re.fullmatch(r"… (before )+<em>json</em>( after)+ …", piece)


def test_the_piece_with_most_different_words_wins() -> None:
    """One place with both words is better than one with the same word three times."""
    text = "json json json " + "other " * 60 + "parse json"
    assert "<em>parse</em> <em>json</em>" in (cut(text, "json", "pars") or "")


def test_text_is_escaped() -> None:
    """What looks like markup in a text is shown as text."""
    assert cut('<script>alert("json")</script>', "json") == (
        "&lt;script&gt;alert(&quot;<em>json</em>&quot;)&lt;/script&gt;"
    )
