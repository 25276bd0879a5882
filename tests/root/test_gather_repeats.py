"""The same seed gives the same run: a story of many queries, told in two processes."""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest

from root.budget import Budget, BudgetTerms
from root.conduct import CONDUCT
from root.gather import (
    Action,
    AlarmRang,
    AttemptFailed,
    AttemptsReplied,
    Event,
    Gather,
    SendAttempt,
)
from root.hedging import Quantile
from root.latency import Latency
from root.race import Ledger, Terms
from root.ranking import Leaf

QUERIES: Final = 60
SHARDS: Final = 12
QUERY_S: Final = 0.3
"""How long a query may take: a few of the stalls below last longer."""


def story(seed: int) -> Iterator[str]:
    """Tell, line by line, what gathers order of scripted leaves that stall and fail at random."""
    random = Random(f"{seed}:leaves")
    leaves = [Leaf(f"leaf-{i}", 0.0) for i in range(5)]
    replicas = [(leaves[s % 5], leaves[(s + 1 + s // 5) % 5]) for s in range(SHARDS)]
    budget = Budget(BudgetTerms(burst=20.0), 0.0)
    ledger, history, choices = Ledger(), Latency(0.0), Random(f"{seed}:replicas")
    for query in range(QUERIES):
        terms = Terms(choices, budget, ledger, history)
        start_s = query * QUERY_S
        gather = Gather(enumerate(replicas), Quantile(), terms, start_s + QUERY_S)
        yield from told(gather, start_s, random)
        yield f"{gather.outcome} {gather.tally}"
    yield f"{ledger} {[(leaf.name, leaf.latency_s, leaf.outstanding) for leaf in leaves]}"


def told(gather: Gather, start_s: float, random: Random) -> Iterator[str]:
    """Run one gather until all its attempts have ended."""
    due: list[tuple[float, int, Event]] = []
    count = 0

    def perform(now: float, actions: Sequence[Action]) -> Iterator[str]:
        nonlocal count
        for action in actions:
            attempt = action.attempt
            yield f"{now:.6f} {type(action).__name__} {attempt.number} {attempt.leaf.name}"
            if isinstance(action, SendAttempt):
                count += 1
                event: Event = AttemptsReplied([(attempt, attempt.number)])
                if random.random() < 0.03:
                    event = AttemptFailed(attempt, random.choice(list(CONDUCT)))
                stall_s = random.uniform(0.05, 0.5) if random.random() < 0.05 else 0.0
                heapq.heappush(due, (now + random.expovariate(200.0) + stall_s, count, event))

    yield from perform(start_s, gather.start(start_s))
    while due:
        wakeup = gather.wakeup
        if wakeup is not None and wakeup <= due[0][0]:
            yield from perform(wakeup, gather.handle(AlarmRang(), wakeup))
        else:
            now, _, event = heapq.heappop(due)
            yield from perform(now, gather.handle(event, now))


def story_in_another_process(seed: int, hash_seed: int) -> str:
    done = subprocess.run(
        [sys.executable, __file__, str(seed)],
        env={
            **os.environ,
            "PYTHONHASHSEED": str(hash_seed),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_gives_the_same_actions_under_any_hash_seed(seed: int) -> None:
    """Byte for byte: every order, outcome, counter and smoothed latency."""
    first, second = (story_in_another_process(seed, hash_seed) for hash_seed in (0, 4711))
    assert first == second
    assert first == "".join(f"{line}\n" for line in story(seed))


def test_the_story_has_everything_in_it() -> None:
    """Hedges, failovers and timeouts happen in it, and no attempt is unaccounted for."""
    lines = list(story(1))
    assert any("CancelAttempt" in line for line in lines)
    assert any("'timeout'" in line for line in lines)
    assert "'in_flight'" not in lines[-1]
    assert sum("SendAttempt" in line for line in lines) > QUERIES * SHARDS
    assert lines != list(story(2))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in story(int(sys.argv[1])))
