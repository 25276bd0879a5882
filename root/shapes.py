"""What a query looks like apart from its words, and whether that looks dangerous.

    parse json            bool( word:*x2) to 100
    +json "file like"     bool(+word:* phrase:*/2) to 100

Two queries of one shape cost a leaf about the same and take the same paths through its code,
so what is learned from one of them is a good guess for the next. Counts go by powers of two
and depths by powers of ten: in practice there are a few hundred shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, assert_never

from leaf.protocol import All, Bool, Fuzzy, Phrase, Prefix, Query, Range, Text, Word

NODES_DANGEROUS: Final = 64
"""Nobody types so many words. Beyond it a tree has no shape of its own but its size."""
TOKENS_DANGEROUS: Final = 32
"""Of words side by side: each one is a list of positions that is held open at once."""
DEPTH_DANGEROUS: Final = 5000
"""Results asked of every shard: the deeper half of what may be asked at all."""

PREFIX_LETTERS: Final = 2
"""With one letter less than this a prefix is a tenth of the dictionary, and of the documents."""

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


class Sketch(NamedTuple):
    """A tree without its words; how many nodes it has, how many words stand side by side in it
    at the most, and how many of its nodes may look up a large part of the dictionary.
    """

    shape: str
    nodes: int
    tokens: int
    patterns: int


def subject_of(
    query: Query, depth: int, body: bytes, selection: str = "", collection: str = ""
) -> Subject:
    """Return what is to be known of a query; ``body`` is the whole of it, encoded, and
    ``selection`` describes what it filters, sorts and counts by. The same query of another
    collection is another one.
    """
    sketch = sketched(query)
    shape = shape_of(sketch, depth) + selection
    within = f"{collection}:".encode()
    dangerous = is_dangerous(sketch, depth)
    return Subject(_key(within + shape.encode()), _key(within + body), dangerous, shape)


def shape_of(sketch: Sketch, depth: int) -> str:
    """Describe the structure of a query and how deep it goes."""
    small = sketch.nodes <= NODES_DANGEROUS
    tree = sketch.shape if small else f"tree of {_power_of_two(sketch.nodes)}"
    return f"{tree} to {_power_of_ten(depth)}"


def is_dangerous(sketch: Sketch, depth: int) -> bool:
    """Whether a query may cost a leaf so much that its shape is no guarantee.

    This is the place for kinds of nodes whose words decide what they cost.
    """
    return (
        depth > DEPTH_DANGEROUS
        or sketch.nodes > NODES_DANGEROUS
        or sketch.tokens > TOKENS_DANGEROUS
        or sketch.patterns > 0
    )


def sketched(node: Query) -> Sketch:
    """Return the sketch of a tree."""
    match node:
        case Word():
            return _text("word", node)
        case Phrase():
            return _text("phrase", node)
        case Prefix():
            return _prefix(node)
        case Fuzzy():
            return _text(f"fuzzy{node.distance}", node)
        case Range():
            return Sketch(f"range:{node.field}", 1, 0, 0)
        case Bool():
            return _bool(node)
        case All():
            return Sketch("all", 1, 0, 0)
        case _:
            assert_never(node)


def _prefix(node: Prefix) -> Sketch:
    """Describe a prefix: how many terms begin like it depends on how long it is."""
    found = _TOKEN.findall(node.text)
    letters = len(found[-1]) if found else 0
    sketch = _text(f"prefix{min(letters, PREFIX_LETTERS)}", node)
    return sketch._replace(patterns=1 if letters < PREFIX_LETTERS else 0)


def _text(kind: str, node: Text) -> Sketch:
    tokens = len(_TOKEN.findall(node.text)) or 1
    many = f"/{_power_of_two(tokens)}" if tokens > 1 else ""
    best = "" if node.tie_breaker == 1.0 else "!"
    return Sketch(f"{kind}:{node.field or '*'}{best}{many}", 1, tokens, 0)


def _bool(node: Bool) -> Sketch:
    """Describe what stands under each sign: each shape once, and how often."""
    nodes, tokens, patterns, shape = 1, 0, 0, "bool("
    for sign, part in (("+", node.must), (" ", node.should), ("-", node.must_not)):
        counts: dict[str, int] = {}
        for child in part:
            sketch = sketched(child)
            nodes += sketch.nodes
            tokens = max(tokens, sketch.tokens)
            patterns += sketch.patterns
            counts[sketch.shape] = counts.get(sketch.shape, 0) + 1
        for each, n in sorted(counts.items()):
            shape += sign + each + (f"x{_power_of_two(n)}" if n > 1 else "")
    return Sketch(shape + ")", nodes, tokens, patterns)


def _key(text: bytes) -> bytes:
    return blake2b(text, digest_size=KEY_BYTES).digest()


def _power_of_two(count: int) -> int:
    """Return the smallest power of two that is not less than ``count``, which is not 0."""
    return 1 << (count - 1).bit_length()


def _power_of_ten(count: int) -> int:
    """Return the smallest power of ten that is not less than ``count``, which is not 0."""
    return int(10 ** len(str(count - 1))) if count > 1 else 1
