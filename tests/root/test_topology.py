"""Who holds what: a view for each generation, and which of them is searched."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import Field, GenerationCard
from root.ranking import Leaf
from root.topology import Held, newest_covered, views
from tests.root.conftest import leaves

OLD, NEW = "20260101-000000-aaaa", "20260102-000000-aaaa"


def card(generation: str, documents: tuple[int, ...] = (10, 20, 30)) -> GenerationCard:
    return GenerationCard(generation, documents, (Field("name", "text"),), 0.01)


def held(leaf: Leaf, generation: str, shards: Sequence[int]) -> Held:
    return Held(leaf, card(generation), shards)


def test_a_view_lists_the_replicas_of_each_shard() -> None:
    """In the order in which leaves are listed, and none where nobody holds it."""
    a, b = leaves(2)
    view = views([held(a, NEW, [0, 2]), held(b, NEW, [2])])[NEW]
    assert view.replicas == ((a,), (), (a, b))
    assert view.shard_replicas() == [(0, (a,)), (1, ()), (2, (a, b))]
    assert view.uncovered == [1]
    assert view.documents == 60
    assert view.card == card(NEW)


def test_each_generation_has_its_own_view() -> None:
    """Oldest first, whichever leaf names it first."""
    a, b = leaves(2)
    known = views([held(a, NEW, [0]), held(b, OLD, [1]), held(a, OLD, [0])])
    assert list(known) == [OLD, NEW]
    assert known[OLD].replicas == ((a,), (b,), ())


def test_a_shard_that_moves_never_has_fewer_replicas() -> None:
    """Who is to give a shard up is asked until as many others serve it as are to: connected,
    and not about to give it up themselves.
    """
    a, b, c, d = leaves(4)
    leaving = Held(a, card(NEW), [0, 1], {0: 2})
    also = Held(d, card(NEW), [0], {0: 2})
    stays, comes = held(b, NEW, [0]), held(c, NEW, [0])
    for holdings, expected in (
        ([leaving, stays], (a, b)),
        ([leaving, stays, also], (a, b, d)),
        ([leaving, stays, comes], (b, c)),
        ([leaving, stays, comes, also], (b, c)),
    ):
        view = views(holdings)[NEW]
        assert view.replicas[0] == expected
        assert view.replicas[1] == (a,)
    b.connected = False
    assert views([leaving, stays, comes])[NEW].replicas[0] == (a, b, c)


def test_without_leaves_there_is_nothing_to_search() -> None:
    """No view at all, rather than an empty one."""
    assert views([]) == {}
    assert newest_covered({}) is None


def test_the_newest_whole_generation_is_searched() -> None:
    """One that is still being loaded does not replace one that is whole."""
    a, b = leaves(2)
    whole_old = [held(a, OLD, [0, 1, 2])]
    half_new = [held(b, NEW, [0, 1])]
    whole_new = [held(b, NEW, [0, 1, 2])]
    for holdings, expected in ((whole_old + half_new, OLD), (whole_old + whole_new, NEW)):
        chosen = newest_covered(views(holdings))
        assert chosen is not None
        assert chosen.card.generation == expected


@given(
    old=st.sets(st.integers(0, 2), min_size=1),
    new=st.sets(st.integers(0, 2), min_size=1),
)
def test_where_nothing_is_whole_the_one_held_best_is_searched(old: set[int], new: set[int]) -> None:
    """Fewest shards missing, and of equals the newest."""
    (a,) = leaves(1)
    chosen = newest_covered(views([held(a, NEW, sorted(new)), held(a, OLD, sorted(old))]))
    assert chosen is not None
    assert chosen.card.generation == (NEW if len(new) >= len(old) else OLD)


def test_a_view_keeps_what_it_was_made_of() -> None:
    """A query that pinned a view is not touched by what leaves say later."""
    (a,) = leaves(1)
    holdings = [held(a, NEW, [0, 1, 2])]
    view = views(holdings)[NEW]
    holdings.clear()
    assert view.uncovered == []
