"""What tests of a staged leaf have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from leaf.protocol import LeafFrame

WORD: Final = {"query": {"type": "word", "text": "parse"}, "k": 10}


def run(scene: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Make a test of a scene: a coroutine that is handed the maker of stages."""

    def test(staged: Any) -> None:
        asyncio.run(scene(staged))

    test.__doc__ = scene.__doc__
    return test


def ask(first: int, shards: Iterable[int], **members: Any) -> dict[str, Any]:
    """A search of some shards of generation g1, as it stands in a frame."""
    asked = {"kind": "search", "generation": "g1", "body": WORD, "budget_ms": 60_000.0}
    return {**asked, "first": first, "shards": list(shards), **members}


def reasons(frame: LeafFrame) -> dict[int, str]:
    """Why legs were refused."""
    return {refusal.leg: refusal.reason for refusal in frame.refusals}


async def at_work(stage: Any, *shards: int) -> tuple[Any, Any]:
    """A root whose legs for these shards are asked for, the first of them being worked on until
    the gate of its shard, which is returned too, is set.
    """
    blocked = stage.generation.shards[shards[0]]
    blocked.gate.clear()
    root = await stage.greeted()
    root.says(asks=[ask(0, shards)])
    await asyncio.to_thread(blocked.entered.wait)
    return root, blocked
