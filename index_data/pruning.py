"""Removing generations that nobody needs any more.

A leaf that starts opens the newest ones, two unless told otherwise, and a root may be on the
second while the newest comes up. What is older is needed by nobody who starts; a leaf that
still serves it has its files open, and keeps them until it lets go of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from index_data.build import begin
from index_data.manifest import IndexDataError, generations, latest_generation

KEEP_MIN: Final = 2
"""So many a leaf opens when it starts."""


class PruneRefused(IndexDataError):
    """Generations cannot be removed as asked; all are there."""


def prune(directory: Path, keep: int) -> list[str]:
    """Remove all generations of an index directory but the newest ``keep``; return those that
    are gone, oldest first.

    One that is half removed is a generation no more, and is removed by the next build or prune.
    Raises PruneRefused, and what ``latest_generation`` raises.
    """
    if keep < KEEP_MIN:
        raise PruneRefused(
            f"--keep must be {KEEP_MIN} or more, not {keep}: "
            "a leaf that starts opens the two newest generations."
        )
    latest_generation(directory)
    away = begin(directory)
    try:
        old = generations(directory)[:-keep]
        for name in old:
            (directory / name).rename(away / name)
    finally:
        shutil.rmtree(away, ignore_errors=True)
    return old
