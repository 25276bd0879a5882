"""A progress bar for those who watch: on stderr, and nothing where that is no terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import Progress

REDRAWS_PER_S: Final = 2
"""Drawing takes about a millisecond of a generator that has to be on time."""


@contextlib.contextmanager
def progress(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a bar while the block runs; call what is yielded with how much more is done."""
    console = Console(stderr=True)
    with Progress(
        console=console,
        transient=True,
        refresh_per_second=REDRAWS_PER_S,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)
