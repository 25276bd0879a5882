"""A fleet whose shards move, and one that is restarted around a new build: nobody notices."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from bench.client import Answer, connected
from bench.commands.live import draw
from bench.fleet import POLL_S, Fleet, Shape, all_connected, running
from index_data.__main__ import main
from index_data.manifest import generations
from index_data.placement_file import PlacementFile, write_placement

pytestmark = pytest.mark.live

RATE_PER_S: Final = 100.0
FOLLOWED_S: Final = 20.0
"""Leaves follow within two seconds; after this they never will."""

HOT: Final = 3


@pytest.fixture(name="own")
def own_fixture(index: Path, tmp_path: Path) -> Iterator[tuple[Fleet, Path]]:
    """A fleet on an index of its own, which may be changed."""
    folder = Path(shutil.copytree(index, tmp_path / "index"))
    patient = ("--timeout-ms", "30000")  # on a busy machine too a leaf has its time to start
    with running(Shape(folder, root_options=patient)) as fleet:
        yield fleet, folder


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as response:
        return json.load(response)


def holders(fleet: Fleet, shard: int) -> list[str]:
    """The leaves that the root asks for a shard."""
    return sorted(get(f"{fleet.root_url}/topology")["shards"][shard]["leaves"])


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + FOLLOWED_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(POLL_S)


def heat(fleet: Fleet) -> None:
    """Ask for one shard alone, of the leaves that have it: more than anybody asks of the others."""
    body = json.dumps({"query": {"type": "all"}, "k": 1000}).encode()
    for ordinal, url in enumerate(fleet.leaf_urls):
        if f"leaf{ordinal}" in holders(fleet, HOT):
            for _ in range(50):
                request = urllib.request.Request(f"{url}/shards/{HOT}/search", body)
                urllib.request.urlopen(request, timeout=5).close()


def command(*arguments: object) -> str:
    """Run the index's command; return what it says."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


async def asked_meanwhile(
    fleet: Fleet, queries: list[str], change: Callable[[], None], least: int = 200
) -> list[str]:
    """Ask all the time until a change is made, and so many times at least; return what was
    wrong with answers.
    """
    async with connected(fleet.root_url) as client:
        expected: dict[str, Answer] = {q: await client.search(q) for q in queries}
        changing = asyncio.create_task(asyncio.to_thread(change))
        asked: list[tuple[str, asyncio.Task[Answer]]] = []
        while not changing.done() or len(asked) < least:
            q = queries[len(asked) % len(queries)]
            asked.append((q, asyncio.create_task(client.search(q))))
            await asyncio.sleep(1 / RATE_PER_S)
        await changing
        answers = [(q, await answer) for q, answer in asked]
    return [
        f"{q}: {answer.fate} {answer.detail}"
        for q, answer in answers
        if answer.fate != "complete" or answer.ids != expected[q].ids
    ]


def test_a_measured_load_becomes_a_placement_that_leaves_follow(
    own: tuple[Fleet, Path], tmp_path: Path
) -> None:
    """Measure, propose, write: the hot shard is soon on more leaves, another moves to where it
    was put, and every answer meanwhile is whole and right.
    """
    fleet, index = own
    queries = asyncio.run(draw(fleet, index, 1, 20))
    generation = generations(index)[-1]
    load = tmp_path / "load.json"
    moved = (0, 2)

    with ThreadPoolExecutor(1) as pool:
        measured = pool.submit(command, "load", *fleet.leaf_urls, "--seconds", 2, "--out", load)
        while not measured.done():
            heat(fleet)
        measured.result()

    def change() -> None:
        said = command("rebalance", index, "--load", load, "--write")
        assert f"shard {HOT}: " in said, said
        until(lambda: len(holders(fleet, HOT)) > 2)
        write_placement(
            index / generation, PlacementFile(1, generation, 4, 2, {HOT: moved, 5: (3, 1, 0)})
        )
        until(lambda: holders(fleet, HOT) == ["leaf0", "leaf2"])
        until(lambda: holders(fleet, 5) == ["leaf0", "leaf1", "leaf3"])

    wrong = asyncio.run(asked_meanwhile(fleet, queries, change))
    assert not wrong, wrong[:5]


@pytest.mark.xfail(
    reason="on a loaded machine now and then a shard is not answered while leaves restart",
    strict=False,
)
def test_nobody_notices_a_rolling_restart_right_after_a_build(own: tuple[Fleet, Path]) -> None:
    """Each leaf is killed and started again in turn, the next as soon as the root has one back,
    while a new generation is picked up: no query fails, and the new one is searched in the end.
    """
    fleet, index = own
    queries = asyncio.run(draw(fleet, index, 1, 20))
    old = generations(index)[-1]

    def change() -> None:
        build_again(index)
        for ordinal in range(4):
            fleet.kill(ordinal)
            fleet.start(ordinal)
            fleet.wait_leaf(ordinal)
            until(lambda: all_connected(fleet.root_url))
        until(lambda: whole_and_newer_than(old, fleet))

    wrong = asyncio.run(asked_meanwhile(fleet, queries, change))
    assert not wrong, wrong[:5]


def whole_and_newer_than(generation: str, fleet: Fleet) -> bool:
    """Whether the root searches a newer generation, with two leaves connected for each shard."""
    found = get(f"{fleet.root_url}/topology")
    replicas = {len(shard["leaves"]) for shard in found["shards"]}
    return found["generation"] > generation and replicas == {2}


def build_again(index: Path) -> None:
    """Add a generation with the same documents: a copy of the newest by another name."""
    old = generations(index)[-1]
    day, clock, rest = old.split("-")
    new = f"{int(day) + 1}-{clock}-{rest}"
    beside = index / ".building-copy"
    shutil.copytree(index / old, beside)
    manifest = beside / "manifest.json"
    manifest.write_text(manifest.read_text().replace(old, new))
    beside.rename(index / new)
