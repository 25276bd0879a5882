"""Leaves that are slow for long: they lose their traffic, are probed, and get it back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final

import pytest

from bench.simulation.scripted import WORKERS, Script, hangs, takes, takes_about
from bench.simulation.scripted_fleet import (
    BareRoot,
    ScriptedFleet,
    Seen,
    at,
    card,
    dealt,
    extra_in_windows,
    quantile_s,
)
from bench.virtual_time import run
from bench.workload import constant
from root.budget import BudgetTerms
from root.hedging import Adaptive, Off, Policy, Quantile
from root.probation import PROBE_EVERY_S
from root.race import Attempt

LEAVES: Final = 6
FAIR: Final = 1 / LEAVES
SLOW_AT_S: Final = 10.0
RATE: Final = 100.0
POLICIES = pytest.mark.parametrize(
    "policy", [Off(), Quantile(), Adaptive()], ids=lambda p: str(p.name)
)
HEDGING = pytest.mark.parametrize("policy", [Quantile(), Adaptive()], ids=lambda p: str(p.name))


class Trial:
    """Six leaves, each shard on two of them, and who of them was on probation when."""

    def __init__(
        self, policy: Policy, budget: BudgetTerms | None = None, workers: int = WORKERS
    ) -> None:
        random = Random("legs")
        self.usual: Script = takes_about(0.005, 0.5, random)
        self.slow: Script = takes_about(0.050, 0.5, random)
        holdings = dealt(LEAVES, leaves=LEAVES, replicas=2)
        self.fleet = ScriptedFleet(card(LEAVES), holdings, self.usual, workers=workers)
        self.root = BareRoot(self.fleet, policy, budget, seed=1)
        self.seen: list[Seen] = []

    def say(self, at_s: float, script: Script, *numbers: int) -> None:
        """Let leaves do something else from then on."""

        def say() -> None:
            for number in numbers:
                self.fleet[number].script = script

        at(at_s - asyncio.get_running_loop().time(), say)

    async def until(self, end_s: float) -> None:
        """Send queries until then."""
        now = asyncio.get_running_loop().time()
        self.seen += await self.root.open_loop(constant(RATE, end_s - now))

    @property
    def on_probation(self) -> list[int]:
        return [i for i, leaf in enumerate(self.fleet.leaves) if leaf.leaf.trial is not None]

    def between(self, from_s: float, to_s: float) -> list[Seen]:
        return [query for query in self.seen if from_s <= query.started_s < to_s]

    def attempts(self, number: int, kind: str, from_s: float, to_s: float) -> list[Attempt]:
        leaf = self.fleet[number].leaf
        return [a for a in sent(self.between(from_s, to_s), kind) if a.leaf is leaf]

    def share(self, number: int, from_s: float, to_s: float) -> float:
        all_of_them = sent(self.between(from_s, to_s), "primary")
        return len(self.attempts(number, "primary", from_s, to_s)) / len(all_of_them)

    async def ends_well(self) -> None:
        """Every query was answered, and every attempt ends."""
        assert all(query.complete for query in self.seen)
        await asyncio.sleep(10.0)
        assert self.root.accounted


def sent(seen: Iterable[Seen], kind: str) -> list[Attempt]:
    return [a for query in seen for a in query.gather.attempts if a.kind == kind]


@POLICIES
def test_a_leaf_ten_times_slower_is_taken_out_probed_and_brought_back(policy: Policy) -> None:
    """Within five seconds it gets nothing but probes, at their rate, and callers wait no longer
    than before. Healed, it is back within five seconds, is not flooded, and gets its share.
    """

    async def main() -> None:
        trial = Trial(policy)
        trial.say(SLOW_AT_S, trial.slow, 0)
        await trial.until(15.0)
        assert trial.on_probation == [0]
        await trial.until(30.0)
        assert trial.on_probation == [0]
        assert trial.attempts(0, "primary", 15.0, 30.0) == []
        probes = len(trial.attempts(0, "probe", 15.0, 30.0))
        assert 0.8 * 15.0 / PROBE_EVERY_S <= probes <= 15.0 / PROBE_EVERY_S
        before, on_it = trial.between(5.0, 10.0), trial.between(15.0, 30.0)
        assert quantile_s(on_it, 0.99) < 1.2 * quantile_s(before, 0.99)
        trial.fleet[0].script = trial.usual
        await trial.until(35.0)
        assert trial.on_probation == []
        await trial.until(60.0)
        assert trial.on_probation == []
        assert all(trial.share(0, s, s + 2.0) <= 1.5 * FAIR for s in (30.0, 32.0, 34.0))
        assert 0.6 * FAIR < trial.share(0, 45.0, 60.0) < 1.5 * FAIR
        assert trial.attempts(0, "probe", 35.0, 60.0) == []
        await trial.ends_well()

    run(main)


def test_a_leaf_that_flapped_is_probed_again() -> None:
    """Slow and well by turns for long: each time it goes, and each time it comes back."""

    async def main() -> None:
        trial = Trial(Adaptive())
        for turn in range(2):
            start_s = SLOW_AT_S + 30.0 * turn
            trial.say(start_s, trial.slow, 0)
            trial.say(start_s + 10.0, trial.usual, 0)
            await trial.until(start_s + 8.0)
            assert trial.on_probation == [0]
            await trial.until(start_s + 16.0)
            assert trial.on_probation == []
            await trial.until(start_s + 30.0)
            assert trial.share(0, start_s + 20.0, start_s + 30.0) > 0.5 * FAIR
        await trial.ends_well()

    run(main)


@POLICIES
def test_the_last_good_replica_of_a_shard_is_kept(policy: Policy) -> None:
    """Both replicas of a shard are slow: neither goes, they share its legs, and all is answered."""

    async def main() -> None:
        trial = Trial(policy)
        trial.say(SLOW_AT_S, trial.slow, 0, 1)
        for end_s in range(11, 31):
            await trial.until(float(end_s))
            assert trial.on_probation == []
        legs = [a for a in sent(trial.between(12.0, 30.0), "primary") if a.shard == 0]
        by_leaf = [sum(a.leaf is trial.fleet[i].leaf for a in legs) for i in (0, 1)]
        assert min(by_leaf) > 0.3 * len(legs)
        await trial.ends_well()

    run(main)


def test_no_more_than_a_third_of_the_fleet_goes() -> None:
    """Three of six are slow, no two of them on one shard: two go."""

    async def main() -> None:
        trial = Trial(Adaptive())
        trial.say(SLOW_AT_S, trial.slow, 0, 2, 4)
        for end_s in range(11, 26):
            await trial.until(float(end_s))
            assert len(trial.on_probation) <= 2
        assert len(trial.on_probation) == 2
        await trial.ends_well()

    run(main)


@POLICIES
def test_when_its_peers_are_lost_a_leaf_on_probation_serves_at_once(policy: Policy) -> None:
    """Slow answers are answers: nothing is missing, before and after they are back."""

    async def main() -> None:
        trial = Trial(policy)
        trial.say(SLOW_AT_S, trial.slow, 0)
        await trial.until(15.0)
        assert trial.on_probation == [0]
        at(1.0, lambda: trial.fleet.disconnect(1))
        at(1.5, lambda: trial.fleet.disconnect(5))
        at(4.0, lambda: trial.fleet.come_back(1))
        at(4.0, lambda: trial.fleet.come_back(5))
        await trial.until(18.9)
        assert trial.on_probation == [0]
        assert {a.shard for a in trial.attempts(0, "primary", 17.0, 18.9)} == {0, 5}
        assert trial.share(0, 17.0, 18.9) == pytest.approx(2 / LEAVES)
        await trial.until(30.0)
        assert trial.on_probation == [0]
        assert trial.attempts(0, "primary", 19.1, 30.0) == []
        await trial.ends_well()

    run(main)


@HEDGING
def test_a_leaf_that_is_stopped_half_of_the_time_is_found_out(policy: Policy) -> None:
    """Half a second of every second nothing comes from it. It goes, stays while that lasts, and
    comes back when it is over; hardly a caller notices.
    """

    async def main() -> None:
        trial = Trial(policy)
        for second in range(10, 30):
            at(second, trial.fleet[0].stop)
            at(second + 0.5, trial.fleet[0].resume)
        await trial.until(15.0)
        assert trial.on_probation == [0]
        for end_s in range(16, 30):
            await trial.until(float(end_s))
            assert trial.on_probation == [0]
        before, on_it = trial.between(5.0, 10.0), trial.between(15.0, 30.0)
        assert quantile_s(on_it, 0.99) < 1.2 * quantile_s(before, 0.99)
        await trial.until(40.0)
        assert trial.on_probation == []
        await trial.ends_well()

    run(main)


def test_a_leaf_that_hangs_gets_no_more_than_a_probe_now_and_then() -> None:
    """Connected, and never done with anything: at first legs time out on it, then none is sent,
    and what it owes stays bounded.
    """

    async def main() -> None:
        trial = Trial(Off())
        trial.say(SLOW_AT_S, hangs(), 0)
        await trial.until(40.0)
        assert trial.on_probation == [0]
        assert trial.attempts(0, "primary", 17.0, 40.0) == []
        assert 1 <= len(trial.attempts(0, "probe", 17.0, 40.0)) <= 3
        assert not all(query.complete for query in trial.seen)
        assert all(query.complete for query in trial.between(17.0, 40.0))
        trial.fleet.disconnect(0)
        assert trial.root.accounted

    run(main)


@HEDGING
def test_probes_stay_within_the_budget(policy: Policy) -> None:
    """Hedges and probes together, in every second, with two leaves on probation."""

    async def main() -> None:
        terms = BudgetTerms(max_extra_load=0.02, floor_per_s=1.0, burst=10.0)
        trial = Trial(policy, terms)
        trial.say(SLOW_AT_S, trial.slow, 0, 3)
        await trial.until(30.0)
        assert trial.on_probation == [0, 3]
        assert len(sent(trial.between(15.0, 30.0), "probe")) > 30
        for first, extra in extra_in_windows(trial.seen, 1.0):
            assert extra <= 0.02 * 1.1 * first + 1.0 + 10.0
        await trial.ends_well()

    run(main)


def test_without_extra_load_ranking_alone_steers() -> None:
    """Nobody goes on probation, nothing is probed, and a slow leaf gets little all the same."""

    async def main() -> None:
        trial = Trial(Off(), BudgetTerms(max_extra_load=0.0))
        trial.say(SLOW_AT_S, trial.slow, 0)
        await trial.until(30.0)
        assert trial.on_probation == []
        assert sent(trial.seen, "probe") == []
        assert trial.share(0, 15.0, 30.0) < 0.2 * FAIR
        await trial.ends_well()

    run(main)


def test_a_leaf_that_cannot_be_probed_is_tried_as_a_new_one() -> None:
    """There is one token, and never another: ten seconds later it is given another chance."""

    async def main() -> None:
        trial = Trial(Off(), BudgetTerms(max_extra_load=1e-6, floor_per_s=0.0, burst=1.0))
        trial.say(SLOW_AT_S, trial.slow, 0)
        await trial.until(15.0)
        assert trial.on_probation == [0]
        assert len(trial.attempts(0, "probe", 0.0, 15.0)) == 1
        await trial.until(40.0)
        assert len(trial.attempts(0, "probe", 0.0, 40.0)) == 1
        assert trial.attempts(0, "primary", 15.0, 21.0) == []
        assert trial.attempts(0, "primary", 21.0, 30.0)
        await trial.ends_well()

    run(main)


@pytest.mark.parametrize("everywhere", [takes(0.004), takes_about(0.004, 1.0, Random("even"))])
def test_a_healthy_fleet_has_nobody_on_probation(everywhere: Script) -> None:
    """Whether its times are all alike or vary tenfold."""

    async def main() -> None:
        trial = Trial(Adaptive())
        trial.say(0.0, everywhere, *range(LEAVES))
        await trial.until(30.0)
        assert sent(trial.seen, "probe") == []
        await trial.ends_well()

    run(main)
