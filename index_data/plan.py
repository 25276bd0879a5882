"""A query made ready for an index: fields are known, texts are tokens, weights are numbers.

The plan is what shards and the one big index share. ``index_data.query`` makes it;
``index_data.assembly`` turns it into a query of tantivy's.

    Plan = Leaf | Group | Best | Nothing
    Leaf = Clause | Alike | Within | Everything      what is scored by itself

What is scored, and every Best, has a ``number`` that is unique in its plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from index_data.values import Value


@dataclass(frozen=True, slots=True)
class Clause:
    """Tokens that stand side by side in a field, scored by BM25 times ``weight``.

    ``places`` are those of the tokens where dropped words leave gaps, else empty.
    """

    number: int
    field: str
    tokens: tuple[str, ...]
    weight: float
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Alike:
    """Tokens side by side of which the last is only nearly known, scored ``weight``.

    It may differ in ``distance`` letters (typed, left out, added, or two changed over), which
    is 0 if there are several tokens; or be a beginning, if ``open_ended``. ``places`` are as
    in a Clause.
    """

    number: int
    field: str
    tokens: tuple[str, ...]
    distance: int
    open_ended: bool
    weight: float
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Within:
    """Values of a field between two bounds, each None for no bound, scored ``weight``.

    Values are as they are within the index (``index_data.values``).
    """

    number: int
    field: str
    low: Value | None
    high: Value | None
    weight: float
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Everything:
    """Every document, with score 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """No document."""


@dataclass(frozen=True, slots=True)
class Group:
    """All of ``must``, none of ``must_not``, and one of ``should`` when ``must`` is empty.

    ``must`` and ``should`` are never both empty. Scores are summed.
    """

    must: tuple[Plan, ...]
    should: tuple[Plan, ...]
    must_not: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Best:
    """Any of ``parts``, scored as the best of them and ``tie_breaker`` times the others."""

    number: int
    parts: tuple[Plan, ...]
    tie_breaker: float


Leaf: TypeAlias = Clause | Alike | Within | Everything
Plan: TypeAlias = Leaf | Group | Best | Nothing
NOTHING: Final = Nothing()


def label_of(leaf: Leaf) -> tuple[str, str]:
    """Return the field of a leaf and what it looks for there, as people read it."""
    match leaf:
        case Clause():
            return leaf.field, " ".join(leaf.tokens)
        case Alike():
            ending = "*" if leaf.open_ended else f"~{leaf.distance}"
            return leaf.field, " ".join(leaf.tokens) + ending
        case Within():
            low, high = ("*" if end is None else str(end) for end in (leaf.low, leaf.high))
            opening, closing = "{" if leaf.low_open else "[", "}" if leaf.high_open else "]"
            return leaf.field, f"{opening}{low} TO {high}{closing}"
        case Everything():
            return "", "*"


def numbered(plan: Plan, *, wanted_only: bool = False) -> Iterator[Leaf | Best]:
    """Yield the leaves of a plan and every Best in it; ``wanted_only`` leaves out the excluded."""
    match plan:
        case Clause() | Alike() | Within() | Everything():
            yield plan
        case Nothing():
            pass
        case Best():
            yield plan
            for part in plan.parts:
                yield from numbered(part, wanted_only=wanted_only)
        case Group():
            for part in plan.must + plan.should + (() if wanted_only else plan.must_not):
                yield from numbered(part, wanted_only=wanted_only)


def leaves_of(plan: Plan, *, wanted_only: bool = False) -> list[Leaf]:
    """Return the leaves of a plan; ``wanted_only`` leaves out the excluded."""
    parts = numbered(plan, wanted_only=wanted_only)
    return [part for part in parts if not isinstance(part, Best)]
