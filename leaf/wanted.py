"""Which tokens of a text are why it was found: what its snippet shows and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from index_data.plan import Alike, Clause


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tokens by what is known of them: all, how they begin, or all but a few letters."""

    tokens: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()
    nearly: tuple[tuple[str, int], ...] = ()

    def __contains__(self, token: object) -> bool:
        """Whether a token of a text is wanted."""
        if not isinstance(token, str):
            return False
        return (
            token in self.tokens
            or token.startswith(self.beginnings)
            or any(is_near(token, wanted, distance) for wanted, distance in self.nearly)
        )

    def and_of(self, leaf: Clause | Alike) -> Wanted:
        """Return what is wanted here and what a leaf of a plan finds."""
        known, last = leaf.tokens, leaf.tokens[-1]
        if isinstance(leaf, Clause) or not (leaf.open_ended or leaf.distance):
            return replace(self, tokens=self.tokens.union(known))
        wanted = replace(self, tokens=self.tokens.union(known[:-1]))
        if leaf.open_ended:
            return replace(wanted, beginnings=(*self.beginnings, last))
        return replace(wanted, nearly=(*self.nearly, (last, leaf.distance)))


NOT_WANTED: Final = Wanted()


def is_near(one: str, other: str, distance: int) -> bool:
    """Whether two tokens differ in no more letters than ``distance``.

    A difference is a letter typed, left out, or added, or two neighbours changed over, each
    place once: the distance that tantivy's automaton accepts.
    """
    if abs(len(one) - len(other)) > distance:
        return False
    start = _common(zip(one, other, strict=False))
    one, other = one[start:], other[start:]
    end = _common(zip(reversed(one), reversed(other), strict=False))
    return _differences(one[: len(one) - end], other[: len(other) - end], distance) <= distance


def _common(pairs: zip[tuple[str, str]]) -> int:
    """Count the pairs of equal letters before the first of different ones."""
    count = 0
    for a, b in pairs:
        if a != b:
            break
        count += 1
    return count


def _differences(one: Sequence[str], other: Sequence[str], most: int) -> int:
    """Return the distance of two texts; more than ``most`` is as good as any such number."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
        if min(row) > most and min(before) > most:
            return most + 1
    return row[-1]
