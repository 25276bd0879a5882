"""Choosing a replica: a leaf never looks better for being worse."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.ranking import (
    FAILURE_HALF_LIFE_S,
    FAILURE_WEIGHT,
    FAILURES_FORGOTTEN_S,
    FORGIVEN_HALF_LIFE_S,
    IDLE_S,
    PROBES,
    SLOW_START_FACTOR,
    SLOW_START_S,
    SMOOTHING,
    SUCCEEDING_MIN,
    UNKNOWN_LATENCY_S,
    Leaf,
    choose,
)
from tests.root.conftest import LONG_AGO_S, busy, leaves

seconds = st.floats(1e-5, 10.0)


def leaf_like(outstanding: int, latency_s: float, failures: int, age_s: float) -> Leaf:
    """A leaf in that state at time 0."""
    leaf = busy(Leaf("x", -age_s, latency_s))
    leaf.outstanding = outstanding
    for _ in range(failures):
        leaf.failed(0.0)
    return leaf


@given(
    outstanding=st.tuples(st.integers(0, 100), st.integers(0, 100)),
    latency_s=st.tuples(seconds, seconds),
    failures=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    age_s=st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 10.0)),
)
def test_cost_rises_with_everything_that_is_bad(
    outstanding: tuple[int, int],
    latency_s: tuple[float, float],
    failures: tuple[int, int],
    age_s: tuple[float, float],
) -> None:
    """More outstanding, slower, failing more, or newer: never cheaper."""
    better = leaf_like(min(outstanding), min(latency_s), min(failures), max(age_s))
    worse = leaf_like(max(outstanding), max(latency_s), max(failures), min(age_s))
    assert better.cost(0.0) <= worse.cost(0.0) * (1 + 1e-12)


@pytest.mark.parametrize(
    "worse",
    [
        leaf_like(4, 0.01, 1, 9.0),
        leaf_like(3, 0.02, 1, 9.0),
        leaf_like(3, 0.01, 2, 9.0),
        leaf_like(3, 0.01, 1, 4.9),
    ],
)
def test_each_alone_makes_a_leaf_dearer(worse: Leaf) -> None:
    """Queue, latency, failures and youth each count by themselves."""
    assert worse.cost(0.0) > leaf_like(3, 0.01, 1, 9.0).cost(0.0)


def test_a_new_leaf_starts_slowly() -> None:
    """It looks four times as dear at first and evenly less until it is like the others."""
    leaf = busy(Leaf("new", 0.0, 0.01))
    costs = [leaf.cost(SLOW_START_S * part) / 0.01 for part in (0.0, 0.5, 1.0, 2.0)]
    assert costs == pytest.approx([SLOW_START_FACTOR, (SLOW_START_FACTOR + 1) / 2, 1.0, 1.0])


def test_a_leaf_that_comes_back_is_new_again() -> None:
    """Its latency is its peers', its age 0; what it owes and failed is not forgiven."""
    leaf = Leaf("back", LONG_AGO_S)
    leaf.connected = False
    leaf.outstanding = 1
    leaf.rejoin(10.0, 0.02)
    assert (leaf.connected, leaf.joined_s, leaf.latency_s) == (True, 10.0, 0.02)
    assert leaf.cost(10.0) == pytest.approx(2 * 0.02 * SLOW_START_FACTOR)
    leaf.failed(10.0)
    leaf.rejoin(11.0, 0.02)
    assert leaf.failing(11.0) > 0.0


def test_latency_follows_the_answers() -> None:
    """After many answers of one kind it is theirs."""
    leaf = Leaf("x", 0.0)
    assert leaf.latency_s == UNKNOWN_LATENCY_S
    for _ in range(200):
        leaf.answered(0.05)
    assert leaf.latency_s == pytest.approx(0.05, rel=0.01)


@given(given_up_s=seconds, latency_s=seconds)
def test_an_attempt_given_up_speaks_only_for_slower(given_up_s: float, latency_s: float) -> None:
    """A leaf that is always beaten rises in latency; being given up early makes none faster."""
    leaf = Leaf("x", 0.0, latency_s)
    leaf.took_at_least(given_up_s)
    assert latency_s <= leaf.latency_s <= max(latency_s, given_up_s)
    if given_up_s > latency_s * 1.001:  # closer, and the step may be below a float's
        assert leaf.latency_s > latency_s


def test_failures_fade_with_time_and_with_answers() -> None:
    """Half is forgotten in FAILURE_HALF_LIFE_S, and every answer forgives a part."""
    leaf = busy(Leaf("x", LONG_AGO_S))
    assert leaf.failing(0.0) == 0.0
    leaf.failed(0.0)
    failing = leaf.failing(0.0)
    assert 0.0 < failing < 1.0
    assert leaf.failing(FAILURE_HALF_LIFE_S) == pytest.approx(failing / 2)
    leaf.answered(0.005)
    assert leaf.failing(0.0) < failing
    for _ in range(100):
        leaf.failed(1.0)
    assert leaf.failing(1.0) == pytest.approx(1.0)
    worst = (1 + FAILURE_WEIGHT) / SUCCEEDING_MIN
    assert leaf.cost(1.0) == pytest.approx(leaf.latency_s * worst)


def test_a_leaf_that_fails_everything_is_never_the_better_choice() -> None:
    """It has no queue, as it fails at once: its peers may have a long one. Some seconds after the
    last failure it is tried again where they have.
    """
    failing, working = leaf_like(0, 0.01, 20, 9.0), leaf_like(500, 0.01, 0, 9.0)
    replicas = (failing, working)
    assert choose(replicas, (), Random(1), 0.1) is working
    assert choose(replicas, (), Random(1), 2 * FAILURE_HALF_LIFE_S) is failing


def test_failures_are_forgotten_in_the_end() -> None:
    """Half a minute after the last one a leaf costs exactly what it would have cost."""
    failed, clean = leaf_like(2, 0.01, 20, 9.0), leaf_like(2, 0.01, 0, 9.0)
    assert failed.cost(FAILURES_FORGOTTEN_S - 0.1) > clean.cost(FAILURES_FORGOTTEN_S - 0.1)
    assert failed.cost(FAILURES_FORGOTTEN_S) == clean.cost(FAILURES_FORGOTTEN_S)
    assert failed.failing(FAILURES_FORGOTTEN_S) == 0.0


def test_a_leaf_that_nobody_chooses_is_forgiven_with_time() -> None:
    """The longer it is idle the less counts what was known of it; in use, all of it counts."""
    leaf = Leaf("slow", LONG_AGO_S, 1.0)
    leaf.chosen(0.0)
    leaf.outstanding = 0
    assert leaf.cost(IDLE_S) == 1.0
    assert leaf.cost(IDLE_S + FORGIVEN_HALF_LIFE_S) == pytest.approx(0.5)
    assert leaf.cost(IDLE_S + 10 * FORGIVEN_HALF_LIFE_S) == pytest.approx(2**-10)


def test_after_idleness_one_leg_is_tried_and_its_answer_believed() -> None:
    """Chosen again it is as dear as before, so no flood follows; then it is what it shows."""
    leaf = Leaf("healed", LONG_AGO_S, 1.0)
    leaf.chosen(0.0)
    assert leaf.cost(0.0) == 2.0
    leaf.outstanding -= 1
    leaf.answered(0.01)
    assert leaf.latency_s == pytest.approx(0.01)
    leaf.answered(1.0)
    assert leaf.latency_s == pytest.approx(0.01 + SMOOTHING * 0.99)


def test_a_leaf_that_was_slow_once_gets_its_share_again() -> None:
    """With nobody hedging, and a peer that is idle half of the time, it is still measured."""
    pair, random = leaves(2), Random(1)
    slow, fast = pair
    now = 0.0
    for leaf in pair:
        leaf.idle_from_s = now
    slow.latency_s, fast.latency_s = 1.0, 0.01
    chosen = [0, 0]
    while now < 60.0:
        best = choose(pair, (), random, now)
        assert best is not None
        best.chosen(now)
        now += 0.05
        best.outstanding -= 1
        best.answered(0.01)
        chosen[pair.index(best)] += 1
    assert min(chosen) > 0.3 * sum(chosen)


# --- probation ---------------------------------------------------------------------------


def test_probation_ends_with_the_connection() -> None:
    """A leaf is preferred while it is connected and not on probation."""
    leaf = leaves(1)[0]
    assert leaf.preferred
    leaf.put_on_probation(0.0)
    assert (leaf.connected, leaf.preferred) == (True, False)
    leaf.connected = False
    assert leaf.trial is None
    leaf.connected = True
    assert leaf.preferred


def test_a_trial_knows_a_latency_once_it_has_enough_probes() -> None:
    """It is the mean of the last ones: what was before is forgotten."""
    leaf = leaves(1)[0]
    leaf.put_on_probation(0.0)
    trial = leaf.trial
    assert trial is not None
    for _ in range(PROBES - 1):
        leaf.probe_took(1.0)
        assert trial.latency_s is None
    leaf.probe_took(0.2)
    assert trial.latency_s == pytest.approx((PROBES - 1 + 0.2) / PROBES)
    for _ in range(PROBES):
        leaf.probe_took(0.2)
    assert trial.latency_s == pytest.approx(0.2)


def test_probes_without_an_answer_make_no_leaf_look_faster() -> None:
    """One given up early counts as what is known of the leaf, one given up late as so long."""
    leaf = leaves(1)[0]
    leaf.latency_s = 1.0
    leaf.put_on_probation(0.0)
    trial = leaf.trial
    assert trial is not None
    for _ in range(PROBES):
        leaf.probe_took_at_least(0.01)
    assert trial.latency_s == leaf.latency_s == 1.0
    for _ in range(PROBES):
        leaf.probe_took_at_least(3.0)
    assert trial.latency_s == pytest.approx(3.0)
    assert leaf.latency_s > 1.0


def test_probes_that_end_after_probation_are_ordinary_measurements() -> None:
    """They change what is known of the leaf, and no trial."""
    leaf = leaves(1)[0]
    known_s = leaf.latency_s
    leaf.probe_took(known_s + 1.0)
    leaf.probe_took_at_least(known_s + 2.0)
    assert leaf.latency_s > known_s + SMOOTHING
    assert leaf.trial is None


# --- choosing ----------------------------------------------------------------------------


@given(
    connected=st.lists(st.booleans(), max_size=6),
    outstanding=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    tried=st.sets(st.integers(0, 5)),
    seed=st.integers(0, 5),
)
def test_only_untried_connected_leaves_are_chosen(
    connected: list[bool], outstanding: list[int], tried: set[int], seed: int
) -> None:
    """One of them is, whenever there is one."""
    replicas = leaves(len(connected))
    for leaf, up, owed in zip(replicas, connected, outstanding, strict=False):
        leaf.connected = up
        leaf.outstanding = owed
    used = [leaf for i, leaf in enumerate(replicas) if i in tried]
    possible = [leaf for leaf in replicas if leaf.connected and leaf not in used]
    chosen = choose(replicas, used, Random(seed), 0.0)
    assert chosen in possible if possible else chosen is None
    if len(possible) == 2:
        assert chosen is not None
        assert chosen.cost(0.0) == min(leaf.cost(0.0) for leaf in possible)


@given(
    states=st.lists(st.sampled_from(["lost", "probation", "well"]), max_size=6),
    domains=st.lists(st.sampled_from("xyz"), min_size=6, max_size=6),
    tried=st.sets(st.integers(0, 5)),
    seed=st.integers(0, 5),
)
def test_the_best_kind_of_candidate_is_chosen(
    states: list[str], domains: list[str], tried: set[int], seed: int
) -> None:
    """Off probation before on it, then out of the domains tried before in them; never a leaf
    that was tried or is not connected, and always one while there is one.
    """
    replicas = leaves(len(states))
    for leaf, state, domain in zip(replicas, states, domains, strict=False):
        leaf.domain = domain
        if state == "probation":
            leaf.put_on_probation(0.0)
        leaf.connected = state != "lost"
    used = [leaf for i, leaf in enumerate(replicas) if i in tried]
    possible = [leaf for leaf in replicas if leaf.connected and leaf not in used]
    chosen = choose(replicas, used, Random(seed), 0.0)
    if not possible:
        assert chosen is None
        return
    assert chosen in possible
    kind = [leaf for leaf in possible if leaf.preferred] or possible
    assert chosen in kind
    domains_tried = {leaf.domain for leaf in used}
    if any(leaf.domain not in domains_tried for leaf in kind):
        assert chosen.domain not in domains_tried


@pytest.mark.parametrize(
    ("connected", "name"), [((1, 0), "a"), ((0, 1), "b"), ((0, 0), None), ((0, 1, 0), "b")]
)
def test_the_only_connected_leaf_is_chosen(connected: tuple[int, ...], name: str | None) -> None:
    """However dear it is: there is no other."""
    replicas = leaves(len(connected))
    for leaf, up in zip(replicas, connected, strict=True):
        leaf.connected = bool(up)
        leaf.outstanding = 100 * up
    chosen = choose(replicas, (), Random("only"), 0.0)
    assert name == (chosen.name if chosen else None)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("tried", [0, 1])
def test_ties_spread_evenly(count: int, tried: int) -> None:
    """Leaves that are equal get equal shares, and the same seed gives the same choices."""
    replicas = leaves(count + tried)

    def chosen(seed: str) -> list[Leaf | None]:
        random = Random(seed)
        return [choose(replicas, replicas[:tried], random, 0.0) for _ in range(6000)]

    shares = Counter(leaf.name for leaf in chosen("ties") if leaf is not None)
    assert len(shares) == count
    assert all(n == pytest.approx(6000 / count, rel=0.1) for n in shares.values())
    assert chosen("ties") == chosen("ties")


def served(replicas: list[Leaf], picks: int, random: Random, start_s: float = 0.0) -> Counter[str]:
    """Send a leg every 5 ms, while others come and go; each is answered in about 10 ms."""
    shares: Counter[str] = Counter()
    for pick in range(picks):
        for leaf in replicas:
            leaf.outstanding = random.randint(0, 3)
        chosen = choose(replicas, (), random, start_s + pick * 0.005)
        assert chosen is not None
        shares[chosen.name] += 1
        chosen.answered(random.uniform(0.008, 0.012))
    return shares


def test_a_leaf_that_fails_at_once_swallows_no_traffic() -> None:
    """A leaf that fails every leg in no time gets far less than its share."""
    good, bad = leaves(2)
    random = Random("failing")
    picked = Counter[str]()
    for pick in range(2000):
        leaf = choose([good, bad], (), random, pick * 0.01)
        assert leaf is not None
        picked[leaf.name] += 1
        if leaf is bad:
            leaf.failed(pick * 0.01)
        else:
            leaf.answered(0.010)
    assert picked["b"] < 0.05 * 2000


def test_a_leaf_that_flapped_once_gets_its_traffic_back() -> None:
    """Some seconds after its last failure it is like the others."""
    replicas = leaves(2)
    random = Random("flapped")
    served(replicas, 100, random)
    for _ in range(20):
        replicas[1].failed(1.0)
    assert served(replicas, 200, random, 1.0)["b"] < 20
    assert served(replicas, 2000, random, 40.0)["b"] > 800


def test_a_new_leaf_is_not_flooded() -> None:
    """In its first five seconds it gets no more than one and a half times its share."""
    replicas = leaves(3)
    random = Random("new")
    served(replicas[:2], 200, random)
    replicas[2].rejoin(1.0, replicas[0].latency_s)
    assert served(replicas, 1000, random, 1.0)["c"] <= 1.5 / 3 * 1000


def test_a_leaf_that_answers_nothing_looks_as_busy_as_it_is() -> None:
    """Legs that it has not ended raise its cost until it gets no more."""
    alive, stopped = leaves(2)
    random = Random("stopped")
    for _ in range(200):
        leaf = choose([alive, stopped], (), random, 0.0)
        assert leaf is not None
        leaf.outstanding += leaf is stopped
    assert stopped.outstanding == 1
