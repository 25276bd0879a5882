"""Tied legs from end to end: leaves on real sockets that tell each other what they begin."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from websockets.protocol import State

from leaf import peers as peers_module
from leaf.injection import InjectingWorkers
from leaf.interference import Interference, Plan
from leaf.peers import Peers, _Link
from leaf.protocol import PROTOCOL_VERSION
from leaf.pulse import Pulse
from leaf.service import Leaf
from leaf.telemetry import Ledger
from leaf.ties import Waiting
from leaf.wire import Wire
from tests.leaf.channel_scenes import ask, reasons, run

KEY = "5f0c"
PATIENCE_S = 10.0
UNREACHABLE = "http://127.0.0.1:1"


async def until(holds: Any) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 (nothing of the product's announces it)
            await asyncio.sleep(0.001)


def tied(first: int, shards: list[int], url: str) -> dict[str, Any]:
    """An ask whose legs all have their twins on the leaf at this address."""
    tie = {"key": KEY, "peers": [url], "twins": [0] * len(shards)}
    return ask(first, shards, tie=tie)


@asynccontextmanager
async def listening(stage: Any, port: int = 0) -> AsyncIterator[str]:
    """The address at which a stage's leaf takes connections."""
    loop = asyncio.get_running_loop()
    wire = partial(Wire, stage.leaf, config=None, server_state=stage.server_state, app_state={})
    server = await loop.create_server(wire, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in list(stage.server_state.connections):
            connection.shutdown()
        await until(lambda: not stage.server_state.connections)


@asynccontextmanager
async def telling(leaf: Leaf) -> AsyncIterator[Peers]:
    """The peers of a leaf, which hear what its workers begin."""
    peers = Peers(leaf.name, leaf.ledger)
    leaf.workers.tell(peers.began)
    try:
        yield peers
    finally:
        await peers.close()


@asynccontextmanager
async def two_leaves(staged: Any) -> AsyncIterator[tuple[Any, Any, str, str]]:
    """Two stages of one worker each, that hear each other, and their addresses."""
    async with (
        staged(workers=1) as one,
        staged(workers=1) as two,
        listening(one) as one_url,
        listening(two) as two_url,
        telling(one.leaf),
        telling(two.leaf),
    ):
        yield one, two, one_url, two_url


@run
async def test_the_leaf_that_begins_has_the_other_drop_its_copy(staged: Any) -> None:
    """What waits there is answered as dropped, without having been worked on; what is not tied,
    and the leaf that has begun, go on.
    """
    async with two_leaves(staged) as (one, two, one_url, two_url):
        root, other_root = await one.greeted(), await two.greeted()
        two.generation.shards[9].gate.clear()
        other_root.says(asks=[ask(0, [9])])
        assert await asyncio.to_thread(two.generation.shards[9].entered.wait, PATIENCE_S)
        other_root.says(asks=[tied(1, [3, 4], one_url), ask(3, [3])])
        root.says(asks=[tied(0, [3], two_url)])
        assert [hits.leg for hits in (await root.hears_legs(1)).hits] == [0]
        heard = await other_root.hears_legs(1)
        assert reasons(heard) == {1: "twin_began"}
        assert heard.refusals[0].service_us == 0
        two.generation.shards[9].gate.set()
        assert {hits.leg for hits in (await other_root.hears_legs(3)).hits} == {0, 2, 3}
        assert two.generation.shards[3].searches == 1
        assert two.leaf.ledger.legs["search", "twin_began"] == 1
        assert (one.leaf.ledger.begun["told"], two.leaf.ledger.begun["heard"]) == (1, 1)


@run
async def test_the_worker_that_begins_says_so_itself(staged: Any) -> None:
    """Once there is a connection the event loop has no part in it: it may be late."""
    told_by: list[str] = []
    say = _Link.say

    def watched(link: _Link, frame: bytes) -> None:
        if b"begun" in frame:
            told_by.append(threading.current_thread().name)
        say(link, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Link, "say", watched)
        await begun_twice(staged)
    assert [name.partition("-")[0] for name in told_by] == ["MainThread", "worker"]


async def begun_twice(staged: Any) -> None:
    """One leaf begins two tied legs, and the other hears of both."""
    async with two_leaves(staged) as (one, two, _, two_url):
        root = await one.greeted()
        for first in range(2):
            root.says(asks=[tied(first, [3], two_url)])
            await root.hears_legs(1)
            await until(lambda: two.leaf.ledger.begun["heard"] == first + 1)  # noqa: B023


@run
async def test_a_peer_that_does_not_read_is_told_no_more(staged: Any) -> None:
    """The worker does not wait for it: what does not fit is not said, and counted."""
    silent = socket.socket()
    with silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        near = socket.create_connection(silent.getsockname())
        near.setblocking(False)
        far, _ = silent.accept()
        with near, far:
            link = _Link("http://127.0.0.1:1", near)
            link._websocket.state = State.OPEN
            async with staged() as stage, telling(stage.leaf) as peers:
                for _ in range(1000):
                    peers._say("http://127.0.0.1:1", link, [(KEY * 16, list(range(5000)))])
                assert stage.leaf.ledger.begun["unsaid"] > 0
                assert stage.leaf.ledger.begun["told"] > 0


@run
async def test_a_copy_that_comes_after_the_notice_is_dropped_on_arrival(staged: Any) -> None:
    """The worker is busy, or it could have been quicker."""
    async with two_leaves(staged) as (one, two, one_url, two_url):
        root, other_root = await one.greeted(), await two.greeted()
        root.says(asks=[tied(0, [3], two_url)])
        await root.hears_legs(1)
        await until(lambda: two.leaf.ledger.begun["heard"] == 1)
        two.generation.shards[9].gate.clear()
        other_root.says(asks=[ask(0, [9])])
        assert await asyncio.to_thread(two.generation.shards[9].entered.wait, PATIENCE_S)
        other_root.says(asks=[tied(1, [3], one_url)])
        assert reasons(await other_root.hears_legs(1)) == {1: "twin_began"}
        two.generation.shards[9].gate.set()
        await other_root.hears_legs(1)


@run
async def test_a_leg_that_has_begun_goes_on(staged: Any) -> None:
    """Both leaves have begun: both answer."""
    async with staged(workers=1) as stage:
        root, peer = await stage.greeted(), await stage.connects()
        peer.says(hello={"protocol": PROTOCOL_VERSION, "root": "leaf1", "peer": True})
        stage.generation.shards[3].gate.clear()
        root.says(asks=[tied(0, [3], UNREACHABLE)])
        assert await asyncio.to_thread(stage.generation.shards[3].entered.wait, PATIENCE_S)
        peer.says(begun=[[KEY, [3]]])
        await until(lambda: stage.leaf.ledger.begun["heard"] == 1)
        stage.generation.shards[3].gate.set()
        assert [hits.leg for hits in (await root.hears_legs(1)).hits] == [0]


@run
async def test_legs_that_meet_trouble_are_tied_as_well(staged: Any) -> None:
    """One that hangs is dropped, and of the others each tells its own twin."""
    rules = [{"kind": "hang", "where": {"shards": [3]}}]
    plan = msgspec.convert({"about": "a test", "rules": rules}, Plan)
    async with (
        staged(workers=1, make=InjectingWorkers) as one,
        staged() as two,
        listening(two) as url,
        telling(one.leaf),
    ):
        one.leaf.workers.interfere(Interference(plan, leaf=0, seed=1, began_s=0.0))
        root, peer = await one.greeted(), await one.connects()
        tie = {"key": KEY, "peers": [url], "twins": [None, 0, 0]}
        root.says(asks=[ask(0, [2, 3, 4], tie=tie)])
        assert {hits.leg for hits in (await root.hears_legs(2)).hits} == {0, 2}
        await until(lambda: two.leaf.ledger.begun["heard"] == 1)
        assert two.leaf.ties.arrived(KEY, [(4, Waiting(1, 0))], two.leaf.clock())
        peer.says(hello={"protocol": PROTOCOL_VERSION, "root": "leaf1", "peer": True})
        peer.says(begun=[[KEY, [3]]])
        assert reasons(await root.hears_legs(1)) == {1: "twin_began"}


@run
async def test_a_peer_is_no_root(staged: Any) -> None:
    """It is told nothing, and not counted as one."""
    async with staged() as stage:
        peer = await stage.connects()
        peer.says(hello={"protocol": PROTOCOL_VERSION, "root": "leaf1", "peer": True})
        assert await peer.is_left_alone()
        assert stage.leaf.connections() == 0


@run
async def test_a_loop_that_is_closed_hears_of_nothing(staged: Any) -> None:
    """The worker that begins a tied leg at the end does it all the same; and peers that were let
    go are not connected to again.
    """

    def closed(_: Any) -> None:
        raise RuntimeError("Event loop is closed")

    async with staged(workers=1) as stage:
        root = await stage.greeted()
        stage.leaf.workers.tell(closed)
        root.says(asks=[tied(0, [3], UNREACHABLE)])
        assert len((await root.hears_legs(1)).hits) == 1
        async with telling(stage.leaf) as peers:
            await peers.close()
            root.says(asks=[tied(1, [3], UNREACHABLE)])
            assert len((await root.hears_legs(1)).hits) == 1
            await until(lambda: stage.leaf.ledger.begun["unsaid"] == 1)
            assert not peers._peers


@run
async def test_a_peer_that_cannot_be_reached_harms_nobody(staged: Any) -> None:
    """The leg is answered; what could not be said is counted, and the peer left alone."""
    async with staged(workers=1) as stage, telling(stage.leaf) as peers:
        root = await stage.greeted()
        for first in range(3):
            root.says(asks=[tied(first, [3], UNREACHABLE)])
            assert len((await root.hears_legs(1)).hits) == 1
        await until(lambda: peers._peers)
        assert len(peers._peers) == 1


def test_peers_and_what_waits_for_them_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limits notices are not said, but counted; after a while a peer that could not
    be reached is tried again.
    """
    monkeypatch.setattr(peers_module, "PEERS_MAX", 2)
    monkeypatch.setattr(peers_module, "UNSAID_MAX", 3)
    monkeypatch.setattr(peers_module, "RETRY_S", 0.001)

    async def main() -> None:
        ledger = Ledger(Pulse())
        peers = Peers("leaf0", ledger)
        for port in (1, 2, 3):
            peers._tell(f"http://127.0.0.1:{port}", [(KEY, [0])] * 3)
        assert ledger.begun["unsaid"] == 3
        peers._tell("http://127.0.0.1:1", [(KEY, [0])])
        assert ledger.begun["unsaid"] == 4
        await until(lambda: not peers._peers)
        assert ledger.begun["unsaid"] == 10
        await peers.close()

    asyncio.run(main())


def test_a_peer_that_hung_up_is_found_again(staged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next life is told as well."""
    monkeypatch.setattr(peers_module, "RETRY_S", 0.001)

    async def main() -> None:
        async with staged(workers=1) as one, staged() as two, telling(one.leaf) as peers:
            root = await one.greeted()
            port = 0
            for life in range(2):
                async with listening(two, port) as url:
                    port = int(url.rpartition(":")[2])
                    root.says(asks=[tied(life, [3], url)])
                    await root.hears_legs(1)
                    await until(lambda: two.leaf.ledger.begun["heard"] == life + 1)  # noqa: B023
                await until(lambda: not peers._peers)

    asyncio.run(main())


@pytest.mark.parametrize(
    "tie",
    [
        {"key": "", "peers": ["http://a:1"], "twins": [0]},
        {"key": "k" * 65, "peers": ["http://a:1"], "twins": [0]},
        {"key": "k", "peers": ["http://a:1"], "twins": [1]},
        {"key": "k", "peers": ["http://a:1"], "twins": [-1]},
        {"key": "k", "peers": ["http://a:1"], "twins": [0, 0]},
        {"key": "k", "peers": ["ftp://a:1"], "twins": [0]},
        {"key": "k", "peers": ["http://a:1/path"], "twins": [0]},
        {"key": "k", "peers": ["http://a:1"] * 2001, "twins": [0]},
    ],
)
def test_a_tie_that_makes_no_sense_ends_the_connection(staged: Any, tie: dict[str, Any]) -> None:
    """As any frame that breaks the contract."""

    async def main() -> None:
        async with staged() as stage:
            root = await stage.greeted()
            root.says(asks=[ask(0, [3], tie=tie)])
            assert "malformed" in ((await root.hears()).refused or "")

    asyncio.run(main())
