"""Load on any HTTP address, on a schedule fixed beforehand, and how long its users wait.

Latency counts from the intended send time of each request to the last byte of its answer.
Refused, failed and late requests count like any other: somebody waited for them.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import aiohttp
import msgspec
from rich.console import Console

from bench import plots, report, workload
from bench.client import CLIENT_TIMEOUT_S
from bench.comparison import interval
from bench.confidence import Curve
from bench.progress import progress
from bench.recorder import Fate, Phases, Recorder, Summary
from bench.script import Line, Method
from bench.workload import Schedule

WINDOWS_MAX: Final = 60
"""Points of a run over time: what a picture can show."""

WINDOW_S_MIN: Final = 1.0

QUERY: Final = "{q}"
"""Stands for a query in an address or a body."""

JSON: Final = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent where; ``url`` ends before the paths of the lines begin."""

    url: str
    lines: Sequence[Line]
    in_flight_max: int = workload.IN_FLIGHT_MAX

    @property
    def lasts_s(self) -> float:
        """Until the last request is sent."""
        return self.lines[-1].at_s


class Window(msgspec.Struct, frozen=True):
    """The requests that were to be sent within a part of the run that began at ``at_s``."""

    at_s: float
    requests: int
    p50_ms: float
    p99_ms: float


class Result(msgspec.Struct, frozen=True):
    """``statuses``: how many requests ended with each HTTP status, or in which other way."""

    url: str
    statuses: dict[str, int]
    summary: Summary
    windows: list[Window]
    curve_ms: Curve


def planned(
    schedule: Schedule, path: str, body: str | None = None, queries: Sequence[str] = ()
) -> list[Line]:
    """The same request at every time of a schedule, or with queries in turn in place of QUERY."""
    method: Method = "GET" if body is None else "POST"
    turns: Iterator[str] = itertools.cycle(queries) if queries else itertools.repeat("")
    return [
        Line(
            round(at_s, 6),
            method,
            path.replace(QUERY, quote(q)),
            body and body.replace(QUERY, json.dumps(q)[1:-1]),
        )
        for at_s, q in zip(schedule.send_at_s, turns, strict=False)
    ]


async def run(plan: Plan) -> Result:
    """Send everything, and wait for the last answer."""
    width_s = max(WINDOW_S_MIN, plan.lasts_s / WINDOWS_MAX)
    begins_s = [i * width_s for i in range(math.floor(plan.lasts_s / width_s) + 1)]
    windows = Phases({f"{begin_s:g}": begin_s for begin_s in begins_s})
    statuses: Counter[str] = Counter()
    timeout = aiohttp.ClientTimeout(total=CLIENT_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(plan.url, connector=connector, timeout=timeout) as session:
        with progress("load", len(plan.lines)) as advance:

            async def send(number: int) -> Fate:
                status, fate = await _ask(session, plan.lines[number])
                statuses[status] += 1
                advance(1)
                return fate

            schedule = Schedule(tuple(line.at_s for line in plan.lines))
            await workload.open_loop(schedule, send, windows, plan.in_flight_max)
    return _told(plan, windows, begins_s, statuses)


def _told(plan: Plan, windows: Phases, begins_s: Sequence[float], statuses: Counter[str]) -> Result:
    whole = Recorder()
    for recorder in windows.recorders.values():
        whole.add(recorder)
    told = []
    for begin_s, recorder in zip(begins_s, windows.recorders.values(), strict=True):
        summary = recorder.summary()
        told.append(Window(begin_s, summary.requests, summary.p50_ms, summary.p99_ms))
    counted = dict(sorted(statuses.items()))
    return Result(plan.url, counted, whole.summary(), told, whole.curve_ms())


async def _ask(session: aiohttp.ClientSession, line: Line) -> tuple[str, Fate]:
    """Send one request; return how it ended in a word, and its fate."""
    headers = JSON if line.body is not None else None
    try:
        async with session.request(
            line.method, line.path, data=line.body, headers=headers
        ) as response:
            body = await response.read()
            return str(response.status), fate_of(response.status, body)
    except TimeoutError:
        return "timeout", "timeout"
    except (aiohttp.ClientError, OSError) as error:
        return type(error).__name__, "error"


class _Coverage(msgspec.Struct, frozen=True):
    complete: bool = True


class _Answer(msgspec.Struct, frozen=True):
    coverage: _Coverage = _Coverage()


def fate_of(status: int, body: bytes) -> Fate:
    """What became of a request by its answer; an answer of ours may say that a part is missing."""
    match status:
        case 429 | 503:
            return "refused"
        case 504:
            return "timeout"
        case _ if status >= 400:
            return "error"
    try:
        whole = msgspec.json.decode(body, type=_Answer).coverage.complete
    except msgspec.DecodeError:
        return "complete"  # no answer of ours
    return "complete" if whole else "partial"


def show(result: Result, console: Console) -> None:
    """Print percentiles with their intervals, what became of the requests, and the lag."""
    one = result.summary
    values = {
        "p50": one.p50_ms,
        "p90": one.p90_ms,
        "p95": one.p95_ms,
        "p99": one.p99_ms,
        "p99.9": one.p99_9_ms,
        "max": one.max_ms,
    }
    rows = [
        [name, value, interval(*one.intervals_ms.get(name, (None, None)))]
        for name, value in values.items()
    ]
    title = f"{one.requests} requests to {result.url}, ms from the intended send time"
    report.show_table(title, ["", "latency", "95 % interval"], rows, console)
    ended = ", ".join(f"{count} {status}" for status, count in result.statuses.items())
    fates = ", ".join(f"{count} {fate}" for fate, count in one.fates.items())
    console.print(f"ended with {ended}: {fates}", highlight=False, soft_wrap=True)
    if one.unsent:
        console.print(
            f"{one.unsent} not sent, because too many were under way (--in-flight)",
            highlight=False,
            soft_wrap=True,
        )
    report.show_validity({"load": one}, console)


def draw(result: Result, path: Path, caption: str) -> None:
    """The distribution, and the run over time."""
    with plots.page(path, f"Load on {result.url}", caption, (1, 2)) as (tail, course):
        plots.tail(tail, {"latency": result.curve_ms}, f"{result.summary.requests} requests")
        series = {
            "p50": [(window.at_s, window.p50_ms) for window in result.windows if window.requests],
            "p99": [(window.at_s, window.p99_ms) for window in result.windows if window.requests],
        }
        plots.lines(course, series, "over time", "intended send time, s", "latency, ms", log="y")
