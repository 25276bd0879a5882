"""Small fleets in all kinds of trouble: what must hold, holds, and the same seed is the same run.

``python -m bench swarm`` does the same for any number of seeds.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from bench.experiments.swarm import Result, judge, summed_up
from bench.simulation.invariants import breaches
from bench.simulation.swarm import simulate

SEEDS: Final = range(50)
REPOSITORY: Final = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def result() -> Result:
    """What all seeds came to."""
    return summed_up(SEEDS, map(judge, SEEDS))


def test_what_must_hold_holds_of_every_seed(result: Result) -> None:
    """See ``bench.simulation.invariants``."""
    assert not result.failures


@pytest.mark.parametrize("seed", [55, 399])
def test_a_probe_that_fails_after_its_race_is_no_cause(seed: int) -> None:
    """Its query was refused for what it is, and that is what the answer says."""
    assert not breaches(simulate(seed))


def test_everything_that_can_become_of_an_attempt_is_seen(result: Result) -> None:
    """Every kind, every fate and every reason to fail: nothing holds for want of a case."""
    numbers = [*result.kinds.items(), *result.fates.items(), *result.reasons.items()]
    assert [name for name, number in numbers if number < 10] == []


def _fingerprint(seeds: range) -> str:
    return hashlib.sha256(repr([simulate(seed).trace() for seed in seeds]).encode()).hexdigest()


def test_the_same_seed_gives_the_same_run() -> None:
    """Twice in one process, to the last bit of every time."""
    assert _fingerprint(range(4)) == _fingerprint(range(4))
    assert _fingerprint(range(4)) != _fingerprint(range(4, 8))


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    """No decision depends on the order of a set or of hashes."""
    program = "from tests.sim.test_swarm import _fingerprint; print(_fingerprint(range(4)))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert printed == {_fingerprint(range(4)) + "\n"}
