"""What a plan does to legs: a function of plan, seed, leaf and arrivals, as its rules say."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from leaf.interference import Arrival, Interference, Plan, Trouble

LEGS = 20_000
CONSTANT = {"law": "constant", "ms": 10}
SPREAD = {"law": "uniform", "from_ms": 0, "to_ms": 1000}


def plan(*rules: dict[str, Any]) -> Plan:
    """A plan of these rules, as a file describes them."""
    return msgspec.convert({"about": "a test", "rules": rules}, Plan)


def in_force(*rules: dict[str, Any], leaf: int = 0, seed: int = 1) -> Interference:
    """A plan in force since time 0."""
    return Interference(plan(*rules), leaf=leaf, seed=seed, began_s=0.0)


def search(legs: int = 1, query: int | None = 1, **members: Any) -> Arrival:
    """A search of the first shards, part of a fan-out."""
    return Arrival(**{"kind": "search", "shards": range(legs), "query": query, **members})


def transits(interference: Interference, arrival: Arrival, now: float = 0.0) -> list[float]:
    """How long each leg is held back."""
    return [trouble.transit_s for trouble in interference.meet(arrival, now)]


# --- one rule ------------------------------------------------------------------------------


def test_durations_of_one_kind_add_up_and_kinds_stay_apart() -> None:
    """Two transits are one longer transit; being busy and blocking are other things."""
    interference = in_force(
        *({"kind": kind, "takes": CONSTANT} for kind in ("transit", "transit", "busy", "block"))
    )
    (trouble,) = interference.meet(search(), 0.0)
    assert trouble == Trouble(transit_s=0.02, busy_s=0.01, block_s=0.01, ending=None)


def test_of_rules_that_end_a_leg_the_first_decides() -> None:
    """The order of a plan is the order of its author."""
    interference = in_force(
        {"kind": "fail", "reason": "error", "where": {"shards": [1]}},
        {"kind": "hang"},
        {"kind": "refuse"},
    )
    endings = [trouble.ending for trouble in interference.meet(search(2), 0.0)]
    assert endings == [interference.plan.rules[1], interference.plan.rules[0]]


def test_so_large_a_share_of_legs_is_struck() -> None:
    """The share of legs is the probability, within what chance allows."""
    interference = in_force({"kind": "transit", "takes": CONSTANT, "probability": 0.014})
    struck = sum(held_s > 0.0 for held_s in transits(interference, search(LEGS)))
    assert abs(struck / LEGS - 0.014) < 4.0 * math.sqrt(0.014 * 0.986 / LEGS)


def test_outliers_are_so_many_times_as_long() -> None:
    """The share of outliers is what was asked for, and so is their factor."""
    outliers = {"share": 0.05, "factor": 5.0}
    interference = in_force({"kind": "transit", "takes": CONSTANT, "outliers": outliers})
    held = transits(interference, search(LEGS))
    assert set(held) == {0.01, 0.05}
    assert abs(held.count(0.05) / LEGS - 0.05) < 4.0 * math.sqrt(0.05 * 0.95 / LEGS)


def test_no_draw_is_longer_than_any_query_waits() -> None:
    """A heavy tail is cut: a leaf must be able to end."""
    outliers = {"share": 1.0, "factor": 1e6}
    interference = in_force({"kind": "transit", "takes": CONSTANT, "outliers": outliers})
    assert transits(interference, search()) == [600.0]


# --- shared draws --------------------------------------------------------------------------


def test_the_legs_of_a_query_share_its_draw_on_every_leaf() -> None:
    """Leaves that have nothing in common but plan and seed draw the same for one query."""
    rule = {"kind": "transit", "takes": SPREAD, "shared": True}
    one, other = in_force(rule, leaf=0), in_force(rule, leaf=1)
    transits(other, search(3, query=99))
    drawn: set[float] = set()
    for query in range(20):
        first = transits(one, search(5, query=query))
        assert len(set(first)) == 1
        assert transits(other, search(2, query=query, body=7)) == first[:2]
        drawn.update(first)
    assert len(drawn) == 20


def test_the_phases_of_a_query_draw_apart() -> None:
    """A fetch fans out anew: neither what it shares nor what its legs draw is the search's."""
    for shared in (True, False):
        interference = in_force({"kind": "transit", "takes": SPREAD, "shared": shared})
        kinds = ("search", "fetch", "lookup")
        assert len({transits(interference, search(kind=kind))[0] for kind in kinds}) == 3


def test_queries_without_numbers_share_by_what_they_ask_for() -> None:
    """The same body draws the same on every leaf; the legs draw for themselves each time."""
    shared = {"kind": "transit", "takes": SPREAD, "shared": True}
    one, other = in_force(shared, leaf=0), in_force(shared, leaf=1)
    transits(other, search(query=None, body=9))
    first = [transits(one, search(query=None, body=body)) for body in range(10)]
    assert [transits(other, search(query=None, body=body)) for body in range(10)] == first
    assert len({drawn for (drawn,) in first}) == 10
    each = in_force({"kind": "transit", "takes": SPREAD})
    assert len({transits(each, search(query=None))[0] for _ in range(10)}) == 10


def test_a_leg_has_a_part_of_its_own_of_a_shared_draw() -> None:
    """The parts of one draw are uniform numbers to a power: their mean is 1 / (power + 1)."""
    rule = {"kind": "transit", "takes": CONSTANT, "shared": True, "share_power": 0.625}
    held = transits(in_force(rule), search(LEGS))
    assert max(held) <= 0.01
    assert len(set(held)) > LEGS * 0.99
    assert sum(held) / LEGS == pytest.approx(0.01 / 1.625, rel=0.01)


def test_a_shared_rule_strikes_all_legs_of_a_query_or_none() -> None:
    """Its probability is that of a query."""
    interference = in_force({"kind": "fail", "probability": 0.5, "shared": True})
    struck = [
        {trouble.ending is not None for trouble in interference.meet(search(10, query=query), 0.0)}
        for query in range(2000)
    ]
    assert all(len(legs) == 1 for legs in struck)
    assert abs(struck.count({True}) / 2000 - 0.5) < 4.0 * math.sqrt(0.25 / 2000)


# --- chance --------------------------------------------------------------------------------

MIXED: list[dict[str, Any]] = [
    {"kind": "transit", "takes": SPREAD, "probability": 0.5},
    {"kind": "busy", "takes": SPREAD, "shared": True, "share_power": 2},
    {"kind": "hang", "probability": 0.1},
]


def story(interference: Interference) -> list[list[Trouble]]:
    """What some arrivals meet."""
    return [interference.meet(search(4, query=query), query / 10) for query in range(50)]


def test_a_leg_meets_the_same_whatever_else_arrives() -> None:
    """With a hedge's copy before it, beside other legs or alone, and in any order: so a run
    with hedging can be compared with one without.
    """
    together = in_force(*MIXED)
    apart = in_force(*MIXED)
    met = {query: together.meet(search(4, query=query), 0.0) for query in range(50)}
    for query in reversed(range(50)):
        for shard in (2, 0, 3, 1):
            assert apart.meet(search(shards=[shard], query=query), 0.0) == [met[query][shard]]


def test_what_draws_apart_is_not_related() -> None:
    """Legs of neighbouring shards, queries, leaves and seeds: half of them are struck, and half
    of those that are have a neighbour that is.
    """
    rule = {"kind": "hang", "probability": 0.5}
    plans = [in_force(rule, leaf=leaf, seed=seed) for seed in range(10) for leaf in range(10)]
    struck = [
        trouble.ending is not None
        for interference in plans
        for query in range(10)
        for trouble in interference.meet(search(20, query=query), 0.0)
    ]
    assert abs(sum(struck) / LEGS - 0.5) < 4.0 * math.sqrt(0.25 / LEGS)
    for distance in (1, 20, 200, 2000):
        both = sum(a and b for a, b in zip(struck, struck[distance:], strict=False))
        assert abs(both / (LEGS - distance) - 0.25) < 5.0 * math.sqrt(0.1875 / LEGS)


def test_the_same_arrivals_meet_the_same_trouble() -> None:
    """Plan, seed and leaf decide; another seed or another leaf decides otherwise."""
    told = story(in_force(*MIXED))
    assert story(in_force(*MIXED)) == told
    assert story(in_force(*MIXED, seed=2)) != told
    assert story(in_force(*MIXED, leaf=1)) != told


def test_one_rule_more_leaves_the_others_as_they_were() -> None:
    """Each rule has numbers of its own."""
    alone = story(in_force(MIXED[0]))
    beside = story(in_force(MIXED[0], {"kind": "busy", "takes": SPREAD, "probability": 0.3}))
    held = [[trouble.transit_s for trouble in troubles] for troubles in alone]
    assert [[trouble.transit_s for trouble in troubles] for troubles in beside] == held


# --- when and where ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"from_s": 3}, [3, 4, 5, 6, 7, 8, 9]),
        ({"to_s": 3}, [0, 1, 2]),
        ({"every_s": 4, "lasts_s": 1}, [0, 4, 8]),
        ({"from_s": 1, "to_s": 8, "every_s": 4, "lasts_s": 2}, [1, 2, 5, 6]),
    ],
)
def test_a_rule_is_in_force_when_its_schedule_says(when: dict[str, Any], holds: list[int]) -> None:
    """Seconds count from when the plan is put in force; an end is not part of its time."""
    hang = plan({"kind": "hang", "when": when})
    interference = Interference(hang, leaf=0, seed=1, began_s=1000.0)
    met = [interference.meet(search(), 1000.0 + second)[0].ending for second in range(10)]
    assert [second for second in range(10) if met[second] is not None] == holds


@pytest.mark.parametrize(
    ("where", "struck"),
    [
        ({"leaves": [1, 2]}, False),
        ({"leaves": [0]}, True),
        ({"kinds": ["fetch", "lookup"]}, False),
        ({"kinds": ["search"]}, True),
        ({"words": ["Parse"]}, True),
        ({"words": ["pars"]}, False),
        ({"alone": True}, False),
        ({"alone": False}, True),
        ({"leaves": [0], "kinds": ["search"], "words": ["other"]}, False),
    ],
)
def test_a_rule_strikes_whom_its_scope_names(where: dict[str, Any], *, struck: bool) -> None:
    """All that is named must fit; what is not named is not asked about."""
    interference = in_force({"kind": "hang", "where": where})
    (trouble,) = interference.meet(search(words=frozenset({"parse", "json"})), 0.0)
    assert (trouble.ending is not None) is struck
    assert interference.reads_words is ("words" in where)


def test_a_request_to_one_leaf_alone_is_told_from_a_fan_out() -> None:
    """Whether or not a fan-out has a number."""
    interference = in_force({"kind": "hang", "where": {"alone": True}})
    assert interference.meet(search(query=None), 0.0)[0].ending is None
    assert interference.meet(search(query=None, alone=True), 0.0)[0].ending is not None


def test_a_rule_may_name_shards() -> None:
    """The other legs of the same ask are left in peace, and take no chance from it."""
    interference = in_force({"kind": "transit", "takes": CONSTANT, "where": {"shards": [1, 3]}})
    arrival = search(shards=(3, 2, 1, 0))
    assert transits(interference, arrival) == [0.01, 0.0, 0.01, 0.0]
