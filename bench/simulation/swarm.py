"""A small fleet in trouble, drawn from one seed: topology, speeds, terms, faults, callers.

A run has three parts: a calm one, a second of trouble (``bench.simulation.trouble``) in which
callers want all kinds of things and some of them leave, and, after a rest, a calm one again.
Searches are the product's own, both phases, over leaves that answer with real hits. What must
hold of a run is ``bench.simulation.invariants``.

Model, and what it simplifies: leaves have a queue and a few workers; messages are never lost
while a connection lives; all that travels takes equally long; there is one generation.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, get_args

from bench.simulation.corpus import EVERY, Corpus, Score, all_equal
from bench.simulation.scripted import Script, takes_about
from bench.simulation.scripted_fleet import at, dealt
from bench.simulation.trouble import Trouble
from bench.simulation.watched import ASKING, Request, WatchedFleet
from bench.virtual_time import run, running_loop
from bench.workload import poisson
from leaf.protocol import All, Phrase, Query, Word
from root.budget import BudgetTerms
from root.config import Settings
from root.hedging import MIN_SAMPLES
from root.requests import HedgeName, SearchRequest
from root.search import Searches

HEDGES: Final[tuple[HedgeName, ...]] = get_args(HedgeName)

TROUBLE_S: Final = 1.0
REST_S: Final = 10.0
"""How soon after the trouble everything must be as it was."""

CALM_MS: Final = 60_000.0
"""Time enough: a search that would need it waits for something that never comes."""

CALM_SEARCHES: Final = 15
"""As many after the trouble, and at least as many before it as give every class of queries a
history: that many are compared."""

END_S: Final = 1.0
"""What is under way after the last answer ends in this time: nothing is slow any more."""

WORK_MEDIAN_S: Final = 0.005
WORK_SIGMA: Final = 0.7
WORK_MEAN_S: Final = WORK_MEDIAN_S * math.exp(WORK_SIGMA**2 / 2)

UTILISATION_MAX: Final = 0.4
"""In calm times, each leg of both phases counted once: with every leg doubled there is room."""

PATIENCE_S: Final = 0.02
"""Callers who leave do so after up to this long."""

SCORES: Final[tuple[Score, ...]] = (
    all_equal,
    lambda i: 1.0 + i % 3,
    lambda i: 1.0 + (i * 31 % 97) / 5000.0,  # all near-ties: finals may change every place
    lambda i: 1.0 + i * 31 % 97,
)


Shape = Callable[[str], Query]

SHAPES: Final[tuple[Shape, ...]] = (
    Word,
    lambda _: All(),
    Phrase,
    lambda text: Word(text, "title"),
    lambda text: Word(text, "body"),
    lambda text: Phrase(text, "title"),
)
"""What is asked for: the first two when nothing is wrong, and the others for the first time when
something is.
"""


@dataclass(frozen=True, slots=True)
class Swarm:
    """What is drawn before a run begins. ``rush``: how much more there is to do in trouble."""

    leaves: int
    replicas: int
    workers: int
    corpus: Corpus
    settings: Settings
    rate_per_s: float
    rush: float
    faults: int

    @property
    def shards(self) -> int:
        """How many there are."""
        return self.corpus.shards

    @property
    def holdings(self) -> list[list[int]]:
        """Which shards each leaf holds."""
        return dealt(self.shards, leaves=self.leaves, replicas=self.replicas)


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a swarm: all that was asked, sent, lost and left behind."""

    seed: int
    swarm: Swarm
    fleet: WatchedFleet
    searches: Searches
    trouble: Trouble
    requests: Sequence[Request]
    raised: Sequence[str]
    tasks_left: int
    timers_left: int

    def calm(self, *, after: bool) -> list[Request]:
        """The searches of calm times to compare: the last before the trouble, or after it."""
        calm = [request for request in self.requests if request.calm]
        return calm[-CALM_SEARCHES:] if after else calm[:-CALM_SEARCHES][-CALM_SEARCHES:]

    def trace(self) -> list[Any]:
        """Everything that happened, in plain values."""
        return [
            (
                *(r.number, r.arrived_s, r.ended_s, r.body, repr(r.error), r.left),
                *(
                    (a.leg, a.shard, a.leaf.name, a.kind, a.fate, a.reason, a.sent_s, a.ended_s)
                    for flight in r.flights
                    for a in flight.gather.attempts
                ),
            )
            for r in self.requests
        ]


def draw(random: Random) -> Swarm:
    """Draw a fleet and its terms."""
    leaves = random.randint(2, 6)
    shards = random.randint(1, 6)
    workers = random.randint(1, 4)
    legs_per_s_max = UTILISATION_MAX * leaves * workers / WORK_MEAN_S
    settings = Settings(
        timeout_ms=random.uniform(20.0, 300.0),
        min_coverage=random.choice([0.0, 0.5, 1.0, 1.0]),
        hedge=random.choice(HEDGES),
        hedge_delay_ms=random.uniform(0.0, 30.0),
        hedge_quantile=random.choice([0.5, 0.9, 0.95]),
        hedge_quorum=random.choice([0.3, 0.5, 0.9]),
        hedge_factor=random.choice([1.0, 1.5, 2.0]),
        attempts_max=random.randint(1, 3),
        budget=BudgetTerms(
            max_extra_load=random.choice([0.0, 0.05, 0.05, 0.2, 1.0]),
            floor_per_s=random.choice([0.0, 1.0, 10.0]),
            burst=random.choice([None, None, 0.0, 1.0, 5.0, 1000.0]),
        ),
        canary=random.random() < 0.7,
        seed=random.getrandbits(32),
    )
    return Swarm(
        leaves=leaves,
        replicas=min(leaves, random.choice([1, 2, 2, 3])),
        workers=workers,
        corpus=Corpus(
            random.randint(shards, 120),
            shards,
            random.choice(SCORES),
            blurred=random.random() < 0.5,
        ),
        settings=settings,
        rate_per_s=min(random.uniform(5.0, 40.0), legs_per_s_max / (2 * shards)),
        rush=random.choice([1.0, 2.0, 5.0]),
        faults=random.randint(0, 10),
    )


class Callers:
    """Send searches, wait or leave, and remember what they saw."""

    def __init__(self, searches: Searches, random: Random) -> None:
        """``random`` decides what they want."""
        self.requests: list[Request] = []
        self._searches = searches
        self._random = random

    async def arrive(self, rate_per_s: float, count: int, *, calm: bool) -> None:
        """So many searches at random instants; return when the last has ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                await asyncio.sleep(self._random.expovariate(rate_per_s))
                self._send(group, calm=calm)

    async def rush(self, rate_per_s: float, lasts_s: float) -> None:
        """Searches of all kinds for so long; return when the last has ended."""
        start_s = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for offset_s in poisson(rate_per_s, lasts_s, self._random).send_at_s:
                await asyncio.sleep(start_s + offset_s - asyncio.get_running_loop().time())
                caller = self._send(group, calm=False)
                if self._random.random() < 0.1:
                    at(self._random.uniform(0.0, PATIENCE_S), caller.cancel)

    def _send(self, group: asyncio.TaskGroup, *, calm: bool) -> asyncio.Task[None]:
        query = self._query(SHAPES[:2] if calm else SHAPES)
        asked = self._calm(query) if calm else self._any(query)
        now = asyncio.get_running_loop().time()
        timeout_ms = asked.timeout_ms or self._searches.settings.timeout_ms
        request = Request(len(self.requests), asked, query, calm, now, now + timeout_ms / 1000.0)
        self.requests.append(request)
        return group.create_task(self._wait(request))

    async def _wait(self, request: Request) -> None:
        """Search; a task cancelled before it began has asked for nothing."""
        ASKING.set(request)
        try:
            request.body = await self._searches.search(request.asked, request.arrived_s)
        except asyncio.CancelledError:
            request.left = True
            raise
        except Exception as error:  # noqa: BLE001 (whether it may be is for the invariants)
            request.error = error
        finally:
            request.ended_s = asyncio.get_running_loop().time()

    def _query(self, shapes: Sequence[Shape]) -> Query:
        return self._random.choice(shapes)(f"{EVERY}{self._random.randint(1, 5)}")

    def _calm(self, query: Query) -> SearchRequest:
        return SearchRequest(
            query=query,
            k=self._random.randint(1, 20),
            offset=self._random.choice([0, 0, 0, 5, 30]),
            timeout_ms=CALM_MS,
            min_coverage=1.0,
        )

    def _any(self, query: Query) -> SearchRequest:
        random = self._random
        return SearchRequest(
            query=query,
            k=random.randint(1, 20),
            offset=random.choice([0, 0, 0, 5, 30]),
            timeout_ms=random.choice([None, None, random.uniform(5.0, 500.0)]),
            min_coverage=random.choice([None, None, 0.0, 0.5, 1.0]),
            hedge=random.choice([None, None, random.choice(HEDGES)]),
            priority=random.choice(["interactive", "interactive", "interactive", "batch"]),
            trace=random.random() < 0.1,
        )


async def _run(seed: int) -> Run:
    swarm = draw(Random(f"{seed}:swarm"))
    loop = running_loop()
    raised: list[str] = []
    loop.set_exception_handler(lambda _, context: raised.append(_in_words(context)))
    usual: Script = takes_about(WORK_MEDIAN_S, WORK_SIGMA, Random(f"{seed}:legs"))
    corpus = swarm.corpus
    fleet = WatchedFleet(
        corpus.card, swarm.holdings, usual, answer=corpus.answer, workers=swarm.workers
    )
    searches = Searches(fleet, swarm.settings, loop.time())
    trouble = Trouble(fleet, searches.probation, usual, Random(f"{seed}:faults"))
    callers = Callers(searches, Random(f"{seed}:callers"))
    before = CALM_SEARCHES + math.ceil(MIN_SAMPLES / swarm.shards)
    await callers.arrive(swarm.rate_per_s, before, calm=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(trouble.run(swarm.faults, TROUBLE_S))
        group.create_task(callers.rush(swarm.rate_per_s * swarm.rush, TROUBLE_S))
    await asyncio.sleep(REST_S)
    await callers.arrive(swarm.rate_per_s, CALM_SEARCHES, calm=True)
    await asyncio.sleep(END_S)
    tasks_left = len(asyncio.all_tasks()) - 1
    timers_left = len(loop.timers)
    return Run(
        seed, swarm, fleet, searches, trouble, callers.requests, raised, tasks_left, timers_left
    )


def _in_words(context: dict[str, Any]) -> str:
    return f"{context['message']}: {context.get('exception')!r}"


def simulate(seed: int) -> Run:
    """Run the swarm of a seed to its end."""
    return run(lambda: _run(seed))
