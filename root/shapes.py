"""What a query looks like apart from its words, and whether that looks dangerous.

    parse json            bool( word:*x2) to 100
    +json "file like"     bool(+word:* phrase:*/2) to 100

Two queries of one shape cost a leaf about the same and take the same paths through its code,
so what is learned from one of them is a good guess for the next. Counts go by powers of two
and depths by powers of ten: in practice there are a few hundred shapes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, assert_never

from leaf.protocol import All, Bool, Phrase, Query, Word

NODES_DANGEROUS: Final = 64
"""Nobody types so many words. Beyond it a tree has no shape of its own but its size."""
TOKENS_DANGEROUS: Final = 32
"""Of words side by side: each one is a list of positions that is held open at once."""
DEPTH_DANGEROUS: Final = 5000
"""Results asked of every shard: the deeper half of what may be asked at all."""

KEY_BYTES: Final = 16

_TOKEN: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Subject:
    """A query as suspicion sees it. ``shape`` and ``words`` are keys of equal size; ``words``
    is of this very query, and of no other.
    """

    shape: bytes
    words: bytes
    dangerous: bool
    described: str


def subject_of(query: Query, depth: int, body: bytes) -> Subject:
    """Return what is to be known of a query; ``body`` is the whole of it, encoded."""
    shape = shape_of(query, depth)
    return Subject(_key(shape.encode()), _key(body), is_dangerous(query, depth), shape)


def shape_of(query: Query, depth: int) -> str:
    """Describe the structure of a query and how deep it goes, without its words."""
    nodes = _nodes(query)
    tree = _shape(query) if nodes <= NODES_DANGEROUS else f"tree of {_power_of_two(nodes)}"
    return f"{tree} to {_power_of_ten(depth)}"


def is_dangerous(query: Query, depth: int) -> bool:
    """Whether a query may cost a leaf so much that its shape is no guarantee.

    This is the place for kinds of nodes whose words decide what they cost.
    """
    return (
        depth > DEPTH_DANGEROUS
        or _nodes(query) > NODES_DANGEROUS
        or _longest(query) > TOKENS_DANGEROUS
    )


def _key(text: bytes) -> bytes:
    return blake2b(text, digest_size=KEY_BYTES).digest()


def _children(node: Query) -> tuple[Query, ...]:
    return (*node.must, *node.should, *node.must_not) if isinstance(node, Bool) else ()


def _nodes(node: Query) -> int:
    return 1 + sum(_nodes(child) for child in _children(node))


def _longest(node: Query) -> int:
    """Return how many tokens stand side by side, at the most, in any text of a tree."""
    if isinstance(node, Word | Phrase):
        return _tokens(node)
    return max((_longest(child) for child in _children(node)), default=0)


def _tokens(node: Word | Phrase) -> int:
    return len(_TOKEN.findall(node.text)) or 1


def _shape(node: Query) -> str:
    match node:
        case Word() | Phrase():
            kind = "word" if isinstance(node, Word) else "phrase"
            tokens = _power_of_two(_tokens(node))
            return f"{kind}:{node.field or '*'}" + (f"/{tokens}" if tokens > 1 else "")
        case Bool():
            parts = (("+", node.must), (" ", node.should), ("-", node.must_not))
            return f"bool({''.join(_part(sign, nodes) for sign, nodes in parts)})"
        case All():
            return "all"
        case _:
            assert_never(node)


def _part(sign: str, nodes: Iterable[Query]) -> str:
    """Describe what stands under one sign: each shape once, and how often."""
    counts = Counter(_shape(node) for node in nodes)
    return "".join(
        f"{sign}{shape}" + (f"x{_power_of_two(n)}" if n > 1 else "")
        for shape, n in sorted(counts.items())
    )


def _power_of_two(count: int) -> int:
    """Return the smallest power of two that is not less than ``count``, which is not 0."""
    return 1 << (count - 1).bit_length()


def _power_of_ten(count: int) -> int:
    """Return the smallest power of ten that is not less than ``count``, which is not 0."""
    return int(10 ** len(str(count - 1))) if count > 1 else 1
