"""Tied requests between real processes: the leaf that begins has the other drop its copy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Final

import pytest

from bench.client import Client, connected
from bench.fleet import Fleet, Shape, running
from bench.metrics import counter
from bench.workload import poisson

pytestmark = pytest.mark.live

READS: Final = 300
RATE_PER_S: Final = 60.0
"""Two disks of 16 ms a read are busy half of the time."""

MEASURED_FIRST: Final = 110
"""Reads after which there is a history, without which nothing is hedged or tied."""


@pytest.fixture(name="disks")
def disks_fixture() -> Iterator[Fleet]:
    """One shard on two leaves that read one thing at a time."""
    options = ("--workers", "1", "--interference", "disk-queue")
    shape = Shape(
        canned=1, leaves=2, replicas=2, leaf_options=options, root_options=("--hedge", "tied")
    )
    with running(shape) as fleet:
        yield fleet


async def counted(client: Client, name: str, label: str = "") -> dict[str, float]:
    """A counter of the root's."""
    return counter(await client.get_text("/metrics"), name, label)


async def read_on_schedule(client: Client) -> list[str]:
    """What became of reads that keep the disks busy."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    async with asyncio.TaskGroup() as group:
        reads = []
        for offset_s in poisson(RATE_PER_S, READS / RATE_PER_S, Random("arrivals")).send_at_s:
            await asyncio.sleep(start_s + offset_s - loop.time())
            reads.append(group.create_task(client.search("a")))
    return [read.result().fate for read in reads]


def test_second_copies_are_dropped(disks: Fleet) -> None:
    """Every read is answered, far more are dropped than done twice, and every attempt is accounted
    for. (How few are done twice depends on who else has the machine.)
    """

    async def main() -> None:
        async with connected(disks.root_url) as client:
            for _ in range(MEASURED_FIRST):
                await client.search("a")
            assert set(await read_on_schedule(client)) == {"complete"}
            await asyncio.sleep(0.5)
            sent = await counted(client, "hedgerow_attempts_sent", "kind")
            ended = await counted(client, "hedgerow_attempts_ended", "fate")
            (dropped,) = (await counted(client, "hedgerow_tied_dropped")).values()
            (duplicates,) = (await counted(client, "hedgerow_tied_duplicates")).values()
        assert sent["tied"] > 0.5 * READS
        assert dropped > 0.5 * READS
        assert duplicates < 0.5 * dropped
        assert sum(sent.values()) == sum(ended.values())

    asyncio.run(main())
