"""A leaf or a root that is killed in the middle of everything: the other side is soon clean."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.client import connected
from bench.fleet import POLL_S, Fleet, Shape, running

pytestmark = pytest.mark.live

CLIENTS: Final = 20
SHARDS: Final = 8

CLEAN_S: Final = 1.0
"""What a side that was left may take to let go of everything."""

POLLS_S_MAX: Final = 10.0
"""How long is looked at most, on a machine that others work on as well."""

ESTABLISHED: Final = "01"
"""In the kernel's tables of connections."""


@pytest.fixture(name="queueing")
def queueing_fixture() -> Iterator[Fleet]:
    """Every shard on both leaves, which do one thing at a time: there is always a queue."""
    options = ("--workers", "1", "--interference", "disk-queue")
    with running(Shape(canned=SHARDS, leaves=2, replicas=2, leaf_options=options)) as fleet:
        yield fleet


def gauges(url: str) -> dict[str, float]:
    """Every sample of a process, by name and labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=POLLS_S_MAX) as response:
        text = response.read().decode()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def sockets(pid: int) -> int:
    """How many sockets a process has open."""
    found = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += file.readlink().name.startswith("socket:")
        except FileNotFoundError:
            continue  # closed while we looked
    return found


def established(pid: int, url: str) -> int:
    """How many connections of a process have the port of ``url`` at one of their ends."""
    port = f"{urlsplit(url).port:04X}"
    inodes = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(file.readlink().name.removeprefix("socket:[").rstrip("]"))
        except FileNotFoundError:
            continue
    lines = Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    rows = [line.split() for line in lines]
    return sum(
        row[9] in inodes
        and row[3] == ESTABLISHED
        and port in {row[1].rpartition(":")[2], row[2].rpartition(":")[2]}
        for row in rows
    )


def seconds_until(holds: Callable[[], bool]) -> float:
    """How long it took until something held; far too long if it never did."""
    began_s = time.monotonic()
    while not holds():
        if time.monotonic() - began_s > POLLS_S_MAX:
            return POLLS_S_MAX
        time.sleep(POLL_S)
    return time.monotonic() - began_s


async def keep_asking(url: str, until: asyncio.Event) -> None:
    """So many clients, each asking again as soon as it is answered or has failed."""
    async with connected(url) as client:

        async def one() -> None:
            while not until.is_set():
                await client.search("a")

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(one())


def while_asked(fleet: Fleet, kill: Callable[[], None]) -> None:
    """Kill somebody while every leaf has a queue and frames are on their way."""

    def queue_everywhere() -> bool:
        queued = [gauges(url)["hedgerow_leaf_queue_legs interactive"] for url in fleet.leaf_urls]
        return min(queued) > SHARDS

    async def main() -> None:
        over = asyncio.Event()
        asking = asyncio.create_task(keep_asking(fleet.root_url, over))
        try:
            waited_s = await asyncio.to_thread(seconds_until, queue_everywhere)
            assert waited_s < POLLS_S_MAX
            await asyncio.to_thread(kill)
        finally:
            over.set()
            await asking

    asyncio.run(main())


def test_a_root_is_clean_after_its_leaf_was_killed(queueing: Fleet) -> None:
    """Within a second it has no connection to the leaf and is owed nothing by it; when the
    clients have gone, nothing is in flight and as many sockets are open as before.
    """
    root, (killed, other) = queueing.pids["root"], queueing.leaf_urls
    with_both = sockets(root)
    assert established(root, killed) == 1
    took: list[float] = []

    def let_go() -> bool:
        seen = gauges(queueing.root_url)
        owed = seen[f"hedgerow_root_leaf_outstanding {killed}"]
        linked = seen[f"hedgerow_root_leaf_connected {killed}"]
        return owed == linked == established(root, killed) == 0

    def kill() -> None:
        queueing.kill(0)
        took.append(seconds_until(let_go))

    while_asked(queueing, kill)
    assert took[0] < CLEAN_S

    def at_rest() -> bool:
        seen = gauges(queueing.root_url)
        in_flight = (
            seen["hedgerow_attempts_in_flight"] + seen[f"hedgerow_root_leaf_outstanding {other}"]
        )
        return in_flight == 0 and sockets(root) < with_both

    assert seconds_until(at_rest) < POLLS_S_MAX


def test_a_leaf_is_clean_after_its_root_was_killed(queueing: Fleet) -> None:
    """Within a second no leg of the root waits or is worked on at any leaf, and its connections
    are gone; each leaf then serves whoever comes.
    """
    pids = queueing.pids
    root_free = {name: sockets(pids[name]) - 1 for name in ("leaf0", "leaf1")}
    took: list[float] = []

    def let_go() -> bool:
        for name, url in zip(root_free, queueing.leaf_urls, strict=True):
            seen = gauges(url)
            legs = seen["hedgerow_leaf_queue_legs interactive"]
            legs += seen["hedgerow_leaf_running_legs"] + seen["hedgerow_leaf_connections"]
            if legs or sockets(pids[name]) > root_free[name]:
                return False
        return True

    def kill() -> None:
        queueing.kill_root()
        took.append(seconds_until(let_go))

    while_asked(queueing, kill)
    assert took[0] < CLEAN_S
    for url in queueing.leaf_urls:
        body = b'{"query": {"type": "all"}}'
        with urllib.request.urlopen(f"{url}/shards/0/search", body, timeout=5) as response:
            assert response.status == 200
        assert gauges(url)["hedgerow_leaf_legs_total search abandoned_queued"] > 0
