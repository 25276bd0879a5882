r"""What a person types, as a query tree.

    parse json             either word, the more the better
    "parse json"           side by side, in this order
    name:loads             in this field only; so do name:"a phrase" and name:(two words)
    +json -xml             must, must not
    json AND (xml OR csv) AND NOT yaml
                           NOT binds closest, then AND, then OR, then standing side by side
    year:[2001 TO 2010]    from one value to another; {a TO b} without the two, and * is no
                           bound; year:* is any value
    pars*  "json pa"*      words that begin like this
    jsno~  jsno~1          words that differ in two letters at the most, or in one
    json^2  (a b)^0.5      counts twice, counts half
    *                      every document
    \+ \" \\ \AND          the character, or the word, itself

The tree is the wire contract's (``leaf.protocol``): parsed once here, sent as data, analysed
where it is searched. ``root.printing`` is the way back.

Reading is a descent by hand, one function a line of this grammar, and nothing typed is lost:

    list    = item*
    item    = chain ("OR" chain)*
    chain   = operand ("AND" operand)*
    operand = ("+" | "-" | "NOT") operand | primary
    primary = [field ":"] ( "(" list ")" | phrase | range | word ) ["*"] ["~" digit] ["^" number]

What does not fit is a *fault*. A strict reading ends there, with its place. A lenient one notes
it, takes the text for a word or leaves it out, and goes on: only what is empty or over a limit
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from leaf.protocol import (
    BOOST_MAX,
    BOOST_MIN,
    DISTANCE_MAX,
    QUERY_NODES_MAX,
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
from root.query import Fields, boosted, check_text, check_tree, holds_nothing, misfit

NESTING_MAX: Final = 64
"""Brackets and NOTs inside each other: most of them come to nothing, but each is a call."""

FAULTS_MAX: Final = 20
"""Warnings of one answer: who has so many pasted something that is no query."""

LEFT_OUT: Final = "it is left out"
A_WORD: Final = "it is read as a word"

_SPACE: Final = re.compile(r"\s*")
_NOTHING: Final = re.compile(r"[\s)]|\Z")
_END: Final = r'(?=[\s()"]|\Z)'
_OPERATOR: Final = re.compile(rf"(?:AND|OR|NOT){_END}")
_BETWEEN: Final = re.compile(rf"\s*(AND|OR){_END}\s*(?!(?:AND|OR){_END})(?=[^\s)])")
_NOT: Final = re.compile(rf"NOT{_END}\s*(?=[^\s)])")
_SIGN: Final = re.compile(r"[+-](?=[^\s)])")
_FIELD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):")
_PHRASE: Final = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_RAW: Final = re.compile(r'(?:\\.|[^\s"()\\]|\\\Z)+', re.DOTALL)
_BOOST: Final = r"(?:\^(?P<boost>[0-9]{1,9}(?:\.[0-9]{1,20})?))?"
_SUFFIX: Final = rf"(?P<star>\*)?(?P<fuzzy>~[0-9]?)?{_BOOST}"
_AFTER_PHRASE: Final = re.compile(_SUFFIX + _END)
_AFTER_GROUP: Final = re.compile(_BOOST + _END)
_WORD: Final = re.compile(rf"(?P<body>(?:\\.|[^\\]|\\\Z)+?){_SUFFIX}", re.DOTALL)
_BOUND: Final = r'(?:"(?:\\.|[^"\\])*"|(?:\\.|[^\s"\]}\\])+)'
_RANGE: Final = re.compile(
    rf"(?P<opened>[\[{{])\s*(?P<low>{_BOUND})\s+TO\s+(?P<high>{_BOUND})\s*(?P<closed>[\]}}])",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_MISPLACED: Final = re.compile(r"(?:\\.|[^\\*^~])*([*^~])", re.DOTALL)
_WHY_MISPLACED: Final = {
    "*": "a star that does not end a word",
    "^": "a ^ without a number that ends a word",
    "~": "a ~ that does not end a word",
}


T = TypeVar("T")


class Fault(NamedTuple):
    """What could not be read as it stands: the character where it begins, and what was done."""

    position: int
    message: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What was understood, and what was not."""

    query: Query
    faults: tuple[Fault, ...] = ()


class _Operand(NamedTuple):
    sign: str
    node: Query
    at: int


def parse(text: str, fields: Fields, *, strict: bool = False) -> Reading:
    """Read what a person typed; ``fields`` are the names that may stand before a colon.

    Raises BadRequest for ``q`` where it is empty, over a limit or, if ``strict``, has a fault.
    """
    check_text("q", text)
    if not text.strip():
        raise BadRequest("q", "is empty: type at least one word")
    parser = _Parser(text, fields, strict=strict)
    query = parser.query()
    check_tree(query, fields, "q")
    return Reading(query, tuple(sorted(parser.faults)[:FAULTS_MAX]))


class _Parser:
    """Reads one text. ``faults`` are what it has met, in no order."""

    def __init__(self, text: str, fields: Fields, *, strict: bool) -> None:
        self.faults: list[Fault] = []
        self._text = text
        self._fields = fields
        self._strict = strict
        self._at = 0
        self._open = 0
        self._nested = 0
        self._nodes = 0

    def query(self) -> Query:
        """Return the whole of it; where nothing is left of it, the text as a word."""
        return self._list(None) or Word(self._text.strip())

    # --- the grammar ---

    def _list(self, field: str | None) -> Query | None:
        items = []
        while (item := self._item(field)) is not None:
            items.append(item)
        if len(items) == 1 and not items[0].sign:
            return items[0].node
        return _signed(items) if items else None

    def _item(self, field: str | None) -> _Operand | None:
        first = self._chain(field)
        if first is None:
            return None
        chains = [first]
        while self._takes(_BETWEEN, "OR"):
            if (chain := self._chain(field)) is not None:
                chains.append(chain)
        if len(chains) == 1:
            return first
        for chain in chains:
            if chain.sign == "+":
                self._fault(chain.at, "a plus means nothing beside OR", LEFT_OUT)
        return _Operand("", Bool(should=tuple(map(_alone, chains))), first.at)

    def _chain(self, field: str | None) -> _Operand | None:
        first = self._operand(field)
        if first is None:
            return None
        operands = [first]
        while self._takes(_BETWEEN, "AND"):
            if (operand := self._operand(field)) is not None:
                operands.append(operand)
        if len(operands) == 1:
            return first
        wanted = [operand._replace(sign=operand.sign or "+") for operand in operands]
        return _Operand("", _signed(wanted), first.at)

    def _operand(self, field: str | None) -> _Operand | None:
        """Return the next operand with its sign, None at the end of the text or of a group."""
        while True:
            self._match(_SPACE)
            at = self._at
            if at == len(self._text) or (self._open and self._text[at] == ")"):
                return None
            if self._match(_NOT):
                inner = self._nest(at, lambda: self._operand(field))
                return None if inner is None else _Operand("-", _alone(inner), at)
            sign = found[0] if (found := self._match(_SIGN)) else ""
            node = self._primary(field)
            if node is not None:
                return _Operand(sign, node, at)

    def _primary(self, field: str | None) -> Query | None:
        """Return the node that begins here; None where there is none, and the text is taken."""
        at = self._at
        if self._text[at] == ")":
            self._at += 1
            self._fault(at, "a closing bracket without its pair", LEFT_OUT)
            return None
        if found := _OPERATOR.match(self._text, at):
            self._at = found.end()
            self._fault(at, f"{found[0]} has nothing to join here", A_WORD)
            return self._leaf(Word(found[0], field), at)
        if named := self._field():
            field = named
        if self._text[self._at] == "(":
            return self._group(field)
        if self._text[self._at] == '"':
            return self._phrase(field)
        if named and (found := self._match(_RANGE)):
            return self._range(named, found)
        return self._word(field)

    def _field(self) -> str | None:
        """Take the name of a field and its colon, if something follows."""
        found = _FIELD.match(self._text, self._at)
        if found is None:
            return None
        nothing = _NOTHING.match(self._text, found.end())
        if not nothing and found[1] not in self._fields:
            known = ", ".join(sorted(self._fields))
            what = f"there is no field {found[1]!r}, there are {known}"
            self._fault(found.start(), what, A_WORD)
            return None
        if nothing:
            if found[1] in self._fields:
                self._fault(found.start(), f"nothing follows {found[0]}", A_WORD)
            return None
        self._at = found.end()
        return found[1]

    def _group(self, field: str | None) -> Query | None:
        at = self._at
        self._at += 1
        self._open += 1
        node = self._nest(at, lambda: self._list(field))
        self._open -= 1
        if self._at == len(self._text):
            self._fault(at, "a bracket is not closed", "it ends with the text")
        else:
            self._at += 1
        suffix = self._match(_AFTER_GROUP)
        if node is None:
            self._fault(at, "there is nothing between the brackets", LEFT_OUT)
        elif suffix and suffix["boost"]:
            return self._boosted(node, suffix["boost"], at)
        return node

    def _range(self, field: str, found: re.Match[str]) -> Query | None:
        low, high = _bound(found["low"]), _bound(found["high"])
        closed, shut = found["opened"] == "[", found["closed"] == "]"
        node = Range(
            field,
            low if closed else None,
            None if closed else low,
            high if shut else None,
            None if shut else high,
        )
        leaf = self._leaf(node, found.start(), self._match(_AFTER_GROUP))
        if leaf is not None and holds_nothing(node, self._fields[field]):
            self._fault(found.start(), f"no value lies in {found[0]}", "it finds nothing")
        return leaf

    def _phrase(self, field: str | None) -> Query | None:
        at = self._at
        found = self._match(_PHRASE)
        if found is None:
            self._at += 1
            self._fault(at, "a quote without its pair", LEFT_OUT)
            return None
        text = _unescaped(found[1])
        suffix = self._match(_AFTER_PHRASE)
        if not text.strip():
            self._fault(at, "there is nothing between the quotes", LEFT_OUT)
            return None
        if suffix and suffix["fuzzy"]:
            self._fault(at, "~ after a phrase", LEFT_OUT)
        begins = suffix and suffix["star"]
        return self._leaf(Prefix(text, field) if begins else Phrase(text, field), at, suffix)

    def _word(self, field: str | None) -> Query | None:
        at = self._at
        raw = self._match(_RAW)
        assert raw is not None  # noqa: S101 (what else can begin here was tried before)
        if raw[0] == "*":
            return self._leaf(All() if field is None else Range(field), at)
        if raw[0] in {"+", "-"}:
            self._fault(at, f"{raw[0]} stands alone", A_WORD)
        found = _WORD.fullmatch(raw[0])
        assert found is not None  # noqa: S101 (its body may be anything)
        body, star, fuzzy = found.group("body", "star", "fuzzy")
        # At the beginning they are letters, but for a star, or where they belong to what ends here.
        plain = body[0] in "^~" and self._text[at - 1 : at] not in {'"', ")", "]", "}"}
        if wrong := _MISPLACED.match(body, int(plain)):
            self._fault(at + wrong.end() - 1, _WHY_MISPLACED[wrong[1]], "it is a letter")
        return self._leaf(self._worded(_unescaped(body), field, star, fuzzy, at), at, found)

    def _worded(
        self, text: str, field: str | None, star: str | None, fuzzy: str | None, at: int
    ) -> Text:
        if star and fuzzy:
            self._fault(at, "~ after the beginning of a word", LEFT_OUT)
        if star:
            return Prefix(text, field)
        distance = DISTANCE_MAX if fuzzy in {None, "~"} else int(fuzzy[1:])
        if distance > DISTANCE_MAX:
            self._fault(at, f"{fuzzy} is more than ~{DISTANCE_MAX}", "the most is taken")
        if fuzzy and distance:
            return Fuzzy(text, min(distance, DISTANCE_MAX), field)
        return Word(text, field)

    # --- what the grammar is made of ---

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take what a pattern matches here."""
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _takes(self, pattern: re.Pattern[str], word: str) -> bool:
        found = pattern.match(self._text, self._at)
        if found is None or found[1] != word:
            return False
        self._at = found.end()
        return True

    def _nest(self, at: int, inner: Callable[[], T]) -> T:
        self._nested += 1
        if self._nested > NESTING_MAX:
            raise BadRequest("q", f"is nested more than {NESTING_MAX} deep at position {at}")
        found = inner()
        self._nested -= 1
        return found

    def _leaf(
        self, node: Text | Range | All, at: int, suffix: re.Match[str] | None = None
    ) -> Query | None:
        """Return a node as its suffix boosts it; None where it does not fit its field."""
        self._nodes += 1
        if self._nodes >= QUERY_NODES_MAX:
            raise BadRequest("q", f"has more than {QUERY_NODES_MAX - 1} words")
        if not isinstance(node, All) and (complaint := misfit(node, self._fields)):
            self._fault(at, complaint, LEFT_OUT)
            return None
        if suffix and suffix["boost"]:
            return self._boosted(node, suffix["boost"], at)
        return node

    def _boosted(self, node: Query, boost: str, at: int) -> Query:
        scaled, outside = boosted(node, float(boost))
        if outside:
            what = f"a boost is from {BOOST_MIN:g} to {BOOST_MAX:g}"
            self._fault(at, what, "the nearest is taken")
        return scaled

    def _fault(self, at: int, what: str, done: str) -> None:
        if self._strict:
            raise BadRequest("q", f"cannot be read at position {at}: {what}")
        self.faults.append(Fault(at, f"{what}: {done}"))


def _alone(operand: _Operand) -> Query:
    """Return an operand as a node that needs no sign."""
    return Bool(must_not=(operand.node,)) if operand.sign == "-" else operand.node


def _signed(operands: list[_Operand]) -> Bool:
    """Return what stands side by side, each as its sign says."""
    must, should, must_not = (
        tuple(operand.node for operand in operands if operand.sign == sign)
        for sign in ("+", "", "-")
    )
    return Bool(must, should, must_not)


def _bound(text: str) -> str | None:
    """Return the bound that a text says; a star is none."""
    if text == "*":
        return None
    return _unescaped(text[1:-1] if text[0] == '"' else text)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
