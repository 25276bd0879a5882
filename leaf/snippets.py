"""Snippets: the piece of a text that shows best why it was found, as HTML.

Text is escaped, matches stand in ``<em>``, and an end that is cut off shows an ellipsis.
Cuts fall between words, and never between a letter and its accents.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Container, Sequence
from typing import Final, NamedTuple

SNIPPET_CHARS: Final = 160
"""Two lines of a result page."""

SCAN_CHARS_MAX: Final = 50_000
"""Only so much of a text is analysed again for its snippet: about two milliseconds."""

_SPACE: Final = re.compile(r"\s+")
_ELLIPSIS: Final = "…"

_JOINER: Final = "\u200d"
_SKINS: Final = ("\U0001f3fb", "\U0001f3ff")
"""What makes one emoji of several, and the first and last that give one a colour."""


class Token(NamedTuple):
    """A token of a text and the characters it was made of."""

    text: str
    start: int
    end: int


def snippet(text: str, tokens: Sequence[Token], wanted: Container[str]) -> str | None:
    """Return the best piece of a text as HTML, None where no wanted token occurs."""
    hits = [i for i, token in enumerate(tokens) if token.text in wanted]
    if not hits:
        return None
    start, end = _window(text, tokens, _best_span(tokens, hits))
    marked = [tokens[i] for i in hits if start <= tokens[i].start and tokens[i].end <= end]
    return _render(text, start, end, marked)


def _best_span(tokens: Sequence[Token], hits: Sequence[int]) -> tuple[int, int]:
    """Return the characters from the first to the last match of the best group of matches.

    Best are most different words, then most matches, then the earliest.
    """
    best, best_worth = (0, 0), (0, 0)
    for at, first in enumerate(hits):
        limit = tokens[first].start + SNIPPET_CHARS
        group = [tokens[first]]
        for hit in hits[at + 1 :]:
            if tokens[hit].end > limit:
                break
            group.append(tokens[hit])
        worth = (len({token.text for token in group}), len(group))
        if worth > best_worth:
            best, best_worth = (group[0].start, group[-1].end), worth
    return best


def _window(text: str, tokens: Sequence[Token], span: tuple[int, int]) -> tuple[int, int]:
    """Return where the snippet starts and ends: the span in the middle, cut between words."""
    if len(text) <= SNIPPET_CHARS:
        return 0, len(text)
    first, last = span
    spare = max(0, SNIPPET_CHARS - (last - first))
    start = max(0, min(first - spare // 2, len(text) - SNIPPET_CHARS))
    end = min(len(text), max(start + SNIPPET_CHARS, last))
    if start > 0:
        start = min((t.start for t in tokens if start <= t.start <= first), default=first)
    if end < len(text):
        end = max((t.end for t in tokens if last <= t.end <= end), default=last)
    return _from_first(text, start), _with_marks(text, end)


def _with_marks(text: str, end: int) -> int:
    """Return the first place at or after ``end`` that is not inside a character."""
    while _is_inside(text, end):
        end += 1
    return end


def _from_first(text: str, start: int) -> int:
    """Return the last place at or before ``start`` that is not inside a character."""
    while _is_inside(text, start):
        start -= 1
    return start


def _is_inside(text: str, at: int) -> bool:
    """Whether what people see as one character stands on both sides of a place."""
    if not 0 < at < len(text):
        return False
    return (
        text[at - 1] == _JOINER
        or _SKINS[0] <= text[at] <= _SKINS[1]
        or unicodedata.category(text[at]) in {"Mn", "Mc", "Me", "Cf"}
    )


def _render(text: str, start: int, end: int, marked: Sequence[Token]) -> str:
    parts: list[str] = []
    at = start
    for token in marked:
        first, stop = _from_first(text, token.start), _with_marks(text, token.end)
        if first >= at:  # else it is a part of the character before
            parts += (_escaped(text[at:first]), "<em>", _escaped(text[first:stop]), "</em>")
            at = stop
    parts.append(_escaped(text[at:end]))
    before = f"{_ELLIPSIS} " if start > 0 else ""
    after = f" {_ELLIPSIS}" if end < len(text) else ""
    return f"{before}{''.join(parts).strip()}{after}"


def _escaped(text: str) -> str:
    return html.escape(_SPACE.sub(" ", text), quote=True)
