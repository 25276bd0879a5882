"""How query trees are read, one rule a test."""

from __future__ import annotations

from typing import Any

import pytest

from index_data import query as q
from index_data.manifest import Field
from index_data.plan import NOTHING, Alike, Best, Clause, Everything, Group, Plan, Within, leaves_of
from index_data.query import BadQuery, Planner

FIELDS = (
    Field("title", "text", weight=2.0),
    Field("body", "text"),
    Field("kind", "keyword", default=False),
    Field("year", "integer"),
    Field("day", "date"),
)


def plan(tree: dict[str, Any]) -> Plan:
    """The plan of a tree over three fields."""
    return Planner(FIELDS).plan(tree)


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
    assert plan(word(text)) == NOTHING
    assert plan({"type": "bool", "should": [word(text)]}) == NOTHING


def alike(number: int, field: str, *tokens: str, weight: float = 1.0, **more: Any) -> Alike:
    """A beginning, unless it says a distance."""
    distance = more.pop("distance", None)
    return Alike(number, field, tokens, distance or 0, distance is None, weight)


def test_a_text_may_count_as_its_best_field() -> None:
    """With a tie breaker below 1; one field alone has nothing to be better than."""
    assert plan(word("a", tie_breaker=0.25)) == Best(
        2, (Clause(0, "title", ("a",), 2.0), Clause(1, "body", ("a",), 1.0)), 0.25
    )
    assert plan(word("a", field="title", tie_breaker=0)) == Clause(0, "title", ("a",), 1.0)
    assert plan(word("...", tie_breaker=0)) == NOTHING


def test_a_prefix_is_a_beginning_without_a_stem() -> None:
    """It scores its weight; of several tokens the last is the beginning."""
    assert plan(word("JSO", type="prefix", boost=3)) == both(
        alike(0, "title", "jso", weight=6.0), alike(1, "body", "jso", weight=3.0)
    )
    assert plan(word("parsing Fi", type="prefix", field="body")) == alike(0, "body", "pars", "fi")
    assert plan(word("A b.", type="prefix", field="kind")) == alike(0, "kind", "A b.")


def test_a_prefix_also_finds_the_whole_word() -> None:
    """Where the stem of the word does not begin like the word."""
    assert plan(word("parsing", type="prefix", field="body")) == Best(
        2, (alike(0, "body", "parsing"), alike(1, "body", "pars", distance=0)), 0.0
    )


def test_a_fuzzy_word_is_worth_less_the_more_it_differs() -> None:
    """Each letter halves it; the best of the distances counts."""
    assert plan(word("jsno", type="fuzzy", field="title", boost=2)) == Best(
        2,
        (
            alike(0, "title", "jsno", weight=2.0, distance=0),
            alike(1, "title", "jsno", weight=1.0, distance=1),
        ),
        0.0,
    )


@pytest.mark.parametrize(
    ("text", "distance", "distances"),
    [
        ("ab", 2, [0]),
        ("abc", 2, [0, 1]),
        ("abcfg", 2, [0, 1]),
        ("abcfgh", 2, [0, 1, 2]),
        ("abcfgh", 1, [0, 1]),
        ("кот", 1, [0, 1]),
    ],
)
def test_short_words_are_taken_more_strictly(
    text: str, distance: int, distances: list[int]
) -> None:
    """Letters count, not bytes."""
    tree = word(text, type="fuzzy", field="body", distance=distance)
    found = [leaf for leaf in leaves_of(plan(tree)) if isinstance(leaf, Alike)]
    assert [leaf.distance for leaf in found] == distances
    assert [leaf.weight for leaf in found] == [1.0, 0.5, 0.25][: len(distances)]


def test_a_fuzzy_word_of_several_tokens_asks_for_all_of_them() -> None:
    """Each of them nearly, and anywhere."""
    asked = plan(word("ab cd", type="fuzzy", field="body"))
    alone = (alike(0, "body", "ab", distance=0), alike(1, "body", "cd", distance=0))
    assert asked == Group(alone, (), ())


@pytest.mark.parametrize("kind", ["prefix", "fuzzy"])
def test_a_pattern_without_tokens_matches_nothing(kind: str) -> None:
    """As a word without tokens does."""
    assert plan(word("...", type=kind)) == plan(word("", type=kind, field="kind")) == NOTHING


def test_a_text_in_a_field_of_values_is_a_value() -> None:
    """It scores its boost, and only where its field is named."""
    assert plan(word("2001", field="year", boost=2)) == Within(0, "year", 2001, 2001, 2.0)
    assert plan(word("2001", type="phrase", field="year")) == Within(0, "year", 2001, 2001, 1.0)
    day = plan(word("1970-01-02", field="day"))
    assert day == Within(0, "day", 86_400_000_000, 2 * 86_400_000_000 - 1, 1.0)
    assert {leaf.field for leaf in leaves_of(plan(word("2001"))) if isinstance(leaf, Clause)} == {
        "title",
        "body",
    }


def test_a_range_scores_its_boost() -> None:
    """Values are those of the index."""
    tree = {"type": "range", "field": "year", "gt": "2001", "lte": 2010, "boost": 3}
    assert plan(tree) == Within(0, "year", 2001, 2010, 3.0, low_open=True)
    assert plan({"type": "range", "field": "kind"}) == Within(0, "kind", None, None, 1.0)


def test_a_word_without_tokens_is_left_out_of_must() -> None:
    """It asks for nothing beside something, but alone it does not ask for everything."""
    asked = {"type": "bool", "must": [word("..."), word("a", field="body")]}
    assert plan(asked) == Clause(0, "body", ("a",), 1.0)
    assert plan({"type": "bool", "must": [word("...")]}) == NOTHING
    assert plan({"type": "bool", "must": [word("...")], "must_not": [word("a")]}) == NOTHING


def test_only_excluded_words_match_all_others() -> None:
    """A query of must_not alone starts from every document, even if it excludes none."""
    tree = {"type": "bool", "must_not": [word("a", field="body")]}
    assert plan(tree) == Group((Everything(1),), (), (Clause(0, "body", ("a",), 1.0),))
    assert plan({"type": "bool", "must_not": [word("...")]}) == Everything(0)


def test_an_empty_bool_matches_nothing() -> None:
    """Nothing asked, nothing found."""
    assert plan({"type": "bool"}) == NOTHING


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
    leaves = leaves_of(plan(tree))
    assert sorted(leaf.number for leaf in leaves) == list(range(len(leaves))) == [0, 1, 2, 3]
    assert len(leaves_of(plan(tree), wanted_only=True)) == 3


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
        (word("a", tie_breaker=1.5), "query.tie_breaker"),
        (word("a", field="year"), "query.text"),
        (word("1", type="prefix", field="year"), "query.field"),
        (word("1", type="fuzzy", field="year"), "query.field"),
        ({"type": "range"}, "query.field"),
        ({"type": "range", "field": "title", "gte": "a"}, "query"),
        ({"type": "range", "field": "year", "gte": "a"}, "query"),
        (word("a", distance=1), "query.distance"),
        (word("a", type="fuzzy", distance=0), "query.distance"),
        (word("a", type="fuzzy", distance=3), "query.distance"),
        (word("a", type="fuzzy", distance="1"), "query.distance"),
        (word("a", type="fuzzy", distance=True), "query.distance"),
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
