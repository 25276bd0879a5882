"""The command that runs all the others."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bench import report
from bench.experiments import everything
from bench.options import NEW_FILE, in_a_folder

RESULTS = Path(__file__).parent.parent.parent / "docs" / "results.md"


@click.command("all")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides the workloads.")
@click.option("--quick", is_flag=True, help="Less of everything: ten minutes on two cores.")
@click.option(
    "--out",
    type=NEW_FILE,
    callback=in_a_folder,
    default=RESULTS,
    show_default="docs/results.md",
    help="The page; pictures go into a folder beside it.",
)
@click.pass_context
def all_command(context: click.Context, seed: int, quick: bool, out: Path) -> None:
    """Every experiment, into one page with its pictures; exit code 1 when one is broken."""
    group = context.find_root().command
    assert isinstance(group, click.Group)  # noqa: S101 - it is a subcommand
    page = everything.written(
        group.commands,
        out,
        report.header("all", seed),
        quick=quick,
        told=lambda title: click.echo(title, err=True),
    )
    click.echo(f"written: {out}")
    if page.broken:
        click.echo(f"broken: {', '.join(page.broken)}", err=True)
        sys.exit(1)


COMMANDS = (all_command,)
"""The one."""
