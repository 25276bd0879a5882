"""Real queries through the whole system, beside one index searched in this process.

Three arms, in turn within one run, so that what else the machine does hits them alike:

    closed   so many clients, each asking as soon as it is answered: what the system carries
    open     requests on a schedule fixed beforehand: how long a user waits
    oracle   one index, one thread, no network: what the searching alone costs

Load generator, root and leaves share the machine's cores; a root with cores of its own
carries more.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from rich.console import Console

from bench import report, workload
from bench.client import Client, connected
from bench.fleet import Fleet
from bench.recorder import Fate, Recorder, Summary
from bench.reference import Reference


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of each arm: ``rounds`` times ``requests`` closed and in the oracle, and
    ``open_s`` seconds at ``rate_per_s`` open.
    """

    rounds: int = 5
    requests: int = 1000
    clients: int = 8
    rate_per_s: float = 100
    open_s: float = 5

    def __post_init__(self) -> None:
        if min(self.rounds, self.requests, self.clients) < 1:
            raise ValueError("rounds, requests and clients must be positive")


class Arm(msgspec.Struct, frozen=True):
    """One arm: requests a second while it ran, and its latencies."""

    queries_per_s: float
    summary: Summary


class Result(msgspec.Struct, frozen=True):
    """The three arms."""

    queries: int
    arms: dict[str, Arm]


class _Running:
    """An arm while it runs."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.took_s = 0.0

    def arm(self) -> Arm:
        summary = self.recorder.summary()
        return Arm(summary.requests / max(self.took_s, 1e-9), summary)


async def run(
    fleet: Fleet, queries: Sequence[str], reference: Reference, plan: Plan, seed: int
) -> Result:
    """Run the arms in turn, ``plan.rounds`` times."""
    arms = {name: _Running() for name in ("closed", "open", "oracle")}
    rng = random.Random(f"{seed}:arrivals")
    async with connected(fleet.root_url) as client:
        await _warm_up(client, queries)
        for round_number in range(plan.rounds):
            asked = _turned(queries, round_number * plan.requests)
            await _closed(client, asked, plan, arms["closed"])
            await _open(client, asked, plan, rng, arms["open"])
            _oracle(reference, asked, plan, arms["oracle"])
    return Result(len(queries), {name: running.arm() for name, running in arms.items()})


async def _warm_up(client: Client, queries: Sequence[str]) -> None:
    """Touch every shard's files and let the root learn its attempt times."""
    for q in queries[:100]:
        await client.search(q)


def _turned(queries: Sequence[str], by: int) -> Sequence[str]:
    by %= len(queries)
    return [*queries[by:], *queries[:by]]


async def _closed(client: Client, queries: Sequence[str], plan: Plan, arm: _Running) -> None:
    async def send(number: int) -> Fate:
        return (await client.search(queries[number % len(queries)])).fate

    per_s = await workload.closed_loop(plan.clients, plan.requests, send, arm.recorder)
    arm.took_s += plan.requests / per_s


async def _open(
    client: Client, queries: Sequence[str], plan: Plan, rng: random.Random, arm: _Running
) -> None:
    async def send(number: int) -> Fate:
        return (await client.search(queries[number % len(queries)])).fate

    start_s = time.perf_counter()
    schedule = workload.poisson(plan.rate_per_s, plan.open_s, rng)
    await workload.open_loop(schedule, send, arm.recorder)
    arm.took_s += time.perf_counter() - start_s


def _oracle(reference: Reference, queries: Sequence[str], plan: Plan, arm: _Running) -> None:
    for number in range(plan.requests):
        start_s = time.perf_counter()
        reference.search(queries[number % len(queries)])
        took_s = time.perf_counter() - start_s
        arm.recorder.record("complete", took_s)
        arm.took_s += took_s


def show(result: Result, console: Console) -> None:
    """Print an arm a line."""
    rows = [
        [name, arm.queries_per_s, s.p50_ms, s.p95_ms, s.p99_ms, s.max_ms, _fates(s), s.lag_ms_p99]
        for name, arm in result.arms.items()
        for s in [arm.summary]
    ]
    columns = ["arm", "queries/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "fates", "lag p99 ms"]
    report.show_table(f"{result.queries} mixed queries", columns, rows, console)


def _fates(summary: Summary) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in summary.fates.items())
