"""A small fleet in trouble, drawn from one seed: topology, speeds, faults, queries, callers.

Model, and what it simplifies: leaves have a queue and a few workers; messages are never lost
while a connection lives; all that travels takes equally long. A fault is one of: slow, hanging,
failing, busy, stopped, disconnected; each ends before the run does, so that every leg can end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from bench.simulation.scripted import Script, fails, hangs, takes_about
from bench.simulation.scripted_fleet import BareRoot, ScriptedFleet, Seen, at, card, dealt
from bench.virtual_time import run
from bench.workload import poisson
from root.budget import BudgetTerms
from root.hedging import (
    MIN_SAMPLES,
    Adaptive,
    Fixed,
    Off,
    Policy,
    Quantile,
    Sibling,
    Together,
)
from root.ledger import Ledger

RUN_S: Final = 1.0
"""Length of the trouble. Afterwards everything is healed and given time to end."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """What is drawn before a run begins."""

    shards: int
    leaves: int
    replicas: int
    workers: int
    policy: Policy
    budget: BudgetTerms
    attempts_max: int
    timeout_s: float
    rate_per_s: float
    faults: int


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a run. ``losses`` are (leaf, from, to) in seconds: when it was not connected."""

    swarm: Swarm
    seen: list[Seen]
    last: Seen
    ledger: Ledger
    accounted: bool
    losses: list[tuple[str, float, float]]
    tasks_left: int

    def trace(self) -> list[Any]:
        """Everything that happened, in plain values."""
        return [
            (a.shard, a.leaf.name, a.kind, a.fate, a.reason, a.sent_s, a.ended_s, a.queue_us)
            for query in self.seen
            for a in query.gather.attempts
        ]


def draw(random: Random) -> Swarm:
    """Draw a fleet and its terms."""
    leaves = random.randint(2, 6)
    policies: list[Policy] = [Off(), Fixed(random.uniform(0.0, 0.03)), Quantile(0.9)]
    policies += [Sibling(), Adaptive(), Together()]
    return Swarm(
        shards=random.randint(1, 6),
        leaves=leaves,
        replicas=min(leaves, random.choice([1, 2, 2, 3])),
        workers=random.randint(1, 4),
        policy=random.choice(policies),
        budget=BudgetTerms(random.choice([0.0, 0.05, 1.0]), 1.0, random.choice([0.0, 5.0, 1000.0])),
        attempts_max=random.randint(1, 3),
        timeout_s=random.uniform(0.02, 0.3),
        rate_per_s=random.uniform(5.0, 40.0),
        faults=random.randint(0, 8),
    )


class Trouble:
    """Breaks leaves at random instants, and mends them."""

    def __init__(self, fleet: ScriptedFleet, usual: Script, random: Random) -> None:
        """Nothing is broken before ``plan``."""
        self.losses: list[tuple[str, float, float]] = []
        self._fleet = fleet
        self._usual = usual
        self._random = random

    def plan(self, faults: int) -> None:
        """Set the instants; every fault is over by RUN_S."""
        for _ in range(faults):
            number = self._random.randrange(len(self._fleet.leaves))
            from_s = self._random.uniform(0.0, 0.9 * RUN_S)
            to_s = self._random.uniform(from_s, RUN_S)
            break_it, mend_it = self._fault(number, from_s, to_s)
            at(from_s, break_it)
            at(to_s, mend_it)

    def _fault(
        self, number: int, from_s: float, to_s: float
    ) -> tuple[Callable[[], None], Callable[[], None]]:
        leaf, random = self._fleet[number], self._random
        script: Script
        match random.choice(["stop", "lose", "script"]):
            case "stop":
                return leaf.stop, leaf.resume
            case "lose":
                self.losses.append((leaf.leaf.name, from_s, to_s))
                return lambda: self._lose(number), lambda: self._find(number)
            case _:
                script = random.choice(
                    [
                        takes_about(0.2, 0.5, random),
                        hangs(),
                        fails("error", after_s=random.uniform(0.0, 0.01)),
                        fails("garbage", after_s=0.001),
                        fails("busy"),
                    ]
                )
                return lambda: self._say(number, script), lambda: self._say(number, self._usual)

    def _say(self, number: int, script: Script) -> None:
        self._fleet[number].script = script

    def _lose(self, number: int) -> None:
        if self._fleet[number].leaf.connected:
            self._fleet.disconnect(number)

    def _find(self, number: int) -> None:
        if not self._fleet[number].leaf.connected:
            self._fleet.come_back(number)

    def end(self) -> None:
        """Mend what is broken; what hangs has to be lost for its legs to end."""
        for number, leaf in enumerate(self._fleet.leaves):
            leaf.script = self._usual
            leaf.resume()
            self._lose(number)
            self._find(number)


async def _run(seed: int) -> Report:
    swarm = draw(Random(f"{seed}:swarm"))
    random = Random(f"{seed}:legs")
    usual = takes_about(0.005, 0.7, random)
    fleet = ScriptedFleet(
        card(swarm.shards),
        dealt(swarm.shards, leaves=swarm.leaves, replicas=swarm.replicas),
        usual,
        workers=swarm.workers,
    )
    root = BareRoot(
        fleet,
        swarm.policy,
        swarm.budget,
        timeout_s=swarm.timeout_s,
        attempts_max=swarm.attempts_max,
        seed=seed,
    )
    for _ in range(MIN_SAMPLES):  # as if there had been quieter times
        root.history.finished(random.lognormvariate(math.log(0.005), 0.7))
    trouble = Trouble(fleet, usual, Random(f"{seed}:faults"))
    trouble.plan(swarm.faults)
    leaving = Random(f"{seed}:callers")
    arrivals = poisson(swarm.rate_per_s, RUN_S, Random(f"{seed}:arrivals"))

    async def impatient() -> None:
        await asyncio.sleep(leaving.uniform(0.0, RUN_S))
        query = asyncio.create_task(root.query())
        at(leaving.uniform(0.0, 0.02), query.cancel)
        await asyncio.wait([query])

    async with asyncio.TaskGroup() as group:
        for _ in range(leaving.randint(0, 3)):
            group.create_task(impatient())
        queries = group.create_task(root.open_loop(arrivals))
    await asyncio.sleep(2 * RUN_S)
    trouble.end()
    last = await root.query(timeout_s=5.0)
    await asyncio.sleep(5.0)
    left = len(asyncio.all_tasks()) - 1
    return Report(swarm, queries.result(), last, root.ledger, root.accounted, trouble.losses, left)


def report(seed: int) -> Report:
    """Run the swarm of a seed to its end."""
    return run(lambda: _run(seed))
