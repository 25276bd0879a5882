"""Every experiment there is, one after the other, into one page.

What there is, the command line knows: an experiment that is added to it is run without a word
here. Words here say how much of one is enough: the options of a run, of which an experiment may
have several, and those of a run that is to be over soon. Each runs as a person would run it, in
a process of its own; its picture is drawn if it has one. One that fails is named on the page,
and the others still run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from bench import report

TOOLS: Final = frozenset({"all", "load"})
"""Commands that are no experiments."""

RUN_S_MAX: Final = 3600.0
"""An experiment that takes longer than an hour has come to no end."""

SHOWN_CHARS: Final = 1500
"""Of what a broken experiment said at last."""


class Run(NamedTuple):
    """``title`` names it on the page and its picture; ``quick`` are its options where time is
    short, so few that it is over in a minute and so many that its figures still mean something.
    """

    title: str
    options: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None


SIMULATED: Final = ("--simulate",)
SOME_LOADS: Final = tuple(part for load in ("0.2", "0.5", "0.8", "1") for part in ("--load", load))

RUNS: Final[Mapping[str, Sequence[Run]]] = {
    "fit": [Run("fit", (), ("--queries", "4000"))],
    "table": [
        Run("table", (), ("--seconds", "60")),
        Run("table-simulated", SIMULATED, (*SIMULATED, "--queries", "1000")),
        Run("table-real", ("--real", "--seconds", "40"), ("--real", "--seconds", "10")),
    ],
    "bigtable": [
        Run("bigtable", (), ("--seconds", "20")),
        Run("bigtable-simulated", SIMULATED, (*SIMULATED, "--queries", "1500")),
    ],
    "tied": [
        Run("tied", (), ("--reads", "200", "--load", "0.5")),
        Run("tied-simulated", SIMULATED, (*SIMULATED, "--reads", "1500", "--load", "0.5")),
    ],
    "mirrored-reads": [
        Run("mirrored-reads", (), ("--reads", "200")),
        Run("mirrored-reads-simulated", SIMULATED, (*SIMULATED, "--reads", "5000")),
    ],
    "together": [Run("together", (), ("--scale", "0.15")), Run("together-simulated", SIMULATED)],
    "pressure": [Run("pressure", (), ("--seconds", "4"))],
    "leg-cost": [Run("leg-cost", (), ("--quick",))],
    "fan-out": [Run("fan-out", (), ("--simulate", "--quick"))],
    "search": [
        Run("search", (), ("--quick",)),
        Run(
            "search-counted",
            ("--documents", "200000", "--facets", "--rate", "30"),
            ("--documents", "5000", "--facets", "--quick"),
        ),
    ],
    "watching": [Run("watching", (), ("--rounds", "4"))],
    "blind-spot": [Run("blind-spot", (), ("--seconds", "4"))],
    "capacity": [
        Run("capacity", (), (*SOME_LOADS, "--seconds", "1")),
        Run("capacity-simulated", SIMULATED, (*SIMULATED, *SOME_LOADS, "--seconds", "2")),
    ],
    "agree": [Run("agree", (), ("--queries", "100"))],
    "chaos": [Run("chaos", ("--rate", "100"), ("--quick",))],
    "simulate": [Run("simulate", (), ("--queries", "1000"))],
    "policies": [Run("policies", ("--queries", "4000"), ("--queries", "300", "--leaves", "40"))],
    "shadow": [Run("shadow", (), ("--queries", "500"))],
    "swarm": [Run("swarm", (), ("--seeds", "0..49"))],
    "overload": [Run("overload", (), ("--leaves", "5"))],
}
"""By command. One that is not here runs once, with its defaults or, where time is short, tiny."""

Command = Sequence[str]
Perform = Callable[[Command], "Outcome"]


class Outcome(NamedTuple):
    """How a run ended and what it printed."""

    code: int
    said: str
    took_s: float


class Page(NamedTuple):
    """The page as text, and the runs that failed."""

    text: str
    broken: tuple[str, ...]


def planned(
    commands: Mapping[str, click.Command], runs: Mapping[str, Sequence[Run]] = RUNS
) -> Iterator[tuple[click.Command, Run]]:
    """Yield every run of every experiment: those that say how much of them first."""
    names = [*(name for name in runs if name in commands), *(n for n in commands if n not in runs)]
    for name in names:
        if name not in TOOLS:
            for one in runs.get(name, (Run(name, (), ("--quick",)),)):
                yield commands[name], one


def command_of(
    command: click.Command, one: Run, pictures: Path, *, quick: bool, seed: int
) -> list[str]:
    """The command line of a run, after ``python -m bench``."""
    known = {parameter.name for parameter in command.params}
    options = one.quick if quick and one.quick is not None else one.options
    line = [str(command.name), *options]
    if "seed" in known:
        line += ["--seed", str(seed)]
    if "plot_path" in known:
        line += ["--plot", str(pictures / f"{one.title}.png")]
    return line


def perform(line: Command) -> Outcome:
    """Run one experiment as a person would."""
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as said:
        try:
            code = subprocess.run(
                [sys.executable, "-m", "bench", *line],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=RUN_S_MAX,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
        said.seek(0)
        text = said.read().decode(errors="replace")
    return Outcome(code, text, time.monotonic() - began_s)


def written(
    commands: Mapping[str, click.Command],
    out: Path,
    head: report.Header,
    *,
    quick: bool,
    told: Callable[[str], None],
    run: Perform = perform,
) -> Page:
    """Run everything and write the page to ``out``, pictures in a folder beside it."""
    pictures = out.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    began_s = time.monotonic()
    parts, broken = [], []
    for command, one in planned(commands):
        told(one.title)
        line = command_of(command, one, pictures, quick=quick, seed=head.seed)
        outcome = run(line)
        if outcome.code:
            broken.append(one.title)
        drawn = pictures / f"{one.title}.png"
        picture = drawn if "--plot" in line and not outcome.code and drawn.exists() else None
        parts.append(section(command, one, line, outcome, picture, out.parent))
    minutes = (time.monotonic() - began_s) / 60.0
    page = Page("\n".join([*_head(head, minutes, broken, quick=quick), *parts]), tuple(broken))
    out.write_text(page.text, encoding="utf-8")
    return page


def _head(
    head: report.Header, minutes: float, broken: Sequence[str], *, quick: bool
) -> Iterator[str]:
    yield "# Results"
    yield ""
    yield (
        f"Generated by `{head.command}` at commit `{head.commit}` in {minutes:.1f} minutes on "
        f"{head.machine}. Nothing on this page is typed by hand; run the command again to write it "
        "anew."
    )
    if quick:
        yield ""
        yield (
            "A quick run: fewer queries and seconds than each experiment takes by itself, so that "
            "intervals are wide."
        )
    if broken:
        yield ""
        yield f"**Broken: {', '.join(broken)}.** What they said at last stands in their places."
    yield ""


def section(
    command: click.Command,
    one: Run,
    line: Command,
    outcome: Outcome,
    picture: Path | None,
    beside: Path,
) -> str:
    """What the page says of one run."""
    shown = [f"pictures/{Path(part).name}" if part.endswith(".png") else part for part in line]
    lines = [f"## {one.title}", "", (command.help or "").strip(), ""]
    lines += [f"`python -m bench {' '.join(shown)}`, {outcome.took_s:.0f} s", ""]
    if outcome.code:
        lines += [f"**Broken, exit code {outcome.code}.**", ""]
    said = outcome.said[-SHOWN_CHARS:] if outcome.code else outcome.said
    lines += ["```text", _plain(said).strip("\n").replace("```", "'''"), "```", ""]
    if picture is not None:
        lines += [f"![{one.title}]({picture.relative_to(beside)})", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A terminal's text without colours, trailing blanks and absolute paths of pictures."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\S*/pictures/", "pictures/", text)
    return "\n".join(row.rstrip() for row in text.splitlines())
