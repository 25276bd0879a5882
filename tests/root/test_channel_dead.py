"""Addresses that do not answer: whatever state they are in, no query waits for them.

The root is made to wait for ever for a connection and a greeting: only a query that does not
wait for either is ever answered.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

import root.channel
from bench.simulation.scripted_fleet import BareRoot, card
from root.hedging import Fixed
from tests.sim.loopback import LeafServer, answered, holding, reaching, run, until

SHARDS = 4
ALL = holding(card(SHARDS), range(SHARDS))

Address = Callable[[], AbstractAsyncContextManager[str]]


@pytest.fixture(autouse=True)
def endless_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for ever for a connection and a greeting; try again at once."""
    monkeypatch.setattr(root.channel, "CONNECT_TIMEOUT_S", math.inf)
    monkeypatch.setattr(root.channel, "HELLO_TIMEOUT_S", math.inf)
    monkeypatch.setattr(root.channel, "RETRY_S", (0.005,))


@asynccontextmanager
async def nobody_listens() -> AsyncIterator[str]:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def nobody_accepts() -> AsyncIterator[str]:
    """A machine that is too far gone to accept: the backlog is full, so connecting hangs."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        place = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(place)
        yield f"http://127.0.0.1:{place[1]}"
        for one in waiting:
            one.close()


@asynccontextmanager
async def nobody_speaks() -> AsyncIterator[str]:
    """A process that accepts and never says a word, not even that it is no leaf."""
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for writer in accepted:
        writer.close()


@asynccontextmanager
async def nobody_greets() -> AsyncIterator[str]:
    """A leaf that takes the root's hello and never says its own."""
    async with LeafServer(ALL) as leaf:
        leaf.greeting = None
        yield leaf.url


@pytest.mark.parametrize(
    ("dead", "problem"),
    [
        (nobody_listens, "cannot be reached"),
        (nobody_accepts, "not connected yet"),
        (nobody_speaks, "not connected yet"),
        (nobody_greets, "not connected yet"),
    ],
)
def test_a_dead_address_costs_nothing(dead: Address, problem: str) -> None:
    """Beside one that was never reached, queries are answered by the others, with no attempt
    more, and as soon as a fleet without it would.
    """

    async def main() -> None:
        async with LeafServer(ALL) as well, dead() as url, reaching(url, well.url) as fleet:
            await until(lambda: fleet.channels[well.url].leaf.connected)
            a_root = BareRoot(fleet, Fixed(0.0), timeout_s=30.0)
            for _ in range(20):
                seen = await answered(well, a_root)
                assert seen.complete
                assert {attempt.leaf.name for attempt in seen.gather.attempts} == {well.url}
                assert seen.gather.tally.sent == SHARDS
            assert problem in fleet.channels[url].problem
            assert not fleet.channels[url].leaf.connected

    run(main)


def test_a_leaf_that_died_and_hangs_costs_nothing() -> None:
    """A replica that was there, is lost, and now takes connections and greets nobody: it is
    still known to hold its shards, and no query is sent to it.
    """

    async def main() -> None:
        async with (
            LeafServer(ALL) as well,
            LeafServer(ALL) as dying,
            reaching(dying.url, well.url) as fleet,
        ):
            lost = fleet.channels[dying.url]
            await until(lambda: all(c.leaf.connected for c in fleet.channels.values()))
            dying.greeting = None
            await dying.close()
            await dying.connection(2)
            view = fleet.view()
            assert view is not None
            assert all(lost.leaf in replicas for replicas in view.replicas)
            a_root = BareRoot(fleet, Fixed(0.0), timeout_s=30.0)
            for _ in range(20):
                assert (await answered(well, a_root)).complete
            assert (lost.leaf.connected, lost.leaf.outstanding) == (False, 0)
            assert a_root.ledger.sent["primary"] == 20 * SHARDS
            assert a_root.accounted

    run(main)
