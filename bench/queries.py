"""Queries as people type them, drawn from the texts that are searched, by a seed.

One to four words, common and rare alike; two fields; phrases that do occur; required and
excluded words. The kinds and their shares stand in KINDS. What the language has besides, for
comparing answers rather than times, stands in RARE_KINDS; with filters, orders and facets, pages
one after the other, and words that are only begun.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from bench.selections import Typed, selection

WORD: Final = re.compile(r"[A-Za-z]{2,20}")
"""What is drawn: plain words, so that a query means the same to every analyser."""

PAGE: Final = 10
"""Hits of a page."""

PHRASES_MAX: Final = 20_000
"""Pairs and triples kept to draw from: plenty, and of bounded memory."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What queries are made of: ``words`` most frequent first, ``phrases`` as they occur,
    and the names of two text fields, the short one first. ``typed`` are the fields that are no
    text.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...]
    fields: tuple[str, str]
    typed: tuple[Typed, ...] = ()

    def __post_init__(self) -> None:
        if not (self.words and self.phrases):
            raise ValueError("the texts hold no two words in a row to make queries of")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and how the fields of a word are combined: the best of them and so much of the
    others, or None for their sum. ``selection`` are members of a request; ``pages`` are asked
    for one after the other, by cursor.
    """

    q: str
    tie_breaker: float | None = None
    selection: Mapping[str, Any] = field(default_factory=dict)
    pages: int = 1

    @property
    def request(self) -> dict[str, Any]:
        """The body of a request for the first page."""
        asked = {"q": self.q, "k": PAGE, "fields": [], "highlight": [], **self.selection}
        if self.tie_breaker is not None:
            asked |= {"combine": "best", "tie_breaker": self.tie_breaker}
        return asked

    def __str__(self) -> str:
        more = f" {orjson.dumps(self.selection).decode()}" if self.selection else ""
        return f"{self.q}{more}" + (f" ({self.pages} pages)" if self.pages > 1 else "")


def vocabulary(texts: Iterable[str], fields: tuple[str, str]) -> Vocabulary:
    """Collect words and phrases; the same texts in the same order give the same vocabulary."""
    counts: Counter[str] = Counter()
    phrases: dict[str, None] = {}
    for text in texts:
        words = WORD.findall(text.lower())
        counts.update(words)
        if len(phrases) < PHRASES_MAX:
            phrases.update(_phrases(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return Vocabulary(tuple(ranked), tuple(phrases), fields)


def mixed(words: Vocabulary, rng: random.Random, count: int) -> list[str]:
    """``count`` queries in the root's query language."""
    kinds, shares = zip(*KINDS, strict=True)
    return [kind(words, rng) for kind in rng.choices(kinds, shares, k=count)]


def every_kind(words: Vocabulary, rng: random.Random, count: int) -> list[Asked]:
    """``count`` queries, each kind as often as any other, one in four by the best field. Where
    there are fields that are no text, every second with filters, orders and facets; one in five
    for several pages.
    """
    kinds = [kind for kind, _ in KINDS] + [*RARE_KINDS]
    kinds += [_range] * any(one.ranged for one in words.typed)
    return [_asked(kinds[i % len(kinds)](words, rng), words, rng) for i in range(count)]


def _asked(q: str, words: Vocabulary, rng: random.Random) -> Asked:
    chosen = words.typed and rng.random() < 0.5
    return Asked(
        q,
        rng.choice(TIE_BREAKERS),
        selection(words.typed, rng) if chosen else {},
        rng.choice(PAGES),
    )


def begun(words: Vocabulary, rng: random.Random, count: int) -> list[str]:
    """``count`` texts of which the last word is only begun."""
    return [
        f"{_word(words, rng)} " * rng.randint(0, 1) + _word(words, rng)[: rng.randint(1, 5)]
        for _ in range(count)
    ]


def _word(words: Vocabulary, rng: random.Random) -> str:
    """Zipf-like: every order of magnitude of the ranking is equally likely."""
    return words.words[int(len(words.words) ** rng.random()) - 1]


def _several(words: Vocabulary, rng: random.Random, most: int) -> str:
    return " ".join(_word(words, rng) for _ in range(rng.randint(1, most)))


def _plain(words: Vocabulary, rng: random.Random) -> str:
    return _several(words, rng, 4)


def _phrase(words: Vocabulary, rng: random.Random) -> str:
    phrase = f'"{rng.choice(words.phrases)}"'
    return phrase if rng.random() < 0.5 else f"{phrase} {_word(words, rng)}"


def _field(words: Vocabulary, rng: random.Random) -> str:
    first, second = words.fields
    return f"{first}:{_word(words, rng)} {second}:{_word(words, rng)}"


def _required(words: Vocabulary, rng: random.Random) -> str:
    return f"+{_word(words, rng)} {_several(words, rng, 3)}"


def _excluded(words: Vocabulary, rng: random.Random) -> str:
    return f"{_several(words, rng, 2)} -{_word(words, rng)}"


KINDS: Final[tuple[tuple[Callable[[Vocabulary, random.Random], str], float], ...]] = (
    (_plain, 0.4),
    (_phrase, 0.15),
    (_field, 0.15),
    (_required, 0.15),
    (_excluded, 0.15),
)
"""Each kind of query and its share: half are plain words or nearly so, as in query logs."""


PAGES: Final = (1, 1, 1, 1, 3)

TIE_BREAKERS: Final = (None, None, None, None, None, None, 0.0, 0.3)


def _joined(words: Vocabulary, rng: random.Random) -> str:
    a, b, c, d = (_word(words, rng) for _ in range(4))
    return rng.choice(
        (
            f"{a} AND {b}",
            f"{a} OR {b} AND {c}",
            f"({a} OR {b}) AND NOT {c}",
            f"{a} AND ({b} OR {c}) {d}",
            f"NOT {a} AND NOT ({b} {c})",
            f"+({a} {b}) -({c} AND {d})",
        )
    )


def _boosted(words: Vocabulary, rng: random.Random) -> str:
    a, b, c = (_word(words, rng) for _ in range(3))
    return f"{a}^{rng.choice(BOOSTS)} ({b} {words.fields[1]}:({a} {c}))^{rng.choice(BOOSTS)}"


BOOSTS: Final = ("0.25", "0.7", "2", "12.5")


def _prefix(words: Vocabulary, rng: random.Random) -> str:
    beginning = f"{_word(words, rng)[: rng.randint(1, 6)]}*"
    field = rng.choice(("", "", *(f"{name}:" for name in words.fields)))
    return rng.choice((f"{field}{beginning}", f"+{field}{beginning} {_word(words, rng)}"))


def _phrase_prefix(words: Vocabulary, rng: random.Random) -> str:
    return f'"{rng.choice(words.phrases)[:-1].strip()}"*'


def _fuzzy(words: Vocabulary, rng: random.Random) -> str:
    """A word with one or two slips of the finger."""
    word = _word(words, rng)
    for _ in range(rng.randint(1, 2)):
        word = _mistyped(word, rng)
    required = f"+{word}~1 {_word(words, rng)}"
    return rng.choice((f"{word}~", f"{word}~1", f"{words.fields[1]}:{word}~", required))


def _mistyped(word: str, rng: random.Random) -> str:
    at = rng.randrange(len(word))
    before, letter, after = word[:at], word[at], word[at + 1 :]
    other = rng.choice(f"{word}e")
    return rng.choice(
        (
            f"{before}{other}{after}",
            f"{before}{letter}{other}{after}",
            f"{before}{after[:1]}{letter}{after[1:]}",
            f"{before}{after}" or word,
        )
    )


def _range(words: Vocabulary, rng: random.Random) -> str:
    one = rng.choice([one for one in words.typed if one.ranged])
    field, values = one.field.name, sorted(one.values)
    first, last = sorted(rng.choices(range(len(values)), k=2))
    opening, closing = ("[", "]") if first == last else (rng.choice("[{"), rng.choice("]}"))
    low, high = (rng.choice((value, value, value, "*")) for value in (values[first], values[last]))
    span = f"{field}:{opening}{low} TO {high}{closing}"
    return rng.choice((f"{span}", f"+{span} {_word(words, rng)}", f"{field}:{values[0]} {span}^2"))


RARE_KINDS: Final = (_joined, _boosted, _prefix, _phrase_prefix, _fuzzy)


def _phrases(text: str) -> dict[str, None]:
    """Two and three words with single spaces between: what stands side by side."""
    runs = re.findall(r"[a-z]{2,20}(?: [a-z]{2,20})+", text.lower())
    found: dict[str, None] = {}
    for run in runs:
        words = run.split()
        for i in range(len(words) - 1):
            found[" ".join(words[i : i + 2 + i % 2])] = None
    return found
