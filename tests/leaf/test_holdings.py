"""What a leaf holds, and when it lets go."""

from __future__ import annotations

from typing import Any

from leaf.holdings import UNUSED_S, Holdings


def names(holdings: Holdings) -> list[str]:
    return [held.card.generation for held in holdings]


def test_the_newest_is_the_last_added(generation_named: Any) -> None:
    """New queries use the generation that came last; nothing is newest before that."""
    holdings = Holdings()
    assert holdings.newest is None
    for name in ("g1", "g2"):
        holdings.add(generation_named(name), now=0.0)
    assert holdings.newest is not None
    assert holdings.newest.card.generation == "g2"


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


def test_a_generation_opened_anew_takes_its_place(generation_named: Any) -> None:
    """The same name is held once."""
    holdings = Holdings()
    for name in ("g1", "g2", "g1"):
        holdings.add(generation_named(name), now=0.0)
    assert names(holdings) == ["g2", "g1"]


def test_what_is_superseded_stays_until_others_have_the_new_one_too(generation_named: Any) -> None:
    """However long nobody had asked before: the time to let go starts when the new one comes."""
    holdings = Holdings()
    holdings.add(generation_named("g1"), now=0.0)
    holdings.add(generation_named("g2"), now=100.0)
    assert holdings.retire(now=100.0 + UNUSED_S - 0.1) == []
    assert holdings.retire(now=100.0 + UNUSED_S) == ["g1"]
