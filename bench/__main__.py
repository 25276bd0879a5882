"""The command ``python -m bench``: one subcommand an experiment."""

from __future__ import annotations

import click

from bench.commands import live, loads, simulated


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure what Hedgerow claims."""


for family in (live, loads, simulated):
    for command in family.COMMANDS:
        main.add_command(command)


if __name__ == "__main__":
    main(prog_name="python -m bench")
