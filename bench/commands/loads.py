"""Load and what it does: on any address, and on fleets of our own."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import click
from click.core import ParameterSource

from bench import realtime, script, workload
from bench.experiments import load
from bench.options import NEW_FILE, Refused, common_options, in_a_folder, plot_option, publish
from bench.report import Conditions
from bench.workload import Phase

EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)

CONNECT_S_MAX: Final = 5.0
"""Whoever does not take a connection in this time takes no load either."""

QUICK_S: Final = 2.0
"""Of a tiny run."""

REQUESTS_MAX: Final = 5_000_000
"""Of one run; all of them are held in memory."""


def ramp_of(_: click.Context, __: click.Parameter, value: str | None) -> Phase | None:
    """``FROM:TO:SECONDS``: a rate that rises or falls evenly."""
    if value is None:
        return None
    try:
        from_per_s, to_per_s, lasts_s = map(float, value.split(":"))
        return Phase(from_per_s, to_per_s, lasts_s)
    except ValueError as error:
        raise click.BadParameter(
            f"{value} is not FROM:TO:SECONDS, two rates and a positive time, as 5:50:30"
        ) from error


def address_of(_: click.Context, __: click.Parameter, value: str) -> SplitResult:
    """The parts of an http address."""
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError as error:
        raise click.BadParameter(f"{value}: {error}") from error
    if url.scheme not in {"http", "https"} or not url.hostname or port == 0:
        raise click.BadParameter(f"{value} is not an address as http://host:port/path")
    return url


def lines_of(_: click.Context, __: click.Parameter, path: Path | None) -> list[str]:
    """The lines of a file that are not empty."""
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{path} is not UTF-8: {error.reason}") from error
    if not (lines := [line for line in text.splitlines() if line.strip()]):
        raise click.BadParameter(f"{path} has no line")
    return lines


@click.command("load")
@click.argument("url", callback=address_of)
@common_options
@plot_option
@click.option("--rate", type=click.FloatRange(0.001, 100_000), default=50, show_default=True)
@click.option("--ramp", callback=ramp_of, help="First so, as 5:50:30 from 5/s to 50/s in 30 s.")
@click.option("--seconds", type=click.FloatRange(0.1, 86_400), default=60, show_default=True)
@click.option(
    "--arrivals", type=click.Choice(["poisson", "constant"]), default="poisson", show_default=True
)
@click.option("--body", help="POST this JSON instead of a GET.")
@click.option(
    "--queries",
    type=EXISTING_FILE,
    callback=lines_of,
    help="Put the lines of this file in turn in place of {q} in URL or body.",
)
@click.option(
    "--record",
    type=NEW_FILE,
    callback=in_a_folder,
    help="Write down what is sent, and when.",
)
@click.option("--replay", type=EXISTING_FILE, help="Send what was written down, when it was.")
@click.option(
    "--in-flight",
    type=click.IntRange(1, workload.IN_FLIGHT_MAX),
    default=1000,
    show_default=True,
    help="Requests under way at most; more are not sent, and counted.",
)
@click.pass_context
def load_command(
    context: click.Context,
    url: SplitResult,
    *,
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    rate: float,
    ramp: Phase | None,
    seconds: float,
    arrivals: str,
    body: str | None,
    queries: list[str],
    record: Path | None,
    replay: Path | None,
    in_flight: int,
) -> None:
    """Drive any HTTP address, and measure how long its users wait."""
    if replay is not None:
        _refuse_beside_replay(context)
        lines = _replayed(replay)
        words = f"{len(lines)} requests as in {replay}"
    else:
        phases = _phases(rate, ramp, QUICK_S if quick else seconds)
        _check_placeholder(url, body, queries)
        gaps = {
            "poisson": lambda: workload.independent(random.Random(f"{seed}:arrivals")),
            "constant": workload.equal,
        }[arrivals]()
        lines = load.planned(workload.scheduled(phases, gaps), _path(url), body, queries)
        words = f"{arrivals} arrivals, {', then '.join(map(_said, phases))}"
    if not lines:
        raise click.BadParameter("no request in so short a time", param_hint="--seconds")
    if record is not None:
        script.write(record, lines)
    _refuse_silence(url)
    result = realtime.run(load.run(load.Plan(f"{url.scheme}://{url.netloc}", lines, in_flight)))
    conditions = Conditions(load=words)
    publish(
        "load",
        seed,
        json_path,
        result,
        load.show,
        conditions=conditions,
        draw=load.draw,
        plot_path=plot_path,
    )


def _phases(rate_per_s: float, ramp: Phase | None, lasts_s: float) -> list[Phase]:
    """The ramp, then the rate for the rest of the time."""
    rest_s = lasts_s - (ramp.lasts_s if ramp else 0.0)
    if ramp and rest_s < 0:
        raise click.BadParameter(
            f"a ramp of {ramp.lasts_s:g} s does not fit into --seconds {lasts_s:g}",
            param_hint="--ramp",
        )
    phases = [ramp] if ramp else []
    phases += [Phase(rate_per_s, rate_per_s, rest_s)] if rest_s else []
    if sum(phase.requests for phase in phases) > REQUESTS_MAX:
        raise click.BadParameter(f"more than {REQUESTS_MAX:,} requests", param_hint="--seconds")
    return phases


def _said(phase: Phase) -> str:
    if phase.from_per_s == phase.to_per_s:
        return f"{phase.from_per_s:g}/s for {phase.lasts_s:g} s"
    return f"from {phase.from_per_s:g}/s to {phase.to_per_s:g}/s in {phase.lasts_s:g} s"


def _path(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _check_placeholder(url: SplitResult, body: str | None, queries: list[str]) -> None:
    there = load.QUERY in _path(url) or load.QUERY in (body or "")
    if queries and not there:
        raise click.BadParameter(
            f"neither URL nor --body has {load.QUERY} in it to put them", param_hint="--queries"
        )
    if there and not queries:
        raise click.BadParameter(
            f"{load.QUERY} in URL or --body stands for the lines of a file", param_hint="--queries"
        )


def _refuse_beside_replay(context: click.Context) -> None:
    """What a script decides cannot be asked for beside it."""
    for name in ("rate", "ramp", "seconds", "arrivals", "body", "queries"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                f"what is replayed decides that: leave --{name} out", param_hint="--replay"
            )


def _replayed(path: Path) -> list[script.Line]:
    try:
        return script.read(path)
    except script.ScriptError as error:
        raise click.BadParameter(str(error), param_hint="--replay") from error


def _refuse_silence(url: SplitResult) -> None:
    """Refuse an address at which nobody listens, before a minute of errors is measured."""
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    try:
        socket.create_connection((url.hostname or "", port), CONNECT_S_MAX).close()
    except OSError as error:
        why = (error.strerror or "no connection in time").lower()
        raise Refused(
            f"nobody answers at {url.netloc} ({why}): start what is to be measured, or name "
            "another URL"
        ) from error


COMMANDS = (load_command,)
"""In the order of the help."""
