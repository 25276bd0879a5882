"""Rebalancing relieves leaves that carry too much, with few and small changes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.placement import check_chosen, holders
from index_data.rebalance import BadLoad, Load, Proposal, chosen_of, propose

loads = st.lists(st.floats(0.0, 1000.0), min_size=1, max_size=30)


def by_the_rule(shards: int, leaves: int, replicas: int) -> tuple[tuple[int, ...], ...]:
    return holders(shards=shards, leaves=leaves, replicas=replicas)


def load_of(work_s: list[float], leaves: int, domains: tuple[str, ...] = ()) -> Load:
    return Load(work_s, [100] * len(work_s), leaves, domains)


def one_hot(leaves: int = 4, domains: tuple[str, ...] = ()) -> tuple[Load, Proposal]:
    """Sixteen shards on two leaves each, of which shard 3 has as much to do as all others."""
    load = load_of([15.0 if shard == 3 else 1.0 for shard in range(16)], leaves, domains)
    return load, propose(load, by_the_rule(16, leaves, 2), replicas=2)


def test_a_hot_shard_gets_more_replicas_and_leaves_are_even() -> None:
    """The leaves that had it carried far more than the mean, and afterwards nobody does."""
    load, proposal = one_hot()
    assert load.ratio(proposal.before) > 1.4
    assert proposal.reached
    assert load.ratio(proposal.after) <= 1.25
    assert len(proposal.after[3]) > 2
    assert [change.shard for change in proposal.changes] == [3]


def test_a_shard_that_one_more_copy_does_not_cool_gets_several() -> None:
    """With everything to do in one shard of many leaves, it comes to nearly all of them."""
    load = load_of([100.0, *[0.0] * 7], 8)
    proposal = propose(load, by_the_rule(8, 8, 2), replicas=2)
    assert proposal.reached
    assert len(proposal.after[0]) == 7  # 8/7 of the mean; six would be a third above it


def test_where_moving_relieves_as_much_as_copying_a_shard_is_moved() -> None:
    """It takes no more memory."""
    table = ((0,), (0,), (0,), (0,), (1,), (1,))
    proposal = propose(load_of([1.0] * 6, 2), table, replicas=1)
    assert proposal.reached
    assert [(change.added, change.removed) for change in proposal.changes] == [((1,), (0,))]


def test_of_equal_steps_the_one_with_fewer_bytes_is_taken() -> None:
    """Two shards cost the same and one is a tenth of the size."""
    table = ((0,), (0,), (0,), (1,))
    load = Load([1.0] * 4, [100, 10, 100, 100], 2)
    proposal = propose(load, table, replicas=1)
    assert [change[:2] for change in proposal.changes] == [(1, (1,))]


def test_a_balanced_fleet_is_left_alone() -> None:
    """And so is one with nothing to do."""
    table = by_the_rule(16, 4, 2)
    for work_s in ([1.0] * 16, [0.0] * 16):
        proposal = propose(load_of(work_s, 4), table, replicas=2)
        assert (proposal.changes, proposal.reached) == ([], True)


def test_copies_go_when_the_load_that_they_were_for_has_gone() -> None:
    """A shard that is hot no longer falls back to its usual replicas."""
    _, hot = one_hot()
    cold = propose(load_of([1.0] * 16, 4), hot.after, replicas=2)
    assert cold.reached
    assert len(cold.after[3]) == 2


def test_a_copy_goes_to_a_domain_without_one() -> None:
    """Of the leaves that could take it, the one in a third rack; the others are no idler."""
    domains = ("a", "b", "a", "c", "a", "b")
    load, proposal = one_hot(6, domains)
    before, after = proposal.before[3], proposal.after[3]
    assert load.spread(before) == 2
    assert after[: len(before) + 1] == (*before, 3)


def test_a_limit_that_is_not_reached_is_said() -> None:
    """Three shards on three leaves come to within a fifth of the mean, not to a twentieth."""
    load = load_of([1.0, 1.0, 3.0], 3)
    proposal = propose(load, ((0,), (0,), (0,)), replicas=1, ratio=1.05)
    assert not proposal.reached
    assert load.ratio(proposal.after) == pytest.approx(1.2)


@given(loads, st.integers(1, 8), st.data())
def test_a_proposal_is_legal_no_worse_and_final(
    work_s: list[float], leaves: int, data: st.DataObject
) -> None:
    """It can be written, the fullest leaf carries no more than before or than is allowed, and
    asked again with the same load it changes nothing.
    """
    replicas = data.draw(st.integers(1, leaves))
    domains = data.draw(st.sampled_from([(), tuple(f"d{leaf % 3}" for leaf in range(leaves))]))
    table = by_the_rule(len(work_s), leaves, replicas)
    load = load_of(work_s, leaves, domains)
    proposal = propose(load, table, replicas=replicas)
    chosen = chosen_of(proposal.after, table)
    check_chosen(chosen, shards=len(work_s), leaves=leaves, replicas=replicas)
    assert math.isclose(sum(load.of_leaves(proposal.after)), sum(work_s), abs_tol=1e-6)
    assert load.ratio(proposal.after) <= max(load.ratio(table), 1.25) * (1 + 1e-6)
    assert proposal.reached == (load.ratio(proposal.after) <= 1.25 * (1 + 1e-9))
    for old, new in zip(table, proposal.after, strict=True):
        assert load.spread(new) >= load.spread(old)
    again = propose(load, proposal.after, replicas=replicas)
    assert again.changes == []


def test_only_what_differs_from_the_rule_is_chosen() -> None:
    """Whatever order the leaves come in."""
    rule = ((0, 1), (1, 2))
    assert chosen_of(((1, 0), (1, 0)), rule) == {1: (1, 0)}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"work_s": [1.0, -1.0]}, "work_s of shard 1"),
        ({"work_s": [math.nan, 1.0]}, "work_s of shard 0"),
        ({"work_s": [1.0, math.inf]}, "work_s of shard 1"),
        ({"size_bytes": [1]}, "1 sizes for 2 shards"),
        ({"domains": ("a",)}, "domains: 1 for 2 leaves"),
    ],
)
def test_a_load_that_nobody_measures_is_refused_by_name(
    change: dict[str, list[float]], named: str
) -> None:
    """A load that exists can be balanced."""
    with pytest.raises(BadLoad, match=named):
        replace(load_of([1.0, 1.0], 2), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("ratio", [1.0, 0.0, math.nan, 101.0])
def test_a_ratio_that_means_nothing_is_refused(ratio: float) -> None:
    """No leaf can be below the mean with all the others."""
    with pytest.raises(BadLoad, match="ratio"):
        propose(load_of([1.0], 1), ((0,),), replicas=1, ratio=ratio)
