"""The words of a generation: how one may go on, and which one may have been meant.

They are looked up in the statistics of the whole, so that every leaf gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

    def meant(
        self, word: str, field: str | None, spelled: Callable[[str, str], str]
    ) -> tuple[str, int] | None:
        """Return the most frequent word that differs in one letter from one that there is not,
        and how many documents have it; None where there is none, or the word is known.

        ``field`` is the one to look in. Of a keyword field, whole values are compared.
        ``spelled(field, term)`` is a term of a text field as documents spell it.
        """
        fields = self._fields if field is None else self._named.get(field, [])
        word = composed(word)
        if all(each.type == "text" for each in fields):
            word = word.lower()
        if not LETTERS_MIN <= len(word) <= LETTERS_MAX or not word.isalpha():
            return None
        if any(True for each in fields for _ in self._known([word], each)):
            return None
        near = list(dict.fromkeys(nearby(word)))
        found: dict[str, Known] = {}
        for each in fields:
            for other, known in self._known(near, each):
                if other not in found or known.documents > found[other].documents:
                    found[other] = known
        if not found:
            return None
        # Forms of one word are equally frequent, and some are no words: taken is the one that a
        # document has, else one that is as long, as most slips leave it.
        other, best = min(
            found.items(),
            key=lambda one: (-one[1].documents, abs(len(one[0]) - len(word)), one[0]),
        )
        if best.field.type == "text" and (text := spelled(best.field.name, best.term)) in found:
            other = text
        return other, best.documents

    def _known(self, words: list[str], field: Field) -> Iterator[tuple[str, Known]]:
        """Yield the words that a field has, each with its term."""
        terms = [(word, word) for word in words]
        if field.type == "text":
            line = " ".join(words)
            placed = text_analyser(field).placed(line)
            terms = [(line[token.start : token.end], token.text) for token in placed]
        for word, term in terms:
            if count := self._statistics.count(field.name, term):
                yield word, Known(term, field, count)


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
