"""A thousand small fleets in trouble: what holds whatever happens."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from bench.simulation.scripted_fleet import Seen
from bench.simulation.swarm import Report, report
from root.race import Race

SEEDS: Final = 1000
BLOCK: Final = 100
REPOSITORY: Final = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_what_always_holds(first: int) -> None:
    """Every query ends by its deadline with one answer or one reason a shard; no race asks a
    leaf twice; what was sent has ended, once; a shard is missing only for a cause; and once
    all is well, so are the answers.
    """
    for seed in range(first, first + BLOCK):
        run = report(seed)
        assert run.accounted, f"seed {seed}"
        assert sum(run.ledger.sent.values()) == sum(run.ledger.ended.values()), f"seed {seed}"
        assert run.tasks_left == 0, f"seed {seed}"
        assert run.last.complete, f"seed {seed}"
        for query in run.seen:
            _check(query, run, f"seed {seed}, query at {query.started_s:.4f} s")


def _check(query: Seen, run: Report, where: str) -> None:
    swarm, outcome = run.swarm, query.outcome
    assert query.took_s <= swarm.timeout_s + 1e-9, where
    answered = [shard for shard, _ in outcome.replies]
    assert sorted([*answered, *outcome.missing]) == list(range(swarm.shards)), where
    asked = Counter((a.shard, a.leaf.name) for a in query.gather.attempts)
    assert max(asked.values(), default=1) == 1, where
    won = [a.shard for a in query.gather.attempts if a.fate == "won"]
    assert sorted(won) == sorted(answered), where
    for race in query.gather._races:
        if race.missing is not None:
            assert _has_a_cause(race, query, run), f"{where}, shard {race.shard}: {race.missing}"


def _has_a_cause(race: Race, query: Seen, run: Report) -> bool:
    """Whether nothing more could have been done: no time, no token, no attempt, no leaf left."""
    tried = {attempt.leaf.name for attempt in race.attempts}
    untried = {leaf.name for leaf in race.replicas} - tried
    ended_s = query.started_s + query.took_s
    lost = {
        leaf for leaf, from_s, to_s in run.losses if from_s <= ended_s and to_s >= query.started_s
    }
    match race.missing:
        case "timeout":
            late = query.took_s >= run.swarm.timeout_s - 1e-9
            return late or any(attempt.reason == "expired" for attempt in race.attempts)
        case "no_replica":
            return untried <= lost
        case _:
            used_up = race._counted_attempts() >= run.swarm.attempts_max
            return used_up or race.denied or untried <= lost


def _fingerprint(seeds: range) -> str:
    return hashlib.sha256(repr([report(seed).trace() for seed in seeds]).encode()).hexdigest()


def test_the_same_seed_gives_the_same_run() -> None:
    """Twice in one process, to the last bit of every time."""
    assert _fingerprint(range(20)) == _fingerprint(range(20))
    assert _fingerprint(range(20)) != _fingerprint(range(20, 40))


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    """No decision depends on the order of a set or of hashes."""
    program = "from tests.sim.test_swarm import _fingerprint; print(_fingerprint(range(20)))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert printed == {_fingerprint(range(20)) + "\n"}
