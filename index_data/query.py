"""What a query means: from its JSON form to a plan, and from a plan to a tantivy query.

The plan is what shards and the one big index share. They differ only in how a clause is
weighed, so ``assemble`` is told that.

How a tree is read:

* a word or phrase is analysed; several tokens must stand side by side, in order; without
  a field it is looked for in every default field, and their scores add up;
* in a keyword field it is the exact value;
* a word without tokens (punctuation) matches nothing; in ``must`` it is left out. When
  everything wanted (``must`` and ``should``) is such a word, nothing matches;
* a Bool of ``must_not`` alone matches every other document, with score 1; an empty Bool
  matches nothing;
* scores are sums of BM25 times boost and field weight; ``all`` scores 1. A field named by
  the query counts with weight 1.

    Plan = Clause | Group | Everything | Nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import tantivy

from index_data.analysis import Placed
from index_data.manifest import Field

BOOST_MAX: Final = 1000.0
"""Far above any use, and far below where scores stop being finite."""

CLAUSES_MAX: Final = 4096
"""A word without a field is a clause for every default field."""

DEPTH_MAX: Final = 32
"""Twice what the wire allows: a bound on recursion, not on people."""


class BadQuery(ValueError):
    """A query that no shard of the generation can answer.

    ``member`` is the part of the query at fault; the text is a sentence that names it.
    """

    def __init__(self, member: str, message: str) -> None:
        super().__init__(f"{member} {message}")
        self.member = member


@dataclass(frozen=True, slots=True)
class Clause:
    """Tokens that stand side by side in a field. ``number`` is unique in the plan.

    ``places`` are those of the tokens where dropped words leave gaps, else empty.
    """

    number: int
    field: str
    tokens: tuple[str, ...]
    weight: float
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Everything:
    """Every document, with score 1. ``number`` is unique in the plan."""

    number: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """No document."""


@dataclass(frozen=True, slots=True)
class Group:
    """All of ``must``, none of ``must_not``, and one of ``should`` when ``must`` is empty.

    ``must`` and ``should`` are never both empty.
    """

    must: tuple[Plan, ...]
    should: tuple[Plan, ...]
    must_not: tuple[Plan, ...]


Plan: TypeAlias = Clause | Everything | Nothing | Group
Analyse = Callable[[Field, str], list[Placed]]
NOTHING: Final = Nothing()

_MEMBERS: Final = {
    "word": {"type", "text", "field", "boost"},
    "phrase": {"type", "text", "field", "boost"},
    "bool": {"type", "must", "should", "must_not"},
    "all": {"type"},
}


# --- from JSON to a plan -----------------------------------------------------------------


class Planner:
    """Makes the plan of one query. Use it once."""

    def __init__(self, fields: Iterable[Field], analyse: Analyse) -> None:
        self._fields = {field.name: field for field in fields}
        self._analyse = analyse
        self._numbers = 0

    def plan(self, tree: Mapping[str, Any], depth: int = 0) -> Plan:
        """Return the plan of a query in its JSON form.

        Raises BadQuery.
        """
        if depth > DEPTH_MAX:
            raise BadQuery("query", f"is nested deeper than {DEPTH_MAX}")
        _check_members(tree)
        match tree.get("type"):
            case "word" | "phrase":
                return self._words(tree)
            case "bool":
                return self._bool(tree, depth)
            case _:  # "all": there is no other, its members were checked
                return Everything(self._next_number())

    def _next_number(self) -> int:
        if self._numbers >= CLAUSES_MAX:
            raise BadQuery("query", f"has more than {CLAUSES_MAX} clauses over its fields")
        self._numbers += 1
        return self._numbers - 1

    def _words(self, tree: Mapping[str, Any]) -> Plan:
        text, boost = _text(tree), _boost(tree)
        name = tree.get("field")
        if name is not None:
            return self._clause(self._field(name), text, boost)
        defaults = [field for field in self._fields.values() if field.default and field.scored]
        return _any_of([self._clause(field, text, boost * field.weight) for field in defaults])

    def _field(self, name: Any) -> Field:
        if not isinstance(name, str) or name not in self._fields:
            known = ", ".join(self._fields)
            raise BadQuery("query.field", f"{str(name)[:80]!r} is unknown; there are {known}")
        if not self._fields[name].scored:
            raise BadQuery("query.field", f"{name!r} has no words to look for: filter by it")
        return self._fields[name]

    def _clause(self, field: Field, text: str, weight: float) -> Plan:
        if field.type != "text":
            return Clause(self._next_number(), field.name, (text,), weight) if text else NOTHING
        found = self._analyse(field, text)
        if not found:
            return NOTHING
        tokens = tuple(token.text for token in found)
        places = tuple(token.place - found[0].place for token in found)
        gaps = places if places[-1] != len(places) - 1 else ()
        return Clause(self._next_number(), field.name, tokens, weight, gaps)

    def _bool(self, tree: Mapping[str, Any], depth: int) -> Plan:
        must, should, must_not = (
            [self.plan(child, depth + 1) for child in _children(tree, part)]
            for part in ("must", "should", "must_not")
        )
        wanted = [plan for plan in must if plan != NOTHING]
        wishes = [plan for plan in should if plan != NOTHING]
        excluded = tuple(plan for plan in must_not if plan != NOTHING)
        if not must and not should:
            return _excluding([Everything(self._next_number())], excluded) if must_not else NOTHING
        if not wanted:
            return _excluding([_any_of(wishes)], excluded) if wishes else NOTHING
        if not wishes:
            return _excluding(wanted, excluded)
        return Group(_flat_must(wanted), _flat_should(wishes), excluded)


def _check_members(tree: Mapping[str, Any]) -> None:
    kind = tree.get("type")
    members = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if members is None:
        raise BadQuery("query.type", f"must be one of {', '.join(_MEMBERS)}, not {kind!r}")
    unknown = sorted(tree.keys() - members)
    if unknown:
        raise BadQuery(f"query.{unknown[0]}"[:80], f"is unknown in a {kind}")


def _children(tree: Mapping[str, Any], part: str) -> Sequence[Mapping[str, Any]]:
    children = tree.get(part, ())
    if not isinstance(children, list | tuple):
        raise BadQuery(f"query.{part}", "must be an array")
    if not all(isinstance(child, Mapping) for child in children):
        raise BadQuery(f"query.{part}", "must hold queries only")
    return children


def _text(tree: Mapping[str, Any]) -> str:
    text = tree.get("text")
    if not isinstance(text, str):
        raise BadQuery("query.text", "must be a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadQuery("query.text", "holds half a character (a lone surrogate)") from error
    return text


def _boost(tree: Mapping[str, Any]) -> float:
    boost = tree.get("boost", 1.0)
    if isinstance(boost, bool) or not isinstance(boost, int | float):
        raise BadQuery("query.boost", "must be a number")
    if not 0.0 <= boost <= BOOST_MAX:
        raise BadQuery("query.boost", f"must be between 0 and {BOOST_MAX:g}, not {boost:g}")
    return float(boost)


# A group inside a group of the same kind is spliced into it: sums stay the same, and tantivy
# is at its fastest with flat lists of terms.


def _any_of(plans: list[Plan]) -> Plan:
    flat = _flat_should([plan for plan in plans if plan != NOTHING])
    match flat:
        case ():
            return NOTHING
        case (single,):
            return single
        case _:
            return Group((), flat, ())


def _excluding(wanted: list[Plan], excluded: tuple[Plan, ...]) -> Plan:
    if len(wanted) == 1 and not excluded:
        return wanted[0]
    return Group(_flat_must(wanted), (), excluded)


def _flat_should(plans: list[Plan]) -> tuple[Plan, ...]:
    return _spliced(plans, lambda group: group.should if not group.must + group.must_not else None)


def _flat_must(plans: list[Plan]) -> tuple[Plan, ...]:
    return _spliced(plans, lambda group: group.must if not group.should + group.must_not else None)


def _spliced(
    plans: list[Plan], inner: Callable[[Group], tuple[Plan, ...] | None]
) -> tuple[Plan, ...]:
    flat: list[Plan] = []
    for plan in plans:
        children = inner(plan) if isinstance(plan, Group) else None
        flat.extend((plan,) if children is None else children)
    return tuple(flat)


def leaves_of(plan: Plan, *, wanted_only: bool = False) -> list[Clause | Everything]:
    """Return the leaves of a plan, in order; ``wanted_only`` leaves out the excluded."""
    match plan:
        case Clause() | Everything():
            return [plan]
        case Nothing():
            return []
        case Group():
            parts = plan.must + plan.should + (() if wanted_only else plan.must_not)
            return [leaf for part in parts for leaf in leaves_of(part, wanted_only=wanted_only)]


# --- from a plan to tantivy --------------------------------------------------------------

Weigh = Callable[[Clause | Everything], tantivy.Query | None]
"""Returns the query of a clause as it shall score, None where it cannot match."""


def assemble(plan: Plan, weigh: Weigh) -> tantivy.Query | None:
    """Return the tantivy query of a plan, None when it cannot match any document."""
    match plan:
        case Clause() | Everything():
            return weigh(plan)
        case Nothing():
            return None
        case Group():
            return _assemble_group(plan, weigh)


def _assemble_group(group: Group, weigh: Weigh) -> tantivy.Query | None:
    must = [assemble(plan, weigh) for plan in group.must]
    if None in must:
        return None
    parts = _parts(tantivy.Occur.Must, must)
    parts += _parts(tantivy.Occur.Should, [assemble(plan, weigh) for plan in group.should])
    if not parts:
        return None
    parts += _parts(tantivy.Occur.MustNot, [assemble(plan, weigh) for plan in group.must_not])
    return tantivy.Query.boolean_query(parts)


def _parts(
    occur: tantivy.Occur, queries: list[tantivy.Query | None]
) -> list[tuple[tantivy.Occur, tantivy.Query]]:
    return [(occur, query) for query in queries if query is not None]


def matching(clause: Clause | Everything, schema: tantivy.Schema) -> tantivy.Query:
    """Return the query of the documents that a clause matches, with tantivy's own score."""
    if isinstance(clause, Everything):
        return tantivy.Query.all_query()
    if len(clause.tokens) == 1:
        return tantivy.Query.term_query(schema, clause.field, clause.tokens[0], "freq")
    words: list[str | tuple[int, str]] = [*clause.tokens]
    if clause.places:
        words = [*zip(clause.places, clause.tokens, strict=True)]
    return tantivy.Query.phrase_query(schema, clause.field, words)


def weighed_natively(clause: Clause | Everything, schema: tantivy.Schema) -> tantivy.Query:
    """Return a clause as one big index scores it: tantivy's own score times its weight."""
    query = matching(clause, schema)
    if isinstance(clause, Everything) or clause.weight == 1.0:
        return query
    return tantivy.Query.boost_query(query, clause.weight)
