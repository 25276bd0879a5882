"""Going on probation: who is slow for long and can be spared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.budget import BudgetTerms
from root.probation import FLEET_PART, FORGIVEN, LOOK_S, PEERS_MAX, PERSISTENT_S, SLOW
from root.ranking import PROBES
from tests.root.conftest import NOTHING_EXTRA, busy
from tests.root.probation_fleets import USUAL_S, fleet, look_for, probation_of, probed, ring


def test_a_leaf_that_stays_slow_goes_on_probation() -> None:
    """After two seconds, not before; nobody else does."""
    made = fleet(6, {2: 1.01 * SLOW * USUAL_S})
    replicas, probation = ring(made), probation_of()
    now = look_for(probation, replicas, PERSISTENT_S - LOOK_S)
    assert probation.leaves == []
    probation.look(replicas, now + LOOK_S)
    assert probation.leaves == [made[2]]
    assert [leaf.preferred for leaf in made] == [leaf is not made[2] for leaf in made]


def test_a_leaf_that_was_lost_and_is_put_on_probation_again_is_probed_once() -> None:
    """Before a look has noticed that it was away."""
    leaves = fleet(4)
    probation = probation_of()
    for _ in range(2):
        probation.put(leaves[0], 0.0)
        leaves[0].rejoin(0.0, USUAL_S)
    probation.put(leaves[0], 0.0)
    assert probation.leaves == [leaves[0]]


def test_looks_too_soon_count_for_nothing() -> None:
    """However many queries start, it takes as long; and a pause counts as two looks at most."""
    made = fleet(6, {2: 10 * USUAL_S})
    replicas, probation = ring(made), probation_of()
    for tick in range(100):
        probation.look(replicas, tick * LOOK_S / 100)
    probation.look(replicas, 1000.0)
    probation.look(replicas, 2000.0)
    assert probation.leaves == []
    look_for(probation, replicas, PERSISTENT_S, 2000.0)
    assert probation.leaves == [made[2]]


@pytest.mark.parametrize("times", [1.0, 2.0, 0.99 * SLOW])
def test_a_leaf_that_is_not_much_slower_keeps_its_traffic(times: float) -> None:
    """Ranking gives it less, and that is enough."""
    made = fleet(6, {2: times * USUAL_S})
    probation = probation_of()
    look_for(probation, ring(made), 60.0)
    assert probation.leaves == []


def test_a_leaf_that_nobody_has_asked_of_late_is_not_judged() -> None:
    """What is known of it is old: one slow leg, and then none, is not persistence."""
    made = fleet(6, {2: 10 * USUAL_S})
    made[2].idle_from_s = 1.0
    probation = probation_of()
    look_for(probation, ring(made), 60.0)
    assert probation.leaves == []


def test_a_leaf_that_nobody_asks_but_that_owes_answers_is_judged() -> None:
    """It has had time enough."""
    made = fleet(6, {2: 10 * USUAL_S})
    made[2].idle_from_s = 0.0
    made[2].outstanding = 1
    probation = probation_of()
    look_for(probation, ring(made), PERSISTENT_S)
    assert probation.leaves == [made[2]]


@pytest.mark.parametrize(("slow_looks", "found"), [(2, True), (1, False)])
def test_a_leaf_that_is_slow_now_and_then_is_found_out_if_it_is_often(
    slow_looks: int, *, found: bool
) -> None:
    """Two seconds of four are too much, one of four is not."""
    made = fleet(6)
    replicas, probation = ring(made), probation_of()
    for look in range(200):
        made[2].latency_s = (10 if look % 4 < slow_looks else 1) * USUAL_S
        probation.look(replicas, look * LOOK_S)
        if probation.leaves:
            break
    assert (probation.leaves == [made[2]]) is found


def test_nobody_is_slow_where_everybody_is() -> None:
    """Slow is compared with peers, not with what was before."""
    made = fleet(6)
    replicas, probation = ring(made), probation_of()
    look_for(probation, replicas, 5.0)
    for leaf in made:
        leaf.latency_s *= 10
    look_for(probation, replicas, 60.0, 5.0)
    assert probation.leaves == []


def test_with_two_peers_one_as_slow_as_the_leaf_does_not_hide_it() -> None:
    """Its other peer is what is typical."""
    made = fleet(9, {2: 10 * USUAL_S, 3: 10 * USUAL_S})
    replicas = [(made[i], made[(i + 1) % 9], made[(i + 4) % 9]) for i in range(9)]
    probation = probation_of()
    look_for(probation, replicas, PERSISTENT_S)
    assert probation.leaves == [made[2], made[3]]


@pytest.mark.parametrize("budget", [NOTHING_EXTRA, BudgetTerms(0.0), BudgetTerms(1.0, 1.0, 0.0)])
def test_without_extra_load_nobody_goes_on_probation(budget: BudgetTerms) -> None:
    """Nobody could be probed, so nobody could come back but by being forgotten."""
    made = fleet(6, {2: 10 * USUAL_S})
    probation = probation_of(budget)
    look_for(probation, ring(made), 60.0)
    assert probation.leaves == []


def test_the_last_live_replica_of_a_shard_is_never_spared() -> None:
    """Nor one whose shard is left to a leaf that is slow as well."""
    made = fleet(6, {2: 10 * USUAL_S})
    replicas, probation = ring(made), probation_of()
    made[3].connected = False
    now = look_for(probation, replicas, 60.0)
    assert probation.leaves == []
    made[3].connected = True
    made[3].latency_s = 10 * USUAL_S
    now = look_for(probation, replicas, 60.0, now)
    assert probation.leaves == []
    made[3].latency_s = USUAL_S
    look_for(probation, replicas, PERSISTENT_S / FORGIVEN + LOOK_S, now)
    assert probation.leaves == [made[2]]


def test_no_more_than_a_third_of_the_fleet_and_the_slowest_first() -> None:
    """Of seven leaves two, though three are slow and every one could be spared."""
    made = fleet(7, {1: 4 * USUAL_S, 3: 6 * USUAL_S, 5: 5 * USUAL_S})
    probation = probation_of()
    look_for(probation, [tuple(made)] * 3, PERSISTENT_S)
    assert probation.leaves == [made[3], made[5]]


@pytest.mark.parametrize("count", [1, 2])
def test_of_two_leaves_neither_goes(count: int) -> None:
    """A third of them is nobody; and a leaf alone has no peers."""
    made = fleet(count, {0: 100 * USUAL_S})
    probation = probation_of()
    look_for(probation, [tuple(made)], 60.0)
    assert probation.leaves == []


def test_a_fleet_without_a_connected_leaf_is_looked_at_as_well() -> None:
    """There is nobody to judge."""
    made = fleet(3)
    for leaf in made:
        leaf.connected = False
    probation = probation_of()
    look_for(probation, ring(made), 5.0)
    assert probation.leaves == []


def test_hundreds_of_peers_are_judged_by_some_of_them() -> None:
    """The median of fifty is the median."""
    made = fleet(4 * PEERS_MAX, {7: 10 * USUAL_S})
    probation = probation_of()
    look_for(probation, [tuple(made)], PERSISTENT_S)
    assert probation.leaves == [made[7]]


# --- whatever happens --------------------------------------------------------------------

happenings = st.lists(
    st.tuples(
        st.sampled_from(["slow", "well", "lost", "back", "probed", "time"]), st.integers(0, 6)
    ),
    max_size=60,
)
placements = st.lists(
    st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True), min_size=1, max_size=6
)


@given(placement=placements, happening=happenings)
def test_nobody_is_put_on_probation_who_is_needed(
    placement: list[list[int]], happening: list[tuple[str, int]]
) -> None:
    """Whoever goes leaves each of its shards a connected leaf that is not on probation; no more
    than a third of the fleet is on it; and whoever is, is connected.
    """
    made = fleet(7)
    replicas = [tuple(made[i] for i in held) for held in placement]
    known = len({leaf for shard in replicas for leaf in shard})
    probation, now = probation_of(), 0.0
    for what, number in happening:
        leaf = made[number]
        match what:
            case "slow" | "well":
                leaf.latency_s = (10 if what == "slow" else 1) * USUAL_S
            case "lost":
                leaf.connected = False
            case "back" if not leaf.connected:
                leaf.rejoin(now, USUAL_S)
                busy(leaf)
            case "probed" if leaf.trial is not None:
                now = probed(leaf, [leaf.latency_s] * PROBES, now)
        for _ in range(4):
            now += LOOK_S
            before = list(probation.leaves)
            probation.look(replicas, now)
            went = [leaf for leaf in probation.leaves if leaf not in before]
            for shard in replicas:
                if any(leaf in shard for leaf in went):
                    assert any(leaf.preferred for leaf in shard)
            assert len(probation.leaves) <= known // FLEET_PART
            assert all(leaf.connected and leaf.trial for leaf in probation.leaves)
            on_it = [leaf for leaf in made if leaf.trial]
            assert sorted(map(id, on_it)) == sorted(map(id, probation.leaves))
