"""A root and four leaves as real processes."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from bench import corpus
from bench.client import Answer, connected
from bench.commands.live import draw
from bench.experiments import agree, chaos
from bench.fleet import Fleet
from bench.queries import begun, every_kind
from bench.reference import Reference

pytestmark = pytest.mark.live

SEED = 20260707


def search(fleet: Fleet, q: str) -> Answer:
    """Ask the root."""

    async def ask() -> Answer:
        async with connected(fleet.root_url) as client:
            return await client.search(q)

    return asyncio.run(ask())


def topology(fleet: Fleet) -> Any:
    """The root's view of the fleet."""

    async def ask() -> Any:
        async with connected(fleet.root_url) as client:
            return await client.get_json("/topology")

    return asyncio.run(ask())


def test_every_shard_has_two_replicas(fleet: Fleet) -> None:
    """The root finds sixteen shards, each on two of the four leaves."""
    found = topology(fleet)
    assert len(found["leaves"]) == 4
    assert [len(shard["leaves"]) for shard in found["shards"]] == [2] * 16


def test_a_query_finds_what_matches(fleet: Fleet, index: Path) -> None:
    """An answer is complete, and the one of a single index."""
    queries = asyncio.run(draw(fleet, index, SEED, 1))
    answer = search(fleet, queries[0])
    assert agree.difference(answer, Reference(index).search(queries[0])) == ""


def test_a_query_that_matches_nothing_is_an_answer(fleet: Fleet) -> None:
    """No hits, total 0, complete."""
    assert search(fleet, "zzzzzzzz") == Answer("complete", (), 0)


def test_pages_are_those_of_one_big_index(fleet: Fleet, index: Path) -> None:
    """Of every kind of query: same ids, same order, same scores, same total."""
    reference, rng = Reference(index), random.Random(SEED)
    words = corpus.words_of(reference.manifest, reference.documents())
    queries, texts = every_kind(words, rng, 200), begun(words, rng, 20)
    result = asyncio.run(agree.run(fleet, queries, texts, reference))
    assert result.good, result.differences


def test_nobody_notices_a_killed_and_a_stopped_leaf(fleet: Fleet, index: Path) -> None:
    """Under load one leaf dies and another freezes: every answer is whole and right, both
    come back, and every attempt that the root sent is accounted for.
    """
    queries = asyncio.run(draw(fleet, index, SEED, 50))
    plan = chaos.Plan(rate_per_s=60, duration_s=6, kill_at_s=2, stop_at_s=4)
    result = asyncio.run(chaos.run(fleet, queries, plan, SEED))
    assert result.unharmed, (result.phases, result.wrong, result.said)
    assert result.account.balanced, result.account
    moved = result.account.fates.get("failed", 0) + result.account.fates.get("cancelled", 0)
    assert moved > 0, "nothing was in flight when the leaves went"
