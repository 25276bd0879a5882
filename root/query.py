"""What is allowed of a query tree, and what is to be known of it before it is sent.

The tree is the wire contract's (``leaf.protocol``). It is what a person typed, read by
``root.language``, or what a program gave as data; either is checked here, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, assert_never, cast

import msgspec

from index_data.manifest import Field
from index_data.ranges import Misfit, check_letters, range_of, span_of
from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    QUERY_DEPTH_MAX,
    QUERY_NODES_MAX,
    TEXT_BYTES_MAX,
    All,
    Bool,
    Fuzzy,
    Phrase,
    Prefix,
    Query,
    Range,
    Text,
    Word,
)
from root.errors import BadRequest

Fields = Mapping[str, Field]
"""The fields of a generation by their names."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


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


def check_tree(query: Query, fields: Fields, name: str = "query") -> None:
    """Raise BadRequest where a tree is too large, or does not fit the fields that it names.

    ``name`` is the part of the request that the tree is from.
    """
    nodes = 0
    level: list[tuple[str, Query]] = [(name, query)]
    for _ in range(QUERY_DEPTH_MAX):
        nodes += len(level)
        if nodes > QUERY_NODES_MAX:
            raise BadRequest(name, f"has more than {QUERY_NODES_MAX} nodes")
        level = [child for path, node in level for child in _checked_children(path, node, fields)]
        if not level:
            return
    raise BadRequest(name, f"is nested more than {QUERY_DEPTH_MAX} deep")


def _checked_children(path: str, node: Query, fields: Fields) -> list[tuple[str, Query]]:
    match node:
        case Word() | Phrase() | Prefix() | Fuzzy():
            check_text(f"{path}.text", node.text)
            _check_leaf(path, node, fields)
            return []
        case Range():
            for name in ("gte", "gt", "lte", "lt"):
                if isinstance(bound := getattr(node, name), str):
                    check_text(f"{path}.{name}", bound)
            _check_leaf(path, node, fields)
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


def _check_leaf(path: str, node: Text | Range, fields: Fields) -> None:
    if node.field is not None and node.field not in fields:
        raise BadRequest(f"{path}.field", f"there is no field {node.field!r}")
    if complaint := misfit(node, fields):
        raise BadRequest(path, f"does not fit: {complaint}")
    if not BOOST_MIN <= node.boost <= BOOST_MAX:
        raise BadRequest(f"{path}.boost", f"must be from {BOOST_MIN:g} to {BOOST_MAX:g}")


def misfit(node: Text | Range, fields: Fields) -> str:
    """Say why a node does not fit its field, which there is; empty if it does."""
    if node.field is None:
        return ""
    field = fields[node.field]
    try:
        match node:
            case Range():
                range_of(field, node.gte, node.gt, node.lte, node.lt)
            case Prefix() | Fuzzy():
                check_letters(field)
            case Word() | Phrase() if not field.scored:
                span_of(field, node.text)
    except Misfit as error:
        return str(error)
    return ""


def holds_nothing(node: Range, field: Field) -> bool:
    """Whether the bounds of a range, which fits its field, have no value between them."""
    span = range_of(field, node.gte, node.gt, node.lte, node.lt)
    if span.low is None or span.high is None:
        return False
    low, high = cast("tuple[float, float]", (span.low, span.high))  # what has ranges is a number
    return low > high or (low == high and (span.low_open or span.high_open))


PATTERNS: Final = "search-pattern"
"""The class of queries that look up any number of terms."""


def cost_class(query: Query) -> str:
    """Name the cost class of a query: what its attempt times are compared with.

    By how many terms are looked up, whether there may be any number of them, and whether
    positions are read; few classes, so that each has a history soon.
    """
    terms, phrases, patterns = _size(query)
    if patterns:
        return PATTERNS
    if phrases:
        return "search-phrase"
    return "search-short" if terms <= 2 else "search-long"


class _Size(NamedTuple):
    terms: int
    phrases: int
    patterns: int


def _size(query: Query) -> _Size:
    match query:
        case Word():
            return _Size(1, 0, 0)
        case Phrase():
            return _Size(1, 1, 0)
        case Prefix() | Fuzzy() | Range():
            return _Size(1, 0, 1)
        case Bool():
            sizes = [_size(child) for child in (*query.must, *query.should, *query.must_not)]
            return _Size(*map(sum, zip(*sizes, strict=True))) if sizes else _Size(0, 0, 0)
        case All():
            return _Size(0, 0, 0)
        case _:
            assert_never(query)


def is_exact(query: Query) -> bool:
    """Whether phase-one scores are final: nothing in the query is scored by term statistics."""
    match query:
        case Word() | Phrase():
            return False
        case Prefix() | Fuzzy() | Range() | All():
            return True
        case Bool():
            return all(map(is_exact, query.must + query.should))
        case _:
            assert_never(query)


def combined(query: Query, tie_breaker: float) -> Query:
    """Return a query of which each text without a field counts as its best field, and
    ``tie_breaker`` times the others; a text that has a tie breaker of its own keeps it.
    """
    match query:
        case Word() | Phrase() | Prefix() | Fuzzy():
            if query.field is not None or query.tie_breaker != 1.0:
                return query
            return msgspec.structs.replace(query, tie_breaker=tie_breaker)
        case Bool():
            must, should, must_not = (
                tuple(combined(child, tie_breaker) for child in part)
                for part in (query.must, query.should, query.must_not)
            )
            return Bool(must, should, must_not)
        case Range() | All():
            return query
        case _:
            assert_never(query)


def boosted(query: Query, factor: float) -> tuple[Query, bool]:
    """Return a query of which all that can be boosted counts ``factor`` times as much, and
    whether some of it came to a limit and stayed there.
    """
    match query:
        case Word() | Phrase() | Prefix() | Fuzzy() | Range():
            wanted = query.boost * factor
            boost = min(max(wanted, BOOST_MIN), BOOST_MAX)
            return msgspec.structs.replace(query, boost=boost), boost != wanted
        case Bool():
            parts = [
                [boosted(child, factor) for child in part]
                for part in (query.must, query.should, query.must_not)
            ]
            outside = any(limited for part in parts for _, limited in part)
            return Bool(*(tuple(child for child, _ in part) for part in parts)), outside
        case All():
            return query, False
        case _:
            assert_never(query)
