"""What the commands of all experiments share: options, refusals, and how a result is published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.console import Console

from bench import report

Command = TypeVar("Command", bound=Callable[..., None])

NEW_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


class Refused(click.ClickException):
    """The experiment cannot run as asked; one sentence."""

    exit_code = 2


def in_a_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file in a folder that does not exist: after hours of work it would be too late."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"the folder {path.parent} does not exist")
    return path


def json_option(command: Command) -> Command:
    """Where the result goes besides the terminal."""
    return click.option(
        "--json",
        "json_path",
        type=NEW_FILE,
        callback=in_a_folder,
        help="Write the result there as well.",
    )(command)


def common_options(command: Command) -> Command:
    """What every experiment takes."""
    for option in (
        json_option,
        click.option(
            "--quick", is_flag=True, help="A tiny run: shows that it works, not how well."
        ),
        click.option(
            "--seed", type=int, default=1, show_default=True, help="Decides the workload."
        ),
    ):
        command = option(command)
    return command


def publish(
    experiment: str,
    seed: int,
    json_path: Path | None,
    result: Any,
    show: Callable[[Any, Console], None],
    speed: str = "",
) -> None:
    """Print header and tables, and write the JSON if asked to."""
    console = report.wide_console()
    head = report.header(experiment, seed, speed)
    report.show_header(head, console)
    show(result, console)
    if json_path is not None:
        report.write_json(json_path, head, msgspec.to_builtins(result))
