"""The arms of a comparison on real processes: a root each, over the very same leaves.

    generator ── one request in turn to each ──> root "off"      ──┐
                                                 root "adaptive" ──┼──> leaf processes
                                                 root "tied"     ──┘

A leaf of a fan-out is a shard here: a hundred shards, each on two leaf processes, every leg
struck by trouble of its own. Two hundred processes would be what is measured on a small
machine: the wake-ups of a hundred of them take longer than most legs, and those of eight add
twice to a leg of what those of two do. Shards give constant
answers, for searching is not what is measured; everything else is the product's: leaf, channel,
queue, workers, injected trouble, root.

Times are the root's own: each answer brings a trace of its attempts. A request to one leaf
alone is the second phase of each query, which fetches one document. What is injected occupies
nobody, so the arms disturb each other by nothing but the processors that they share.

All roots number their requests from 1, and what strikes a leg is a function of that number: the
arms meet the same trouble, and it can be worked out here (`Injected`). So what the live
system adds to a leg is known leg by leg: what it took, less what was injected.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, Final

import aiohttp
import msgspec
import orjson

from bench import realtime, workload
from bench.fleet import Fleet, Shape, running
from bench.recorder import Fate, Recorder
from bench.rows import Rows
from leaf import plans
from leaf.interference import Arrival, Interference
from leaf.protocol import Kind

TIMEOUT_MS: Final = 10_000
"""Of a query: longer than all but one stall in a hundred of the worst profile."""

PLACES: Final = 4
"""The document that is fetched is on one of the first places, each of which is another shard's.
Further down, every shard would have to return more hits, and all of that is merged."""

EARLY_MS: Final = 0.5
"""A leg that took so much less than was injected is not the one that it was taken for: two
requests have overtaken each other on their way to the root, and their numbers are not known."""

COUNTED_APART: Final = 0.1
"""Of the requests, the first: they teach the roots their history and are not counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much, and on what. ``rate_per_s`` is that of all arms together."""

    profile: str | None = "tail-at-scale"
    """The name of one that is shipped, or a file."""
    shards: int = 100
    processes: int = 2
    rate_per_s: float = 15.0
    lasts_s: float = 200.0
    seed: int = 1


@dataclass(slots=True)
class Measured:
    """One arm. ``added`` and ``injected`` are of an arm whose attempts are all first ones."""

    rows: Rows
    injected: Rows
    recorder: Recorder = field(default_factory=Recorder)
    legs: int = 0
    extra: int = 0
    hedge_wins: int = 0
    incomplete: int = 0
    mistaken: int = 0
    """Queries whose number is not known for sure."""
    added_alone_ms: array[float] = field(default_factory=lambda: array("d"))
    added_ms: array[float] = field(default_factory=lambda: array("d"))
    answers: list[dict[str, Any]] = field(default_factory=list)
    """By number, from 0, those before the count too; empty where there was none."""

    @property
    def extra_load(self) -> float:
        """Attempts beyond the first that leaves worked on, per leg."""
        return self.extra / self.legs if self.legs else 0.0


class Injected:
    """What was injected into legs, worked out again."""

    def __init__(self, profile: str, leaf_urls: Sequence[str], seed: int) -> None:
        """``leaf_urls`` by ordinal: a trace names leaves by their address."""
        plan = plans.load(profile)
        self._leaves = {
            url: Interference(plan, leaf=ordinal, seed=seed, began_s=0.0)
            for ordinal, url in enumerate(leaf_urls)
        }

    def ms(self, kind: Kind, query: int, attempt: Mapping[str, Any]) -> float:
        """For how long the answer to an attempt of the query with this number was held back."""
        arrival = Arrival(kind, [attempt["shard"]], query)
        (trouble,) = self._leaves[attempt["replica"]].meet(arrival, 0.0)
        return trouble.transit_s * 1e3


@contextmanager
def _leaves(plan: Plan) -> Iterator[Fleet]:
    """Run the leaves, without a root yet."""
    trouble: tuple[str, ...] = ()
    if plan.profile is not None:
        trouble = ("--interference", plan.profile, "--seed", str(plan.seed))
    shape = Shape(
        canned=plan.shards,
        root=False,
        leaves=plan.processes,
        leaf_options=("--workers", "1", *trouble),
    )
    with running(shape) as fleet:
        yield fleet


def run(
    plan: Plan, arms: Mapping[str, tuple[str, ...]], told: Callable[[float], None]
) -> dict[str, Measured]:
    """Measure all arms at once; ``told`` hears of each request that has ended."""
    with _leaves(plan) as fleet:
        urls = {
            name: fleet.start_root(
                "--name", f"root-{name}", "--timeout-ms", str(TIMEOUT_MS), *options
            )
            for name, options in arms.items()
        }
        measured = realtime.run(_drive(plan, urls, told))
        leaf_urls = fleet.leaf_urls
    for one in measured.values():
        _read(one, Injected(plan.profile, leaf_urls, plan.seed) if plan.profile else None)
    return measured


async def _drive(
    plan: Plan, urls: Mapping[str, str], told: Callable[[float], None]
) -> dict[str, Measured]:
    names = list(urls)
    measured = {name: Measured(Rows(plan.seed), Rows(plan.seed)) for name in names}
    schedule = workload.poisson(plan.rate_per_s, plan.lasts_s, Random(f"{plan.seed}:arrivals"))
    for number in range(len(schedule.send_at_s)):
        measured[names[number % len(names)]].answers.append({})
    places = Random(f"{plan.seed}:places")
    offsets = [places.randrange(PLACES) for _ in measured[names[0]].answers]
    async with _sessions(urls) as sessions:

        async def send(number: int) -> Fate:
            name, own = names[number % len(names)], number // len(names)
            answer = measured[name].answers[own] = await _ask(sessions[name], offsets[own])
            told(1)
            return "complete" if _is_complete(answer) else "partial" if answer else "error"

        await workload.open_loop(schedule, send, _InTurn([measured[n].recorder for n in names]))
    return measured


class _InTurn:
    """Gives the recorder of the arm whose turn it is: requests are sent in their order."""

    def __init__(self, recorders: list[Recorder]) -> None:
        self._recorders = recorders
        self._sent = 0

    def at(self, _offset_s: float, /) -> Recorder:
        self._sent += 1
        return self._recorders[(self._sent - 1) % len(self._recorders)]


class _sessions:  # noqa: N801 (used as a function)
    """A client of each root, each with connections without bound."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._urls = urls

    async def __aenter__(self) -> dict[str, aiohttp.ClientSession]:
        self._sessions = {
            name: aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0))
            for name, url in self._urls.items()
        }
        return self._sessions

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()
        await asyncio.sleep(0)  # aiohttp closes its sockets one tick later


async def _ask(session: aiohttp.ClientSession, offset: int) -> dict[str, Any]:
    """Return an answer with its trace; an empty one where there was none."""
    body = {"q": "a", "k": 1, "offset": offset, "fields": [], "highlight": [], "trace": True}
    try:
        async with session.post("/search", json=body) as response:
            answer: dict[str, Any] = orjson.loads(await response.read())
    except (TimeoutError, aiohttp.ClientError):
        return {}
    return {"trace": answer.get("trace", []), "coverage": answer.get("coverage", {})}


def _is_complete(answer: Mapping[str, Any]) -> bool:
    return bool(answer) and bool(answer["coverage"].get("complete"))


# --- what the traces say ------------------------------------------------------------------


def _read(measured: Measured, injected: Injected | None) -> None:
    """Count all answers after the first of an arm."""
    first = int(len(measured.answers) * COUNTED_APART)
    for number, answer in islice(enumerate(measured.answers, 1), first, None):
        phases = {phase["phase"]: phase for phase in answer.get("trace", ())}
        searched, fetched = phases.get("search"), phases.get("fetch")
        if searched is None or fetched is None or not _is_complete(answer):
            measured.incomplete += 1
            # Somebody waited, and for how long at most is known.
            measured.rows.fan_out([TIMEOUT_MS])
            continue
        _count(measured, searched, fetched)
        if injected is not None:
            _work_out(measured, injected, number, searched, fetched)


def _won(phase: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in phase["attempts"] if one["fate"] == "won"]


def _count(measured: Measured, searched: Mapping[str, Any], fetched: Mapping[str, Any]) -> None:
    for phase in (searched, fetched):
        more = [a for a in phase["attempts"] if a["kind"] not in {"primary", "probe"}]
        measured.legs += len(_won(phase))
        # A tied copy that is dropped unstarted costs nothing. That it was may be on its way still,
        # held back like any answer: what counts is that it is known to have been worked on.
        measured.extra += sum(a["kind"] != "tied" or bool(a.get("service_ms")) for a in more)
        measured.hedge_wins += sum(a["fate"] == "won" for a in more)
    started_ms = searched["started_ms"]
    measured.rows.fan_out([one["ended_ms"] - started_ms for one in _won(searched)])
    (alone, *_) = _won(fetched)
    sent_ms = min(one["sent_ms"] for one in fetched["attempts"])
    measured.rows.alone(alone["ended_ms"] - sent_ms)


def _work_out(
    measured: Measured,
    injected: Injected,
    number: int,
    searched: Mapping[str, Any],
    fetched: Mapping[str, Any],
) -> None:
    """What was injected into a query, and what the live system added to each of its legs."""
    legs_ms, added_ms = [], []
    for one in _won(searched):
        legs_ms.append(injected.ms("search", number, one))
        added_ms.append(one["ended_ms"] - one["sent_ms"] - legs_ms[-1])
    if min(added_ms) < -EARLY_MS:
        measured.mistaken += 1
        return
    (alone, *_) = _won(fetched)
    alone_ms = injected.ms("fetch", number, alone)
    measured.injected.fan_out(legs_ms)
    measured.injected.alone(alone_ms)
    measured.added_ms.extend(added_ms)
    measured.added_alone_ms.append(alone["ended_ms"] - alone["sent_ms"] - alone_ms)


class Waterfall(msgspec.Struct, frozen=True):
    """One query in two arms: the phase in which its leaves are asked, of each trace."""

    number: int
    phases: dict[str, dict[str, Any]]


def slow_query(measured: Mapping[str, Measured], arms: tuple[str, str]) -> Waterfall | None:
    """The query with the 95th percentile of times in the first arm, if the second asked it too;
    of those near it the one that gained most.
    """
    taken = []
    for number, answers in enumerate(zip(*(measured[arm].answers for arm in arms), strict=False)):
        phases = [
            phase
            for answer in answers
            for phase in answer.get("trace", ())
            if phase["phase"] == "search"
        ]
        if len(phases) == len(arms):
            took_ms = [phase["decided_ms"] - phase["started_ms"] for phase in phases]
            taken.append((took_ms[0], took_ms[1], number, phases))
    taken.sort(key=lambda one: one[0])
    near = taken[int(len(taken) * 0.90) : max(1, int(len(taken) * 0.98))]
    if not near:
        return None
    _, _, number, phases = max(near, key=lambda one: one[0] - one[1])
    return Waterfall(number + 1, dict(zip(arms, phases, strict=True)))
