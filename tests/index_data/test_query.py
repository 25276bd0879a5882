"""How query trees are read, one rule a test."""

from __future__ import annotations

from typing import Any

import pytest

from index_data import query as q
from index_data.analysis import tokens_of
from index_data.manifest import Field
from index_data.query import BadQuery, Clause, Everything, Group, Plan, Planner

FIELDS = (
    Field("title", "text", weight=2.0),
    Field("body", "text"),
    Field("kind", "keyword", default=False),
)


def plan(tree: dict[str, Any]) -> Plan:
    """The plan of a tree over three fields."""
    return Planner(FIELDS, tokens_of).plan(tree)


def word(text: str, **more: Any) -> dict[str, Any]:
    """A word's JSON form."""
    return {"type": "word", "text": text, **more}


def both(*clauses: Plan) -> Group:
    """Any of these."""
    return Group((), clauses, ())


def test_a_word_is_looked_for_in_every_default_field_by_weight() -> None:
    """Field weight and boost multiply; the word is analysed."""
    assert plan(word("Parsing", boost=3)) == both(
        Clause(0, "title", ("pars",), 6.0), Clause(1, "body", ("pars",), 3.0)
    )


def test_a_named_field_counts_once() -> None:
    """With a field named its weight plays no part."""
    assert plan(word("parse", field="title")) == Clause(0, "title", ("pars",), 1.0)


def test_a_word_of_several_tokens_is_a_phrase() -> None:
    """A dotted name stands side by side."""
    assert plan(word("json.dumps", field="body")) == Clause(0, "body", ("json", "dump"), 1.0)
    assert plan({"type": "phrase", "text": "json dumps", "field": "body"}) == plan(
        word("json.dumps", field="body")
    )


def test_a_keyword_is_exact() -> None:
    """Keywords are not analysed."""
    assert plan(word("A b.C", field="kind")) == Clause(0, "kind", ("A b.C",), 1.0)


@pytest.mark.parametrize("text", ["", "...", " \n", "x" * 100])
def test_a_word_without_tokens_matches_nothing(text: str) -> None:
    """Punctuation and endless runs are no words."""
    assert plan(word(text)) == q.NOTHING
    assert plan({"type": "bool", "should": [word(text)]}) == q.NOTHING


def test_a_word_without_tokens_is_left_out_of_must() -> None:
    """It asks for nothing beside something, but alone it does not ask for everything."""
    asked = {"type": "bool", "must": [word("..."), word("a", field="body")]}
    assert plan(asked) == Clause(0, "body", ("a",), 1.0)
    assert plan({"type": "bool", "must": [word("...")]}) == q.NOTHING
    assert plan({"type": "bool", "must": [word("...")], "must_not": [word("a")]}) == q.NOTHING


def test_only_excluded_words_match_all_others() -> None:
    """A query of must_not alone starts from every document, even if it excludes none."""
    tree = {"type": "bool", "must_not": [word("a", field="body")]}
    assert plan(tree) == Group((Everything(1),), (), (Clause(0, "body", ("a",), 1.0),))
    assert plan({"type": "bool", "must_not": [word("...")]}) == Everything(0)


def test_an_empty_bool_matches_nothing() -> None:
    """Nothing asked, nothing found."""
    assert plan({"type": "bool"}) == q.NOTHING


def test_groups_of_one_kind_are_flat() -> None:
    """Any-of inside any-of, and all-of inside all-of, are spliced; sums stay the same."""
    a, b = word("a", field="body"), word("b", field="body")
    inner = {"type": "bool", "should": [a, b]}
    flat = both(*(Clause(i, "body", (t,), 1.0) for i, t in enumerate("aba")))
    assert plan({"type": "bool", "should": [inner, a]}) == flat
    nested = plan({"type": "bool", "must": [{"type": "bool", "must": [a, b]}, b], "should": [a]})
    assert isinstance(nested, Group)
    assert len(nested.must) == 3


def test_leaves_are_numbered_once_each() -> None:
    """Numbers tell leaves apart, excluded ones included."""
    tree = {
        "type": "bool",
        "must": [word("a"), {"type": "all"}],
        "must_not": [word("b", field="body")],
    }
    leaves = q.leaves_of(plan(tree))
    assert sorted(leaf.number for leaf in leaves) == list(range(len(leaves))) == [0, 1, 2, 3]
    assert len(q.leaves_of(plan(tree), wanted_only=True)) == 3


deep: dict[str, Any] = word("a")
for _ in range(q.DEPTH_MAX + 1):
    deep = {"type": "bool", "must": [deep]}


@pytest.mark.parametrize(
    ("tree", "member"),
    [
        ({}, "query.type"),
        ({"type": "wrod"}, "query.type"),
        ({"type": ["word"]}, "query.type"),
        (word("a", fields="x"), "query.fields"),
        ({"type": "word"}, "query.text"),
        ({"type": "word", "text": 7}, "query.text"),
        (word("\ud800"), "query.text"),
        (word("a", field="titel"), "query.field"),
        (word("a", field=["title"]), "query.field"),
        (word("a", boost="2"), "query.boost"),
        (word("a", boost=True), "query.boost"),
        (word("a", boost=-1), "query.boost"),
        (word("a", boost=float("nan")), "query.boost"),
        (word("a", boost=1e308), "query.boost"),
        ({"type": "bool", "must": "a"}, "query.must"),
        ({"type": "bool", "should": ["a"]}, "query.should"),
        ({"type": "bool", "should": [word("a")] * q.CLAUSES_MAX}, "query"),
        (deep, "query"),
    ],
)
def test_a_bad_query_names_its_member(tree: dict[str, Any], member: str) -> None:
    """What is wrong is said by the name of the member."""
    with pytest.raises(BadQuery) as caught:
        plan(tree)
    assert caught.value.member == member
    assert str(caught.value).startswith(member)
