"""Seeds by the thousand: of each a small fleet in trouble, and whether what must hold, held."""

from __future__ import annotations

import logging
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench import report
from bench.simulation.invariants import breaches
from bench.simulation.story import story
from bench.simulation.swarm import Run, simulate
from root.conduct import CONDUCT
from root.race import FATES, KINDS

SEEDS_MAX: Final = 1_000_000
"""A day on one core."""

SEEDS: Final = re.compile(r"(?P<first>[0-9]{1,12})(?:\.\.(?P<last>[0-9]{1,12}))?")

CHUNK: Final = 20
"""Seeds that a process takes at a time: about a second of work."""

QUIET: Final = logging.NullHandler()
"""What the root has to say of leaves that misbehave is no news here."""


class Failure(msgspec.Struct, frozen=True):
    """An invariant that a seed broke: how often, what was seen first, and how to see it again."""

    seed: int
    invariant: str
    times: int
    seen: str
    replay: str


class Verdict(msgspec.Struct, frozen=True):
    """What one seed came to. ``attempts`` counts by kind, fate and reason of failure."""

    seed: int
    failures: list[Failure]
    queries: int
    attempts: dict[str, int]


class Result(msgspec.Struct, frozen=True):
    """What all seeds came to; ``seeds`` are the first and the last."""

    seeds: tuple[int, int]
    failures: list[Failure]
    queries: int
    attempts: int
    kinds: dict[str, int]
    fates: dict[str, int]
    reasons: dict[str, int]


def seeds_in(text: str) -> range:
    """Read ``7`` or ``0..1999`` (both included). Raises ValueError with a sentence."""
    found = SEEDS.fullmatch(text)
    if found is None:
        raise ValueError(f"--seeds must be a number, or two as in 0..1999, not {text[:40]!r}")
    first = int(found["first"])
    last = int(found["last"] or first)
    if last < first:
        raise ValueError(f"--seeds {text} ends before it begins")
    if last - first >= SEEDS_MAX:
        raise ValueError(f"--seeds {text} are more than {SEEDS_MAX}, which is the most")
    return range(first, last + 1)


def verdicts(seeds: Sequence[int], jobs: int) -> Iterator[Verdict]:
    """Judge every seed, in their order, with so many processes at once."""
    if jobs == 1:
        yield from map(judge, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(judge, seeds, chunksize=CHUNK)


def watched(seeds: Sequence[int], jobs: int) -> list[Verdict]:
    """Judge every seed; tell of each that fails when it does, and how far it is, to a person."""
    judged: list[Verdict] = []
    out = Console(emoji=False)
    with Progress(
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        redirect_stdout=sys.stdout.isatty(),
        transient=True,
    ) as progress:
        for verdict in progress.track(verdicts(seeds, jobs), len(seeds), description="seeds"):
            judged.append(verdict)
            show_failures(verdict, out)
    return judged


def judge(seed: int) -> Verdict:
    """Run a seed and look what did not hold; a run that does not come to its end holds nothing."""
    logging.getLogger("root.search").addHandler(QUIET)
    try:
        run = simulate(seed)
    except Exception as error:  # noqa: BLE001 (whatever it is, this seed shows it)
        seen = f"{type(error).__name__}: {error}"
        return Verdict(seed, [_failure(seed, "the run comes to its end", [seen])], 0, {})
    seen_of: dict[str, list[str]] = {}
    for breach in breaches(run):
        seen_of.setdefault(breach.invariant, []).append(breach.seen)
    failures = [_failure(seed, invariant, seen) for invariant, seen in seen_of.items()]
    return Verdict(seed, failures, len(run.requests), _attempts(run))


def replayed(seed: int) -> list[Verdict]:
    """Tell the whole story of a seed, if it has an end, and judge it."""
    verdict = judge(seed)
    if verdict.queries:
        print(*story(simulate(seed)), sep="\n")
    show_failures(verdict, Console(emoji=False))
    return [verdict]


def summed_up(seeds: range, of_seeds: Iterable[Verdict]) -> Result:
    """Add up verdicts."""
    failures: list[Failure] = []
    queries = 0
    attempts: Counter[str] = Counter()
    for verdict in of_seeds:
        failures += verdict.failures
        queries += verdict.queries
        attempts.update(verdict.attempts)
    return Result(
        (seeds[0], seeds[-1]),
        failures,
        queries,
        sum(attempts[f"kind {kind}"] for kind in KINDS),
        {kind: attempts[f"kind {kind}"] for kind in KINDS},
        {fate: attempts[f"fate {fate}"] for fate in FATES},
        {reason: attempts[f"reason {reason}"] for reason in CONDUCT},
    )


def show(result: Result, console: Console) -> None:
    """Print what was run, so that nobody takes an empty run for a good one."""
    first, last = result.seeds
    failed = len({failure.seed for failure in result.failures})
    rows: list[list[object]] = [
        [name, number]
        for what, counted in (
            ("", {"searches": result.queries, "attempts": result.attempts}),
            ("sent: ", result.kinds),
            ("ended: ", result.fates),
            ("failed: ", result.reasons),
        )
        for name, number in ((f"{what}{name}", number) for name, number in counted.items())
    ]
    report.show_table(f"swarm of seeds {first} to {last}", ["", "number"], rows, console)
    console.print(f"{failed} of {last - first + 1} seeds failed", highlight=False)


def show_failures(verdict: Verdict, console: Console) -> None:
    """Print what a seed broke, and the command that shows it again."""
    for failure in verdict.failures:
        console.print(
            f"seed {failure.seed}: {failure.invariant}: broken {failure.times} times, first: "
            f"{failure.seen}\n    {failure.replay}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _failure(seed: int, invariant: str, seen: Sequence[str]) -> Failure:
    replay = f"python -m bench swarm --seeds {seed} --trace"
    return Failure(seed, invariant, len(seen), seen[0], replay)


def _attempts(run: Run) -> Counter[str]:
    counted: Counter[str] = Counter()
    for attempts in run.fleet.sends.values():
        for attempt in attempts:
            counted[f"kind {attempt.kind}"] += 1
            counted[f"fate {attempt.fate}"] += 1
            if attempt.reason is not None:
                counted[f"reason {attempt.reason}"] += 1
    return counted
