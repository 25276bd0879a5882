"""Placement is balanced, moves little, and keeps replicas apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.placement import BadPlacement, Chosen, holders, owners, shards_of

shard_counts = st.integers(1, 300)
leaf_counts = st.integers(1, 40)


def loads(owner: tuple[int, ...], leaves: int) -> list[int]:
    """How many shards each leaf owns."""
    return [owner.count(leaf) for leaf in range(leaves)]


@given(shard_counts, leaf_counts)
def test_no_leaf_owns_more_than_one_shard_above_another(shards: int, leaves: int) -> None:
    """Owners are balanced to within one shard."""
    owned = loads(owners(shards=shards, leaves=leaves), leaves)
    assert sum(owned) == shards
    assert max(owned) - min(owned) <= 1


@given(shard_counts, leaf_counts)
def test_adding_a_leaf_moves_only_what_the_new_leaf_owns(shards: int, leaves: int) -> None:
    """No shard moves between leaves that were there before."""
    before = owners(shards=shards, leaves=leaves)
    after = owners(shards=shards, leaves=leaves + 1)
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert moved == [leaves] * (shards // (leaves + 1))


@given(shard_counts, leaf_counts, st.data())
def test_replicas_of_a_shard_sit_on_different_leaves(
    shards: int, leaves: int, data: st.DataObject
) -> None:
    """Every shard is held by exactly as many leaves as it has replicas."""
    replicas = data.draw(st.integers(1, leaves))
    for held in holders(shards=shards, leaves=leaves, replicas=replicas):
        assert len(set(held)) == replicas
        assert all(0 <= leaf < leaves for leaf in held)


@given(shard_counts, leaf_counts, st.data())
def test_a_leaf_finds_its_shards_from_its_number_alone(
    shards: int, leaves: int, data: st.DataObject
) -> None:
    """What a leaf computes for itself is what the whole table says of it."""
    replicas = data.draw(st.integers(1, leaves))
    table = holders(shards=shards, leaves=leaves, replicas=replicas)
    for leaf in range(leaves):
        mine = shards_of(shards=shards, ordinal=leaf, leaves=leaves, replicas=replicas)
        assert mine == tuple(shard for shard, held in enumerate(table) if leaf in held)


def test_opposite_leaves_of_four_share_nothing() -> None:
    """With four leaves and two replicas, leaves 0 and 2 hold different shards, as do 1 and 3."""
    held = [set(shards_of(shards=16, ordinal=i, leaves=4, replicas=2)) for i in range(4)]
    assert not held[0] & held[2]
    assert not held[1] & held[3]
    assert held[0] | held[2] == held[1] | held[3] == set(range(16))
    assert [len(shards) for shards in held] == [8] * 4


def test_one_leaf_holds_everything() -> None:
    """With one leaf there is nothing to place."""
    assert shards_of(shards=5, ordinal=0, leaves=1, replicas=1) == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("ordinal", "leaves", "replicas", "named"),
    [
        (0, 2, 3, "replicas"),
        (0, 2, 0, "replicas"),
        (2, 2, 1, "ordinal"),
        (-1, 2, 1, "ordinal"),
        (0, 0, 1, "leaves"),
        (0, 10**9, 1, "leaves"),
    ],
)
def test_impossible_numbers_are_named(ordinal: int, leaves: int, replicas: int, named: str) -> None:
    """An impossible placement says which number is wrong."""
    with pytest.raises(BadPlacement, match=named):
        shards_of(shards=4, ordinal=ordinal, leaves=leaves, replicas=replicas)


def test_no_shards_cannot_be_placed() -> None:
    """Zero shards are refused by name."""
    with pytest.raises(BadPlacement, match="shards"):
        owners(shards=0, leaves=1)


def test_a_chosen_shard_is_where_it_was_chosen_to_be_and_all_others_by_the_rule() -> None:
    """A hot shard on three leaves, another on a leaf of its own choosing."""
    chosen = {3: (0, 1, 2), 5: (3, 1)}
    rule = holders(shards=8, leaves=4, replicas=2)
    table = holders(shards=8, leaves=4, replicas=2, chosen=chosen)
    assert all(table[shard] == chosen.get(shard, rule[shard]) for shard in range(8))
    for leaf in range(4):
        mine = shards_of(shards=8, ordinal=leaf, leaves=4, replicas=2, chosen=chosen)
        assert mine == tuple(shard for shard, held in enumerate(table) if leaf in held)


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({8: (0, 1)}, "there is no shard 8"),
        ({-1: (0, 1)}, "there is no shard -1"),
        ({0: (0, 4)}, "shard 0: a leaf"),
        ({0: (1, 1)}, "shard 0: a leaf is named twice"),
        ({0: (1,)}, "shard 0: 1 leaves are fewer"),
    ],
)
def test_a_choice_that_names_what_is_not_there_is_refused(chosen: Chosen, named: str) -> None:
    """Nor can a choice leave a shard with fewer replicas than the fleet's."""
    with pytest.raises(BadPlacement, match=named):
        holders(shards=8, leaves=4, replicas=2, chosen=chosen)
