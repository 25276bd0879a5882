"""A fleet that has more to do than it can, for a while: does it find back, and how soon?

Hypothesis: hedging makes no overload last longer. An attempt that is sent because a fleet is
full makes it fuller; where that goes on after the cause is gone, the state is metastable
(N. Bronson et al., Metastable Failures in Distributed Systems, HotOS 2021).

Model: leaves with queues (profile ``queues``, without spells at random), queries at random
instants, whatever the answers do. They come at 70 % of what the fleet can do, and for a while

    load    at 110 %
    shard   as before, but all replicas of one shard are so slow that it would need 110 %

Simplifications: as of ``queued``; the root takes every query, however many are in flight.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec

from bench.simulation.fleet import FAN_OUT, ask
from bench.simulation.machines import Episode, Machines
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.queued import QueuedFleet
from bench.simulation.roots import Root, limited
from bench.virtual_time import run
from root.hedging import Policy
from root.scatter import scatter

Scenario = Literal["load", "shard"]
SCENARIOS: Final[tuple[Scenario, ...]] = ("load", "shard")

USUAL: Final = 0.7
RAISED: Final = 1.1
"""What is asked for as a share of what the fleet can do."""

MACHINES: Final = Machines(2, 256, USUAL, spell_factor=RAISED / USUAL)
PROFILE: Final = replace(PROFILES["queues"], machines=MACHINES)

TIMEOUT_S: Final = 0.4
"""Of a query: four seconds at 110 % fill the queues with so much."""

WINDOW_S: Final = 1.0
"""Over which percentiles are taken: some 400 queries."""

RECOVERED: Final = 1.5
"""A window is as before when its 95th percentile is within so many times that of before."""


@dataclass(frozen=True, slots=True)
class Course:
    """How long the fleet is watched, in seconds, and how large it is."""

    before_s: float = 10.0
    trouble_s: float = 6.0
    after_s: float = 15.0
    leaves: int = 50
    replicas: int = 2
    max_extra_load: float = 0.05
    seed: int = 1

    @property
    def trouble(self) -> Episode:
        """From when to when there is too much to do."""
        return self.before_s, self.before_s + self.trouble_s

    @property
    def end_s(self) -> float:
        """When the last query is sent."""
        return self.before_s + self.trouble_s + self.after_s


class Seen(NamedTuple):
    """One query: when it was sent, what it took, and what it got."""

    sent_s: float
    took_s: float
    answered: int
    extra: int


class Recovery(msgspec.Struct, frozen=True):
    """How one policy came through. Times in milliseconds of queries, by when they were sent."""

    before_p95_ms: float
    trouble_p95_ms: float
    trouble_complete: float
    """Share of the queries sent meanwhile that got every shard in time."""
    trouble_coverage: float
    """Share of their shards that were answered."""
    trouble_extra_load: float
    after_complete: float
    recovered_s: float | None
    """From the end of the trouble until a second as before was over; None for not yet."""
    p95_ms: list[float]
    """Second by second."""


def overload(scenario: Scenario, policy: Policy, course: Course) -> Recovery:
    """Run one policy through one scenario, in virtual time."""
    return _told(run(lambda: _run(scenario, policy, course)), course)


async def _run(scenario: Scenario, policy: Policy, course: Course) -> list[Seen]:
    loop = asyncio.get_running_loop()
    spells = {0: course.trouble} if scenario == "shard" else {}
    draws = Draws(PROFILE, course.leaves, course.seed)
    fleet = QueuedFleet(draws, MACHINES, course.replicas, course.seed, spells)
    budget = limited(course.max_extra_load, course.leaves)
    root = Root(policy, budget, course.replicas, Random(f"{course.seed}:replicas"))
    shards = list(enumerate(fleet.connect()))
    seen: list[Seen] = []

    async def query(number: int, now: float) -> None:
        gather = root.gather(FAN_OUT, shards, now + TIMEOUT_S)
        outcome = await scatter(gather, ask(FAN_OUT, number, now + TIMEOUT_S), fleet)
        extra = gather.tally.hedged + gather.tally.failed_over
        seen.append(Seen(now, outcome.decided_s - now, len(outcome.replies), extra))

    async with asyncio.TaskGroup() as group:
        for number, sent_s in enumerate(_arrivals(scenario, course)):
            await asyncio.sleep(sent_s - loop.time())
            group.create_task(query(number, sent_s))
    return seen


def _arrivals(scenario: Scenario, course: Course) -> Iterator[float]:
    """When queries are sent, in seconds."""
    random = Random(f"{course.seed}:arrivals")
    all_s = MACHINES.workers * course.replicas / (PROFILE.mean_leg_ms / 1000.0)
    from_s, to_s = course.trouble
    now = 0.0
    while now < course.end_s:
        raised = scenario == "load" and from_s <= now < to_s
        now += random.expovariate(all_s * (RAISED if raised else USUAL))
        yield now


def _told(seen: Sequence[Seen], course: Course) -> Recovery:
    from_s, to_s = course.trouble
    before = [one for one in seen if WINDOW_S <= one.sent_s < from_s]
    during = [one for one in seen if from_s <= one.sent_s < to_s]
    after = [one for one in seen if to_s <= one.sent_s]
    usual_ms = _p95_ms(before)
    windows = [
        _p95_ms([one for one in seen if at_s <= one.sent_s < at_s + WINDOW_S])
        for at_s in _steps(0.0, course.end_s)
    ]
    first = int(to_s / WINDOW_S)
    calm = [i + 1 for i, ms in enumerate(windows[first:]) if ms <= RECOVERED * usual_ms]
    return Recovery(
        before_p95_ms=usual_ms,
        trouble_p95_ms=_p95_ms(during),
        trouble_complete=_share(during, course, whole=True),
        trouble_coverage=_share(during, course),
        trouble_extra_load=round(sum(one.extra for one in during) / len(during) / course.leaves, 4),
        after_complete=_share(after, course, whole=True),
        recovered_s=calm[0] * WINDOW_S if calm else None,
        p95_ms=windows,
    )


def _steps(from_s: float, to_s: float) -> list[float]:
    """The windows that are over by then."""
    return [from_s + i * WINDOW_S for i in range(math.floor((to_s - from_s) / WINDOW_S))]


def _share(seen: Sequence[Seen], course: Course, *, whole: bool = False) -> float:
    """Share of their shards that queries got, or of the queries that got all of them."""
    got = [one.answered // course.leaves if whole else one.answered / course.leaves for one in seen]
    return round(sum(got) / len(got), 4)


def _p95_ms(seen: Sequence[Seen]) -> float:
    times_s = sorted(one.took_s for one in seen)
    return round(times_s[math.ceil(0.95 * len(times_s)) - 1] * 1000.0, 1)
