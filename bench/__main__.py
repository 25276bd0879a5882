"""The command ``python -m bench``: one subcommand an experiment."""

from __future__ import annotations

import importlib
import pkgutil

import click

from bench import commands


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure what Hedgerow claims."""


for family in pkgutil.iter_modules(commands.__path__):
    for command in importlib.import_module(f"{commands.__name__}.{family.name}").COMMANDS:
        main.add_command(command)


if __name__ == "__main__":
    main(prog_name="python -m bench")
