"""Kill one leaf and freeze another under load: does anybody notice?

One fleet, one schedule, three phases: all well, one leaf killed, another one stopped as
well. The two share no shard, so every shard keeps a replica. Every answer is compared with
the one the same query got before the trouble began. Afterwards both leaves come back, and
the root's account of its attempts must balance.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from rich.console import Console

from bench import metrics, report, workload
from bench.client import Answer, Client, connected
from bench.fleet import POLL_S, Fleet, FleetError
from bench.recorder import Fate, Phases, Summary

RETURN_S_MAX: Final = 20.0
"""A leaf that came back serves again by then: opening an index takes a second."""

SAID_MAX: Final = 5
"""Wrong answers described in the result; the others are counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done to the fleet, and when, in seconds from the start of the load."""

    rate_per_s: float = 200
    duration_s: float = 30
    kill_at_s: float = 10
    stop_at_s: float = 20
    killed: int = 0
    stopped: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.kill_at_s < self.stop_at_s < self.duration_s:
            raise ValueError("kill_at_s and stop_at_s must lie in this order inside the run")
        if self.killed == self.stopped:
            raise ValueError("killed and stopped must be two leaves")


class Account(msgspec.Struct, frozen=True):
    """What became of every attempt the root ever sent."""

    sent: int
    fates: dict[str, int]

    @property
    def balanced(self) -> bool:
        """Whether each attempt has ended in one of the four ways."""
        return self.sent == sum(self.fates.values()) and set(self.fates) <= {
            "won",
            "lost",
            "cancelled",
            "failed",
        }


class Result(msgspec.Struct, frozen=True):
    """``wrong`` counts answers that differ from those before; ``said`` describes some."""

    phases: dict[str, Summary]
    wrong: int
    said: list[str]
    returned_s: float
    account: Account

    @property
    def unharmed(self) -> bool:
        """Whether every request got its whole and right answer."""
        return self.wrong == 0 and all(
            set(phase.fates) == {"complete"} and not phase.unsent for phase in self.phases.values()
        )


class Judge:
    """Compares answers with the ones that the same queries got at rest."""

    def __init__(self, expected: Mapping[str, Answer]) -> None:
        self._expected = expected
        self.wrong = 0
        self.said: list[str] = []

    def judge(self, q: str, answer: Answer) -> Fate:
        """Count a wrong answer, and describe what is not as expected."""
        wanted = self._expected[q]
        right = (answer.ids, answer.total) == (wanted.ids, wanted.total)
        if answer.fate == "complete" and not right:
            self.wrong += 1
        if not right and len(self.said) < SAID_MAX:
            self.said.append(
                f"{q}: {answer.fate} {answer.total} for {wanted.total} {answer.detail}"
            )
        return answer.fate


async def run(fleet: Fleet, queries: Sequence[str], plan: Plan, seed: int) -> Result:
    """Run the plan on a fleet whose leaves all serve; they do again when it returns."""
    async with connected(fleet.root_url) as client:
        judge = Judge({q: await _at_rest(client, q) for q in dict.fromkeys(queries)})
        phases = Phases(
            {"all well": 0, "one killed": plan.kill_at_s, "and one stopped": plan.stop_at_s}
        )

        async def send(number: int) -> Fate:
            q = queries[number % len(queries)]
            return judge.judge(q, await client.search(q))

        rng = random.Random(f"{seed}:arrivals")
        schedule = workload.poisson(plan.rate_per_s, plan.duration_s, rng)
        async with asyncio.TaskGroup() as group:
            group.create_task(workload.open_loop(schedule, send, phases))
            group.create_task(_trouble(fleet, plan))
        returned_s = await _bring_back(fleet, client, plan)
        for q in dict.fromkeys(queries):
            judge.judge(q, await client.search(q))
        account = await settled_account(client)
    summaries = {name: recorder.summary() for name, recorder in phases.recorders.items()}
    return Result(summaries, judge.wrong, judge.said, returned_s, account)


async def settled_account(client: Client) -> Account:
    """The root's account once nothing is in flight any more, or as it stands after a while."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + RETURN_S_MAX
    while True:
        account = read_account(await client.get_text("/metrics"))
        if account.balanced or loop.time() > deadline_s:
            return account
        await asyncio.sleep(POLL_S)


def read_account(text: str) -> Account:
    """The account in a root's exported metrics."""
    sent = metrics.counter(text, "hedgerow_attempts_sent", "kind")
    fates = metrics.counter(text, "hedgerow_attempts_ended", "fate")
    return Account(int(sum(sent.values())), {fate: int(n) for fate, n in sorted(fates.items())})


async def _at_rest(client: Client, q: str) -> Answer:
    answer = await client.search(q)
    if answer.fate != "complete":
        raise FleetError(f"the fleet at rest does not answer {q!r}: {answer.detail}")
    return answer


async def _trouble(fleet: Fleet, plan: Plan) -> None:
    await asyncio.sleep(plan.kill_at_s)
    await asyncio.to_thread(fleet.kill, plan.killed)
    await asyncio.sleep(plan.stop_at_s - plan.kill_at_s)
    fleet.stop(plan.stopped)


async def _bring_back(fleet: Fleet, client: Client, plan: Plan) -> float:
    """Restart the one, resume the other; return the seconds until the root counts on both."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    fleet.resume(plan.stopped)
    fleet.start(plan.killed)
    while not await _all_connected(client):
        if loop.time() - start_s > RETURN_S_MAX:
            raise FleetError(f"a leaf was not back after {RETURN_S_MAX:.0f} s")
        await asyncio.sleep(POLL_S)
    return loop.time() - start_s


async def _all_connected(client: Client) -> bool:
    topology = await client.get_json("/topology")
    return all(leaf["connected"] for leaf in topology["leaves"])


def show(result: Result, console: Console) -> None:
    """Print the phases and the verdict."""
    rows = [
        [name, s.requests, s.fates.get("complete", 0), s.p50_ms, s.p95_ms, s.p99_ms, s.max_ms]
        for name, s in result.phases.items()
    ]
    columns = ["phase", "requests", "complete", "p50 ms", "p95 ms", "p99 ms", "max ms"]
    report.show_table("a leaf killed, another stopped, under load", columns, rows, console)
    fates = ", ".join(f"{n} {fate}" for fate, n in result.account.fates.items())
    verdict = "balanced" if result.account.balanced else "NOT BALANCED"
    console.print(f"answers that differ from those before: {result.wrong}")
    for line in result.said:
        console.print(f"  {line}", markup=False)
    console.print(f"both leaves back after {result.returned_s:.1f} s")
    console.print(f"attempts: {result.account.sent} sent = {fates}: {verdict}")
