"""The words of a generation: how one may go on, and which one may have been meant.

They are looked up in the statistics of the whole, so that every leaf gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from index_data.analysis import beginnings_of, composed, text_analyser
from index_data.manifest import Field
from index_data.statistics import Statistics

LETTERS_MIN: Final = 3
LETTERS_MAX: Final = 24
"""Shorter words are near everything, and longer ones are no words. Of 24 letters there are some
two thousand near ones: a few hundredths of a second."""

_BLOCK: Final = 0x80
"""Unicode lays out alphabets in blocks of so many letters, or parts of that."""


class Known(NamedTuple):
    """A term, the field that has it in most documents, and in how many."""

    term: str
    field: Field
    documents: int


class Words:
    """The words of a generation: of its default text fields, where no other is named."""

    def __init__(self, fields: Iterable[Field], statistics: Statistics) -> None:
        self._named = {field.name: [field] for field in fields if field.scored}
        scored = [field for (field,) in self._named.values()]
        self._fields = [field for field in scored if field.type == "text" and field.default]
        self._statistics = statistics

    def going_on(self, text: str, k: int) -> tuple[str, list[Known]]:
        """Return what stands before the last word of a text, and terms that begin like it.

        The most frequent first, ``k`` at the most.
        """
        before, best = "", dict[str, Known]()
        for field in self._fields:
            begun = beginnings_of(field, text)
            if not begun:
                continue
            before = composed(text)[: begun[-1].start]
            for term, count in self._statistics.most_frequent(field.name, begun[-1].text, k):
                if term not in best or count > best[term].documents:
                    best[term] = Known(term, field, count)
        ordered = sorted(best.values(), key=lambda known: (-known.documents, known.term))
        return before, ordered[:k]

    def meant(self, word: str, field: str | None = None) -> tuple[str, int] | None:
        """Return the most frequent word that differs in one letter from one that there is not,
        and how many documents have it; None where there is none, or the word is known.

        ``field`` is the one to look in. Of a keyword field, whole values are compared.
        """
        fields = self._fields if field is None else self._named.get(field, [])
        word = composed(word)
        if all(each.type == "text" for each in fields):
            word = word.lower()
        if not LETTERS_MIN <= len(word) <= LETTERS_MAX or not word.isalpha():
            return None
        if any(self._counted([word], each) for each in fields):
            return None
        near = list(dict.fromkeys(nearby(word)))
        found: dict[str, int] = {}
        for each in fields:
            for other, count in self._counted(near, each):
                found[other] = max(count, found.get(other, 0))
        if not found:
            return None
        # Forms of one word are equally frequent: most slips leave a word as long as it was.
        return min(found.items(), key=lambda one: (-one[1], abs(len(one[0]) - len(word)), one[0]))

    def _counted(self, words: list[str], field: Field) -> list[tuple[str, int]]:
        """Return the words that a field has, and how many documents have each."""
        if field.type == "keyword":
            counted = [(word, self._statistics.count(field.name, word)) for word in words]
            return [(word, count) for word, count in counted if count]
        line = " ".join(words)
        return [
            (line[token.start : token.end], count)
            for token in text_analyser(field).placed(line)
            if (count := self._statistics.count(field.name, token.text))
        ]


def nearby(word: str) -> Iterator[str]:
    """Yield what differs from a word in one letter, or in the order of two."""
    letters = alphabet(word)
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in letters:
            yield before + letter + after
            yield before + letter + after[1:]


def alphabet(word: str) -> list[str]:
    """Return the small letters of the blocks of Unicode that a word's letters are from."""
    blocks = sorted({ord(letter) // _BLOCK for letter in word})
    places = (chr(block * _BLOCK + i) for block in blocks for i in range(_BLOCK))
    return [letter for letter in places if letter.isalpha() and letter == letter.lower()]
