"""What the commands of all experiments share: options, refusals, and how a result is published."""

from __future__ import annotations

import importlib.util
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


def _can_draw(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a picture that nobody could draw, before anything is measured."""
    if path is None:
        return None
    if path.suffix != ".png":
        raise click.BadParameter(f"{path} is no name of a PNG file")
    if importlib.util.find_spec("matplotlib") is None:
        raise click.BadParameter("pictures need matplotlib: pip install 'hedgerow[bench]'")
    return in_a_folder(context, parameter, path)


def plot_option(command: Command) -> Command:
    """Where the picture goes, of an experiment that has one."""
    return click.option(
        "--plot",
        "plot_path",
        type=NEW_FILE,
        callback=_can_draw,
        help="Draw the result into this PNG file.",
    )(command)


Draw = Callable[[Any, Path, str], None]
"""Draws a result into a PNG file, with a caption."""


def publish(
    experiment: str,
    seed: int,
    json_path: Path | None,
    result: Any,
    show: Callable[[Any, Console], None],
    speed: str = "",
    *,
    conditions: report.Conditions = report.UNSAID,
    draw: Draw | None = None,
    plot_path: Path | None = None,
) -> None:
    """Print header and tables, and write the JSON and draw the picture if asked to."""
    console = report.wide_console()
    head = report.header(experiment, seed, speed, conditions)
    report.show_header(head, console)
    show(result, console)
    if json_path is not None:
        report.write_json(json_path, head, msgspec.to_builtins(result))
    if draw is not None and plot_path is not None:
        draw(result, plot_path, report.caption(head))
