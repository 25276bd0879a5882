"""What a query means: from its JSON form to a plan.

How a tree is read:

* a word or phrase is analysed; several tokens must stand side by side, in order;
* without a field a text is looked for in every default field. Its score is that of the best
  of them and ``tie_breaker`` times those of the others: with 1, the default, their sum. A field
  named by the query counts with weight 1;
* in a keyword field a text is the exact value; in one of numbers, dates or booleans it says a
  value, and a day stands for all of its moments;
* a word without tokens (punctuation) matches nothing; in ``must`` it is left out. When
  everything wanted (``must`` and ``should``) is such a word, nothing matches;
* a Bool of ``must_not`` alone matches every other document, with score 1; an empty Bool
  matches nothing;
* words and phrases score BM25 times boost and field weight, and a Bool the sum of its parts.
  What matches otherwise scores the same in every document, on every shard: ``all`` 1, values
  and ranges their boost, a prefix its boost and weight, a fuzzy word these times CLOSENESS;
* a prefix is not stemmed, as a beginning has no stem, so it finds what stands in the index
  with this beginning, and besides what it would find as a whole word. Of several tokens the
  last is the beginning;
* a fuzzy word of several tokens asks for all of them, anywhere. Short tokens are taken more
  strictly than asked (FUZZY_CHARS_MIN): nearly all short words are near each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from index_data.analysis import Placed, beginnings_of, tokens_of
from index_data.manifest import Field
from index_data.plan import NOTHING, Alike, Best, Clause, Everything, Group, Plan, Within
from index_data.ranges import Misfit, Span, check_letters, range_of, span_of

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


FieldPlan = Callable[[Field, str, float], Plan]
"""Returns what a text means in a field, with a weight."""


CLOSENESS: Final = (1.0, 0.5, 0.25)
"""What a word is worth that differs in so many letters: each halves it. Powers of two, so that
sums are exact and equal scores are equal."""

FUZZY_CHARS_MIN: Final = (0, 3, 6)
"""Letters that a token must have to be allowed so many differences. Of two letters with one
other, or of five with two, half the dictionary would match."""

_BOUNDS: Final = ("gte", "gt", "lte", "lt")
_TEXT: Final = {"type", "text", "field", "boost", "tie_breaker"}
_MEMBERS: Final = {
    "word": _TEXT,
    "phrase": _TEXT,
    "prefix": _TEXT,
    "fuzzy": {*_TEXT, "distance"},
    "range": {"type", "field", "boost", *_BOUNDS},
    "bool": {"type", "must", "should", "must_not"},
    "all": {"type"},
}


# --- from JSON to a plan -----------------------------------------------------------------


class Planner:
    """Makes the plan of one query. Use it once."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self._fields = {field.name: field for field in fields}
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
                return self._over_fields(tree, self._clause)
            case "prefix":
                return self._over_fields(tree, self._beginning)
            case "fuzzy":
                return self._over_fields(tree, partial(self._fuzzy, distance=_distance(tree)))
            case "range":
                return self._range(tree)
            case "bool":
                return self._bool(tree, depth)
            case _:  # "all": there is no other, its members were checked
                return Everything(self._next_number())

    def _next_number(self) -> int:
        if self._numbers >= CLAUSES_MAX:
            raise BadQuery("query", f"has more than {CLAUSES_MAX} clauses over its fields")
        self._numbers += 1
        return self._numbers - 1

    def _over_fields(self, tree: Mapping[str, Any], plan_of: FieldPlan) -> Plan:
        """Return the plan of a text in its field, or in every default field."""
        text, boost = _text(tree), _number(tree, "boost", BOOST_MAX)
        tie_breaker = _number(tree, "tie_breaker", 1.0)
        name = tree.get("field")
        if name is not None:
            return plan_of(self._field(name), text, boost)
        defaults = [field for field in self._fields.values() if field.default and field.scored]
        plans = [plan_of(field, text, boost * field.weight) for field in defaults]
        return _any_of(plans) if tie_breaker == 1.0 else self._best(plans, tie_breaker)

    def _best(self, plans: list[Plan], tie_breaker: float) -> Plan:
        possible = tuple(plan for plan in plans if plan != NOTHING)
        if len(possible) > 1:
            return Best(self._next_number(), possible, tie_breaker)
        return possible[0] if possible else NOTHING

    def _field(self, name: Any) -> Field:
        if not isinstance(name, str) or name not in self._fields:
            known = ", ".join(self._fields)
            raise BadQuery("query.field", f"{str(name)[:80]!r} is unknown; there are {known}")
        return self._fields[name]

    def _range(self, tree: Mapping[str, Any]) -> Plan:
        field, boost = self._field(tree.get("field")), _number(tree, "boost", BOOST_MAX)
        with _named("query"):
            span = range_of(field, *(tree.get(name) for name in _BOUNDS))
        return self._within(field, span, boost)

    def _within(self, field: Field, span: Span, weight: float) -> Plan:
        low, high, low_open, high_open = span
        number = self._next_number()
        return Within(number, field.name, low, high, weight, low_open, high_open)

    def _clause(self, field: Field, text: str, weight: float) -> Plan:
        if not field.scored:
            with _named("query.text"):
                return self._within(field, span_of(field, text), weight)
        found = _tokens(field, text)
        if not found:
            return NOTHING
        return Clause(self._next_number(), field.name, _texts(found), weight, _gaps(found))

    def _beginning(self, field: Field, text: str, weight: float) -> Plan:
        with _named("query.field"):
            check_letters(field)
        unstemmed = beginnings_of(field, text) if field.type == "text" else _tokens(field, text)
        if not unstemmed:
            return NOTHING
        last = unstemmed[-1]
        whole = _tokens(field, text)
        before = [token for token in whole if token.place < last.place]
        beginning = self._alike(field, [*before, last], weight, open_ended=True)
        if len(before) == len(whole) or whole[-1].text.startswith(last.text):
            return beginning
        return self._best([beginning, self._alike(field, whole, weight)], 0.0)

    def _fuzzy(self, field: Field, text: str, weight: float, *, distance: int) -> Plan:
        with _named("query.field"):
            check_letters(field)
        nearly = [self._nearly(field, token, weight, distance) for token in _tokens(field, text)]
        return _excluding(nearly, ()) if nearly else NOTHING

    def _nearly(self, field: Field, token: Placed, weight: float, most: int) -> Plan:
        """Return the plan of a token with up to ``most`` differences, if it is long enough."""
        distances = [d for d in range(most + 1) if len(token.text) >= FUZZY_CHARS_MIN[d]]
        return self._best(
            [self._alike(field, [token], weight * CLOSENESS[d], distance=d) for d in distances],
            0.0,
        )

    def _alike(
        self,
        field: Field,
        tokens: Sequence[Placed],
        weight: float,
        *,
        distance: int = 0,
        open_ended: bool = False,
    ) -> Alike:
        number, texts, gaps = self._next_number(), _texts(tokens), _gaps(tokens)
        return Alike(number, field.name, texts, distance, open_ended, weight, gaps)

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


@contextmanager
def _named(member: str) -> Iterator[None]:
    """Make of what does not fit a field what is wrong with a member of the query."""
    try:
        yield
    except Misfit as error:
        raise BadQuery(member, f"does not fit: {error}") from error


def _tokens(field: Field, text: str) -> list[Placed]:
    """Return what a text is in a field; a keyword is one token, if it is not empty."""
    if field.type == "text":
        return tokens_of(field, text)
    return [Placed(text, 0, 0, len(text))] if text else []


def _texts(tokens: Sequence[Placed]) -> tuple[str, ...]:
    return tuple(token.text for token in tokens)


def _gaps(tokens: Sequence[Placed]) -> tuple[int, ...]:
    """Return the places of tokens from the first on, where there are gaps between them."""
    places = tuple(token.place - tokens[0].place for token in tokens)
    return places if places[-1] != len(places) - 1 else ()


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


def _number(tree: Mapping[str, Any], member: str, most: float) -> float:
    number = tree.get(member, 1.0)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise BadQuery(f"query.{member}", "must be a number")
    if not 0.0 <= number <= most:
        raise BadQuery(f"query.{member}", f"must be between 0 and {most:g}, not {number:g}")
    return float(number)


def _distance(tree: Mapping[str, Any]) -> int:
    most = len(CLOSENESS) - 1
    distance = tree.get("distance", most)
    if isinstance(distance, bool) or distance not in range(1, most + 1):
        raise BadQuery("query.distance", f"must be from 1 to {most}")
    return int(distance)


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
