"""One load, read with and without correction for coordinated omission.

Clients that wait for their answers are to send on a schedule. Each request is measured twice:
from the time at which it was to be sent, and from the one at which it was. Once all is quiet,
once the root is stopped (SIGSTOP) for 1.4 s, as by Ctrl-Z. Of a run of L seconds with one stall
of S, the corrected 99th percentile is S - L / 100: the published 1.27 s are those of 13 s.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bench.client import connected
from bench.comparison import Comparison
from bench.confidence import Curve, Estimate
from bench.fleet import Fleet
from bench.published import COORDINATED_OMISSION
from bench.recorder import Fate, Recorder, Summary
from bench.workload import Send, closed_loop, constant, paced_loop

STALL_S: Final = 1.4
"""As published."""

PER_S: Final = 60.0
CLIENTS: Final = 2
"""Each alone could carry all of the load, when all is well."""

WARM_UP: Final = 100
"""Requests before the first that counts."""


class Omission(msgspec.Struct, frozen=True):
    """One run in both readings; ``curves_ms`` by their names."""

    corrected: Summary
    uncorrected: Summary
    curves_ms: dict[str, Curve]


async def omitted(fleet: Fleet, queries: Sequence[str], lasts_s: float) -> dict[str, Omission]:
    """Both runs, ``quiet`` and ``stall``, of so many seconds each, on a fleet without trouble."""
    async with connected(fleet.root_url) as client:

        async def send(number: int) -> Fate:
            return (await client.search(queries[number % len(queries)])).fate

        await closed_loop(1, WARM_UP, send, Recorder())
        quiet = await _paced(send, lasts_s)
        stop = asyncio.create_task(_stop(fleet.pids["root"], lasts_s / 2.0))
        stalled = await _paced(send, lasts_s)
        await stop
    return {"quiet": quiet, "stall": stalled}


async def _paced(send: Send, lasts_s: float) -> Omission:
    corrected, uncorrected = Recorder(), Recorder()
    await paced_loop(constant(PER_S, lasts_s), CLIENTS, send, corrected, uncorrected)
    curves = {"corrected": corrected.curve_ms(), "uncorrected": uncorrected.curve_ms()}
    return Omission(corrected.summary(), uncorrected.summary(), curves)


async def _stop(pid: int, after_s: float) -> None:
    """Stop a process for a while."""
    await asyncio.sleep(after_s)
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(STALL_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def comparisons(runs: Mapping[str, Omission]) -> list[Comparison]:
    """The 99th percentile of both runs, in both readings, beside what was published."""
    return [
        Comparison.of(
            f"{run}, p99",
            COORDINATED_OMISSION.figure(run, f"p99_{arm}"),
            Estimate(summary.p99_ms, *summary.intervals_ms["p99"]),
            arm=arm,
        )
        for run, one in runs.items()
        for arm, summary in (("corrected", one.corrected), ("uncorrected", one.uncorrected))
    ]
