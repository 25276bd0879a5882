"""What a person types, as a query tree.

    parse json          either word, the more the better
    "parse json"        side by side, in this order
    name:loads          in this field only
    +json -xml          must, must not

The tree is the wire contract's (``leaf.protocol``): parsed once here, sent as data, analysed
where it is searched. A query that cannot be read is a BadRequest that says where.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple, assert_never

from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    TEXT_BYTES_MAX,
    All,
    Bool,
    Phrase,
    Query,
    Word,
)
from root.errors import BadRequest

_CLAUSE: Final = re.compile(
    r"""\s*
    (?P<sign>[+-]?)
    (?:(?P<field>[A-Za-z_][A-Za-z0-9_]*):)?
    (?: "(?P<phrase>[^"]*)" | (?P<stray>") | (?P<word>[^\s"]+) )?
    """,
    re.VERBOSE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _Clause(NamedTuple):
    sign: str
    node: Word | Phrase


def parse(text: str, fields: Collection[str]) -> Query:
    """Return the tree of ``text``; ``fields`` are the names that may stand before a colon."""
    check_text("q", text)
    clauses = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        clause, at = _clause(text, at, fields)
        clauses.append(clause)
    if not clauses:
        raise BadRequest("q", "is empty: type at least one word")
    if len(clauses) >= QUERY_NODES_MAX:
        raise BadRequest("q", f"has {len(clauses)} words; {QUERY_NODES_MAX - 1} is the most")
    return _combine(clauses)


def check_text(field: str, text: str) -> None:
    """Raise BadRequest where ``text`` is too long or holds what cannot be searched."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadRequest(field, f"is not valid Unicode at position {error.start}") from None
    if size > TEXT_BYTES_MAX:
        raise BadRequest(field, f"has {size} bytes; {TEXT_BYTES_MAX} is the most")
    if found := _CONTROL.search(text):
        raise BadRequest(field, f"has a control character at position {found.start()}")


def check_tree(query: Query, fields: Collection[str]) -> None:
    """Raise BadRequest where a tree given as data is too large or names an unknown field."""
    nodes = 0
    level: list[tuple[str, Query]] = [("query", query)]
    for _ in range(QUERY_DEPTH_MAX):
        nodes += len(level)
        if nodes > QUERY_NODES_MAX:
            raise BadRequest("query", f"has more than {QUERY_NODES_MAX} nodes")
        level = [child for path, node in level for child in _checked_children(path, node, fields)]
        if not level:
            return
    raise BadRequest("query", f"is nested more than {QUERY_DEPTH_MAX} deep")


def _checked_children(path: str, node: Query, fields: Collection[str]) -> list[tuple[str, Query]]:
    match node:
        case Word() | Phrase():
            check_text(f"{path}.text", node.text)
            if node.field is not None and node.field not in fields:
                raise BadRequest(f"{path}.field", f"there is no field {node.field!r}")
            if not BOOST_MIN <= node.boost <= BOOST_MAX:
                raise BadRequest(f"{path}.boost", f"must be from {BOOST_MIN:g} to {BOOST_MAX:g}")
            return []
        case Bool():
            return [
                (f"{path}.{part}[{i}]", child)
                for part in ("must", "should", "must_not")
                for i, child in enumerate(getattr(node, part))
            ]
        case All():
            return []
        case _:
            assert_never(node)


def cost_class(query: Query) -> str:
    """Name the cost class of a query: what its attempt times are compared with.

    By how many terms are looked up and whether positions are read; few classes, so that
    each has a history soon.
    """
    terms, phrases = _size(query)
    if phrases:
        return "search-phrase"
    return "search-short" if terms <= 2 else "search-long"


def _size(query: Query) -> tuple[int, int]:
    match query:
        case Word():
            return 1, 0
        case Phrase():
            return 1, 1
        case Bool():
            sizes = [_size(child) for child in (*query.must, *query.should, *query.must_not)]
            return sum(terms for terms, _ in sizes), sum(phrases for _, phrases in sizes)
        case All():
            return 0, 0
        case _:
            assert_never(query)


def is_exact(query: Query) -> bool:
    """Whether phase-one scores are final: nothing in the query is scored by term statistics."""
    match query:
        case All():
            return True
        case Bool(must=(), should=()):
            return True
        case _:
            return False


def _clause(text: str, at: int, fields: Collection[str]) -> tuple[_Clause, int]:
    found = _CLAUSE.match(text, at)
    assert found is not None  # noqa: S101 (every part of the pattern is optional)
    sign, field, phrase, word = found.group("sign", "field", "phrase", "word")
    if found["stray"] is not None:
        raise BadRequest("q", f"has a quote without its pair at position {found.start('stray')}")
    if not (phrase or word or "").strip():
        raise BadRequest("q", f"has nothing to search for after position {found.end()}")
    if field is not None and field not in fields:
        raise BadRequest("q", f"there is no field {field!r}; there are {', '.join(sorted(fields))}")
    node = Word(word, field) if phrase is None else Phrase(phrase, field)
    return _Clause(sign, node), found.end()


def _combine(clauses: list[_Clause]) -> Query:
    parts: dict[str, list[Query]] = {"+": [], "": [], "-": []}
    for clause in clauses:
        parts[clause.sign].append(clause.node)
    if len(clauses) == 1 and parts[""]:
        return parts[""][0]
    return Bool(must=tuple(parts["+"]), should=tuple(parts[""]), must_not=tuple(parts["-"]))
