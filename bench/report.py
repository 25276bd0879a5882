"""What a benchmark prints: a header that lets anyone repeat it, tables, and JSON on request."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson
from rich.console import Console
from rich.table import Table

from bench.recorder import LAG_MS_MAX, Summary

WIDTH_MIN: Final = 110
"""Characters: the widest table of an experiment."""


class Conditions(msgspec.Struct, frozen=True):
    """Under what an experiment ran, in words: what was asked of the system, which trouble was
    made on purpose, and what was none of that.
    """

    load: str = ""
    injected: str = ""
    real: str = ""


UNSAID: Final = Conditions()
"""Of an experiment whose name and options say it all."""


class Header(msgspec.Struct, frozen=True):
    """How a result came about."""

    experiment: str
    seed: int
    command: str
    machine: str
    commit: str
    speed: str = ""
    """How fast it ran, where a run takes as long as it takes."""
    load: str = ""
    injected: str = ""
    real: str = ""
    """As in ``Conditions``."""


def wide_console() -> Console:
    """A console on which no table is cut, and no ``name:file`` of a query becomes a picture."""
    console = Console(emoji=False)
    console.width = max(console.width, WIDTH_MIN)
    return console


def header(experiment: str, seed: int, speed: str = "", conditions: Conditions = UNSAID) -> Header:
    """Describe this run: command line, machine, the commit of the working tree, and what for."""
    words = msgspec.structs.asdict(conditions)
    return Header(experiment, seed, _command(), _machine(), _commit(), speed, **words)


def caption(head: Header) -> str:
    """What a picture says of the run it is from, a fact a line."""
    lines = [f"{head.command}   ({head.commit}, {head.machine})"]
    lines += [
        f"{name}: {text}"
        for name, text in (("load", head.load), ("injected", head.injected), ("real", head.real))
        if text
    ]
    return "\n".join(lines)


def show_header(head: Header, console: Console) -> None:
    """Print the header, a fact a line."""
    for name, value in _facts(head).items():
        console.print(f"[bold]{name:<10}[/bold] {value}", highlight=False, soft_wrap=True)


def _facts(head: Header) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(head).items() if value != ""}


def show_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], console: Console
) -> None:
    """Print a table: the first column names the row, the others are figures."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(figure(value) for value in row))
    console.print(table)


def show_validity(runs: Mapping[str, Summary], console: Console) -> None:
    """Say how late the generator was, and of which runs it makes the figures worthless."""
    latest_ms = max((run.lag_ms_p99 for run in runs.values()), default=0.0)
    show_lateness(latest_ms, [name for name, run in runs.items() if not run.valid], console)


def show_lateness(latest_ms: float, late: Sequence[str], console: Console) -> None:
    """The same, of runs whose lateness is known: the greatest, and the names of those too late."""
    text = f"the generator sent 99 % of requests at most {latest_ms:.2g} ms late"
    if late:
        text += (
            f": INVALID ({', '.join(late)}): past {LAG_MS_MAX:g} ms it measures itself, "
            "so ask for less or give it a quieter machine"
        )
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def figure(value: object) -> str:
    """A value as a table shows it: three significant digits for a measured number."""
    match value:
        case bool() | int() | str():
            return str(value)
        case float() if abs(value) >= 100:
            return f"{value:,.0f}"
        case float():
            return f"{value:.3g}"
        case _:
            return str(value)


def write_json(path: Path, head: Header, result: dict[str, Any]) -> None:
    """Write ``result`` and its header as one JSON object, replacing the file as a whole."""
    body = {"experiment": head.experiment, **result, "header": _facts(head)}
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(
            orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        )
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _command() -> str:
    return " ".join(["python -m bench", *sys.argv[1:]])


def _machine() -> str:
    cores = os.cpu_count()
    python = f"Python {platform.python_version()}"
    return f"{cores} cores, {_processor()}, {platform.system()} {platform.release()}, {python}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _commit() -> str:
    """The commit, with ``+`` when tracked files differ from it; ``unknown`` without git."""
    here = Path(__file__).parent
    try:
        git = ["git", "-C", str(here)]
        commit = subprocess.check_output(
            [*git, "rev-parse", "--short", "HEAD"], stderr=subprocess.DEVNULL, timeout=10
        )
        changed = subprocess.check_output(
            [*git, "status", "--porcelain", "-uno"], stderr=subprocess.DEVNULL, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit.decode().strip() + ("+" if changed.strip() else "")
