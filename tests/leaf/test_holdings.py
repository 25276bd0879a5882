"""What a leaf holds, and when it lets go."""

from __future__ import annotations

from typing import Any

from leaf.holdings import UNUSED_S, Holdings


def names(holdings: Holdings) -> list[str]:
    return [held.card.generation for held in holdings]


def test_the_newest_is_the_last_added(generation_named: Any) -> None:
    """New queries use the generation that came last; nothing is newest before that."""
    holdings = Holdings()
    assert holdings.newest("default") is None
    for name in ("g1", "g2"):
        holdings.add(generation_named(name), now=0.0)
    newest = holdings.newest("default")
    assert newest is not None
    assert newest.card.generation == "g2"


def test_an_unused_generation_is_let_go(generation_named: Any) -> None:
    """A superseded generation stays while it is asked for; the newest always."""
    holdings = Holdings()
    for name in ("g1", "g2"):
        holdings.add(generation_named(name), now=0.0)
    assert holdings.use("g1", now=10.0) is not None
    assert holdings.retire(now=UNUSED_S) == []
    assert holdings.retire(now=UNUSED_S + 10.0) == ["g1"]
    assert names(holdings) == ["g2"]
    assert holdings.retire(now=1e9) == []
    assert holdings.use("g1", now=1e9) is None


def test_a_generation_that_is_held_is_replaced_where_it_stands(generation_named: Any) -> None:
    """The same name is held once, and what is newest stays so."""
    holdings = Holdings()
    for name in ("g1", "g2", "g1"):
        holdings.add(generation_named(name), now=0.0)
    assert names(holdings) == ["g1", "g2"]


def test_a_shard_is_given_up_once_others_are_asked_for_it(generation_named: Any) -> None:
    """It is served while anybody asks for it, and while nobody asks for anything; it goes when
    for long enough a root has asked for other shards and not for this one.
    """
    g1 = generation_named("g1").with_shards([0, 1, 2], {2: 2})
    holdings = Holdings()
    holdings.add(g1, now=0.0)
    holdings.asked(g1, [0, 1, 2], now=50.0)
    holdings.asked(g1, [0, 1], now=50.0 + UNUSED_S - 0.1)
    assert holdings.give_up() == {}
    holdings.use("g1", now=1e6)  # by hand: no root has asked
    assert holdings.give_up() == {}
    holdings.asked(g1, [0], now=50.0 + UNUSED_S)
    assert holdings.give_up() == {"g1": [2]}
    newest = holdings.newest("default")
    assert newest is not None
    assert (sorted(newest.shards), newest.leaving) == ([0, 1], {})
    assert holdings.give_up() == {}
    assert 2 in g1.shards, "a query that has begun keeps what it began with"


def test_a_shard_that_was_never_asked_for_stays_for_as_long_as_one_that_was(
    generation_named: Any,
) -> None:
    """The time begins when it is to be given up, and not again with every other change."""
    g1 = generation_named("g1").with_shards([0, 1, 2], {2: 2})
    holdings = Holdings()
    holdings.add(g1, now=100.0)
    holdings.asked(g1, [0], now=100.0 + UNUSED_S - 1.0)
    assert holdings.give_up() == {}
    more = g1.with_shards([0, 1, 2, 3], {1: 2, 2: 2})
    holdings.add(more, now=100.0 + UNUSED_S - 1.0)
    holdings.asked(more, [0], now=100.0 + UNUSED_S)
    assert holdings.give_up() == {"g1": [2]}


def test_a_shard_that_is_wanted_again_stays(generation_named: Any) -> None:
    """A placement that changes its mind leaves nothing behind."""
    g1 = generation_named("g1")
    holdings = Holdings()
    holdings.add(g1.with_shards([0, 1], {1: 1}), now=0.0)
    holdings.add(g1.with_shards([0, 1], {}), now=1.0)
    holdings.asked(g1, [0], now=1e6)
    assert holdings.give_up() == {}


def test_a_generation_that_goes_takes_along_what_it_was_to_give_up(generation_named: Any) -> None:
    """Nothing is left to be given up of what is not held."""
    g1 = generation_named("g1").with_shards([0, 1], {1: 1})
    holdings = Holdings()
    holdings.add(g1, now=0.0)
    holdings.add(generation_named("g2"), now=0.0)
    holdings.asked(g1, [0], now=1.0)
    assert holdings.retire(now=UNUSED_S) == ["g1"]
    assert holdings.give_up() == {}


def test_what_is_superseded_stays_until_others_have_the_new_one_too(generation_named: Any) -> None:
    """However long nobody had asked before: the time to let go starts when the new one comes."""
    holdings = Holdings()
    holdings.add(generation_named("g1"), now=0.0)
    holdings.add(generation_named("g2"), now=100.0)
    assert holdings.retire(now=100.0 + UNUSED_S - 0.1) == []
    assert holdings.retire(now=100.0 + UNUSED_S) == ["g1"]


def test_each_collection_has_a_newest_of_its_own(generation_named: Any) -> None:
    """A new generation supersedes those of its collection, and no others."""
    holdings = Holdings()
    for name, collection in (("g1", "docs"), ("g2", "articles"), ("g3", "docs")):
        holdings.add(generation_named(name, collection=collection), now=0.0)
    newest = {name: holdings.newest(name) for name in ("docs", "articles", "default")}
    assert {name: held and held.card.generation for name, held in newest.items()} == {
        "docs": "g3",
        "articles": "g2",
        "default": None,
    }
    assert holdings.retire(now=UNUSED_S) == ["g1"]
    assert names(holdings) == ["g2", "g3"]


def test_what_comes_of_one_collection_does_not_keep_another(generation_named: Any) -> None:
    """The superseded one of the other goes when it would have gone."""
    holdings = Holdings()
    for name in ("g1", "g2"):
        holdings.add(generation_named(name, collection="docs"), now=0.0)
    holdings.add(generation_named("g3", collection="articles"), now=50.0)
    assert holdings.retire(now=UNUSED_S) == ["g1"]
