"""Dealing balances documents exactly and lengths closely, the same way every time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data import partition
from index_data.partition import deal, length_deviation


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 9)), min_size=1, max_size=80), st.data()
)
def test_shards_have_the_same_number_of_documents(
    lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Every document is dealt once and shard sizes differ by at most one."""
    shards = data.draw(st.integers(1, len(lengths)))
    columns = [list(column) for column in zip(*lengths, strict=True)]
    dealt = list(deal(columns, len(lengths), shards))
    sizes = [dealt.count(shard) for shard in range(shards)]
    assert sum(sizes) == len(lengths)
    assert max(sizes) - min(sizes) <= 1


def skewed(documents: int) -> list[list[int]]:
    """Lengths of two fields as real texts have them: a few very long, most short."""
    rng = random.Random("lengths")
    bodies = [int(rng.lognormvariate(3.5, 1.0)) for _ in range(documents)]
    return [bodies, [rng.randint(1, 8) for _ in range(documents)]]


def deviation_of(columns: list[list[int]], dealt: list[int], shards: int) -> float:
    """The deviation that a deal of these lengths has."""
    tokens = [
        [
            sum(n for n, at in zip(column, dealt, strict=True) if at == shard)
            for shard in range(shards)
        ]
        for column in columns
    ]
    return length_deviation(tokens, [dealt.count(shard) for shard in range(shards)])


def test_average_lengths_are_close_in_every_field() -> None:
    """Two fields of four thousand skewed documents end within half a percent, not within tens."""
    columns = skewed(4000)
    assert deviation_of(columns, list(deal(columns, 4000, 16)), 16) < 0.005
    assert deviation_of(columns, [i % 16 for i in range(4000)], 16) > 0.05


def test_large_collections_are_dealt_with_fewer_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Comparing only two shards a document still balances better than dealing blindly."""
    monkeypatch.setattr(partition, "COMPARISONS_MAX", 1)
    columns = skewed(4000)
    dealt = list(deal(columns, 4000, 16))
    assert deviation_of(columns, dealt, 16) < deviation_of(
        columns, [i % 16 for i in range(4000)], 16
    )


def test_dealing_is_repeatable() -> None:
    """Equal lengths give an equal deal."""
    columns = skewed(500)
    assert deal(columns, 500, 7) == deal(columns, 500, 7)


def test_documents_without_fields_can_be_dealt() -> None:
    """With nothing to balance only counts are."""
    assert sorted(deal([], 5, 2)) == [0, 0, 0, 1, 1]


def test_deviation_is_the_worst_of_all_fields_and_shards() -> None:
    """Averages 2 and 4 around 3 are a third off; a field without tokens is nowhere off."""
    assert length_deviation([[3, 3], [2, 4], [0, 0]], [1, 1]) == pytest.approx(1 / 3)
