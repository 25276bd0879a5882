"""A query tree as a person would type it: the way back from ``root.language``.

What ``parse`` gives for a printed tree is that tree, if ``parse`` can give it at all: no text
is empty, no Bool is empty or has one ``should`` alone, and bounds are text. Tie breakers are not
part of the language.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, assert_never

from leaf.protocol import All, Bool, Bound, Fuzzy, Phrase, Prefix, Query, Range, Text, Word

_PLAIN: Final = re.compile(r"[\w.:+-]+")
_QUOTED: Final = re.compile(r'["\\]')
_SPECIAL: Final = re.compile(r'[\s"()\\*~^:]|^[+\-\[{]|^(?=(?:AND|OR|NOT)\Z)')
"""Where a backslash goes: before all that means something, and before a word that joins."""


def printed(query: Query) -> str:
    """Return a tree in the language. Raises ValueError where it has no words for it."""
    if isinstance(query, Bool):
        signed = (("+", query.must), ("", query.should), ("-", query.must_not))
        parts = [sign + _part(child) for sign, children in signed for child in children]
        if not parts:
            raise ValueError("a query for nothing cannot be typed")
        return " ".join(parts)
    return _part(query)


def _part(node: Query) -> str:
    match node:
        case Word():
            return _text(node, _escaped(node.text))
        case Phrase():
            return _text(node, f'"{_quoted(node.text)}"')
        case Prefix():
            return _text(node, f"{_escaped(node.text)}*")
        case Fuzzy():
            return _text(node, f"{_escaped(node.text)}~{node.distance}")
        case Range():
            return _range(node)
        case Bool():
            return f"({printed(node)})"
        case All():
            return "*"
        case _:
            assert_never(node)


def _text(node: Text | Range, text: str) -> str:
    field = "" if node.field is None else f"{node.field}:"
    boost = "" if node.boost == 1.0 else "^" + f"{Decimal(repr(node.boost)):f}".removesuffix(".0")
    return f"{field}{text}{boost}"


def _range(node: Range) -> str:
    low = _bound(node.gte if node.gt is None else node.gt)
    high = _bound(node.lte if node.lt is None else node.lt)
    opened, closed = "[" if node.gt is None else "{", "]" if node.lt is None else "}"
    return _text(node, f"{opened}{low} TO {high}{closed}")


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return "*"
    text = str(bound).lower() if isinstance(bound, bool) else str(bound)
    return text if _PLAIN.fullmatch(text) else f'"{_quoted(text)}"'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)


def _quoted(text: str) -> str:
    return _QUOTED.sub(lambda found: f"\\{found[0]}", text)
