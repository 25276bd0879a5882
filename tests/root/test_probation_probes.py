"""On probation: when a leaf is probed, and how it comes back."""

from __future__ import annotations

import pytest

from root.budget import Budget
from root.probation import GOOD, LOOK_S, PERSISTENT_S, PROBE_EVERY_S, UNPROBED_S, Probation
from root.ranking import PROBES, SLOW_START_FACTOR, Leaf
from tests.root.conftest import PLENTY, busy
from tests.root.probation_fleets import (
    USUAL_S,
    Sent,
    fleet,
    look_for,
    probation_of,
    probed,
    ring,
)

# --- probes ------------------------------------------------------------------------------


def test_probes_are_a_trickle_of_one_at_a_time() -> None:
    """One every PROBE_EVERY_S, none while the last one is on its way."""
    leaf, probation = fleet(1)[0], probation_of()
    probation.put(leaf, 0.0)
    assert probation.due(PROBE_EVERY_S - 0.001) == []
    assert probation.due(PROBE_EVERY_S) == [(leaf, 0)]
    probe = Sent()
    leaf.probed_by(probe, PROBE_EVERY_S)
    assert probation.due(PROBE_EVERY_S + 5.0) == []
    probe.end()
    assert probation.due(2 * PROBE_EVERY_S - 0.001) == []
    assert probation.due(2 * PROBE_EVERY_S) == [(leaf, 1)]


def test_a_leaf_that_swallows_a_probe_is_probed_again() -> None:
    """Nobody is written off for one message that was lost; nor is it let go for it."""
    made, probation = fleet(6), probation_of()
    probation.put(made[0], 0.0)
    made[0].probed_by(Sent(), 1.0)
    probation.look(ring(made), 1.0 + UNPROBED_S)
    assert probation.due(1.0 + UNPROBED_S) == [(made[0], 1)]


def test_nobody_is_probed_while_leaves_push_back() -> None:
    """That is no time for extra work."""
    budget = Budget(PLENTY, 0.0)
    probation = Probation(budget, 0.0)
    probation.put(fleet(1)[0], 0.0)
    budget.push_back(0.9)
    assert probation.due(1.0) == []
    assert probation.due(5.0)


def test_a_probe_after_probation_changes_no_trial() -> None:
    """Its leaf was lost, or let go, after the gather had asked who was due."""
    leaf, probation = fleet(1)[0], probation_of()
    probation.put(leaf, 0.0)
    leaf.connected = False
    assert probation.due(1.0) == []
    leaf.probed_by(Sent(), 1.0)
    assert leaf.trial is None


# --- coming back -------------------------------------------------------------------------


def on_probation(latency_s: float = 10 * USUAL_S) -> tuple[list[Leaf], Probation, float]:
    """Six leaves, the first of which is on probation, and since when."""
    made = fleet(6, {0: latency_s})
    probation = probation_of()
    now = look_for(probation, ring(made), PERSISTENT_S)
    assert probation.leaves == [made[0]]
    return made, probation, now


def test_a_leaf_returns_when_its_probes_are_near_its_peers() -> None:
    """With the latency that they showed, and slowly; a probe less does not do."""
    made, probation, now = on_probation()
    good_s = 0.99 * GOOD * USUAL_S
    now = probed(made[0], [good_s] * (PROBES - 1), now)
    probation.look(ring(made), now)
    assert probation.leaves == [made[0]]
    now = probed(made[0], [good_s], now) + LOOK_S
    probation.look(ring(made), now)
    assert probation.leaves == []
    assert made[0].preferred
    assert made[0].latency_s == pytest.approx(good_s)
    assert made[0].cost(now) == pytest.approx(good_s * SLOW_START_FACTOR)


def test_a_leaf_stays_while_its_probes_are_slow() -> None:
    """Though it be faster than when it went; its peers getting slower brings it back."""
    made, probation, now = on_probation()
    now = probed(made[0], [2.0 * USUAL_S] * 100, now)
    now = look_for(probation, ring(made), 5.0, now)
    assert probation.leaves == [made[0]]
    for leaf in made[1:]:
        leaf.latency_s = 2.0 * USUAL_S
    look_for(probation, ring(made), LOOK_S, now)
    assert probation.leaves == []


def test_a_leaf_that_cannot_be_probed_is_let_go() -> None:
    """It is taken for typical, and starts slowly: it is not known any more."""
    made, probation, now = on_probation()
    probation.look(ring(made), now + UNPROBED_S - LOOK_S)
    assert probation.leaves == [made[0]]
    now += UNPROBED_S + LOOK_S
    probation.look(ring(made), now)
    assert probation.leaves == []
    assert made[0].latency_s == USUAL_S
    assert made[0].cost(now) == pytest.approx(USUAL_S * SLOW_START_FACTOR)


def test_a_leaf_without_peers_is_let_go_as_what_it_is_known_for() -> None:
    """They are lost, so nothing is typical, and its probes compare with nothing."""
    made, probation, now = on_probation()
    for leaf in made[1:]:
        leaf.connected = False
    now = probed(made[0], [USUAL_S] * PROBES, now)
    known_s = made[0].latency_s
    probation.look(ring(made), now)
    assert probation.leaves == [made[0]]
    probation.look(ring(made), now + UNPROBED_S + 5.0)
    assert probation.leaves == []
    assert made[0].latency_s == known_s


def test_a_leaf_of_another_generation_is_let_go_too() -> None:
    """It is on probation, and the fleet that is looked at now does without it."""
    made, probation, now = on_probation()
    probation.look(ring(made[1:]), now + UNPROBED_S + LOOK_S)
    assert probation.leaves == []
    assert made[0].preferred


def test_a_lost_connection_ends_probation() -> None:
    """It comes back as new, and goes again if it still is slow."""
    made, probation, now = on_probation()
    made[0].connected = False
    now = look_for(probation, ring(made), LOOK_S, now)
    assert probation.leaves == []
    made[0].rejoin(now, USUAL_S)
    busy(made[0]).latency_s = 10 * USUAL_S
    now = look_for(probation, ring(made), PERSISTENT_S - 2 * LOOK_S, now)
    assert probation.leaves == []
    look_for(probation, ring(made), 3 * LOOK_S, now)
    assert probation.leaves == [made[0]]


def test_a_leaf_that_could_long_not_be_spared_is_forgiven_as_soon() -> None:
    """Two seconds of slowness are the most that counts against it."""
    made = fleet(6, {2: 10 * USUAL_S})
    replicas, probation = ring(made), probation_of()
    made[3].connected = False
    now = look_for(probation, replicas, 600.0)
    made[2].latency_s = USUAL_S
    now = look_for(probation, replicas, 2 * PERSISTENT_S, now)
    made[3].connected = True
    made[2].latency_s = 10 * USUAL_S
    look_for(probation, replicas, PERSISTENT_S - 2 * LOOK_S, now)
    assert probation.leaves == []
