"""Which part of all that was found is the page, and how its finalists are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leaf.protocol import Hits
from root.facets import counted
from root.merge import FINALISTS_MAX, Finalists, finalists
from root.ordering import sorted_page
from root.pursuit import Pursuit


class Window(NamedTuple):
    """``k`` hits after ``offset``. Scores of phase one are within ``slack`` of the final ones;
    at most ``most`` candidates get theirs.
    """

    offset: int
    k: int
    slack: float = 0.0
    most: int = FINALISTS_MAX


def page_of(pursuit: Pursuit, replies: Sequence[tuple[int, Hits]], window: Window) -> Finalists:
    """Return the finalists, and leave what was counted with the pursuit. Raises Unreadable."""
    selection = pursuit.selection
    if selection is not None:
        pursuit.facets = counted(replies, selection.facets)
        if selection.sort:
            return sorted_page(replies, selection.sort, window.offset, window.k)
    return finalists(replies, *window)
