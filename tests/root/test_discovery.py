"""The fleet: what the leaves' hellos add up to, as they come and go."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bench.simulation.scripted import takes
from bench.simulation.scripted_fleet import GENERATION, ScriptedFleet, card, dealt
from bench.virtual_time import run
from leaf.protocol import LeafFrame
from root.discovery import Fleet
from root.ranking import UNKNOWN_LATENCY_S, Leaf
from tests.sim.loopback import LeafServer, connected, hello, holding, reaching, until

OLDER, NEWER = "20300101-000000-0000", "20300102-000000-0000"


def test_a_fleet_knows_nothing_before_a_leaf_has_spoken() -> None:
    """No view, no readiness, and no leaf that could be asked."""

    async def body() -> None:
        fleet = Fleet(["http://127.0.0.1:9"], "root")
        assert fleet.view() is None
        assert fleet.uncovered == {}
        assert fleet.lacking == "no leaf that holds anything is connected"
        assert not fleet.ready.is_set()
        assert not any(channel.leaf.connected for channel in fleet.channels.values())

    run(body)


def test_a_fleet_is_ready_once_every_shard_is_held() -> None:
    """Not before; and what is lost later is said, without taking readiness back."""

    async def body() -> None:
        fleet = ScriptedFleet(card(3), dealt(3, leaves=3, replicas=1), takes(0.01))
        assert fleet.ready.is_set()
        assert fleet.uncovered == {}
        fleet.disconnect(1)
        assert fleet.uncovered == {"default": [1]}
        fleet.come_back(1)
        assert fleet.uncovered == {}

    run(body)


def test_a_view_keeps_the_leaves_that_may_come_back() -> None:
    """A lost leaf stays a replica, of whom nothing is asked; what it says next replaces it."""

    async def body() -> None:
        fleet = ScriptedFleet(card(2), [[0, 1], [0, 1]], takes(0.01))
        before = fleet.view()
        assert before is not None
        fleet.disconnect(0)
        after = fleet.view()
        assert after is not None
        assert before.replicas == after.replicas == ((fleet[0].leaf, fleet[1].leaf),) * 2
        assert [leaf.connected for leaf in after.replicas[0]] == [False, True]
        assert after.uncovered == []
        fleet.disconnect(1)
        assert after.uncovered == [0, 1]
        assert fleet.views["default"][GENERATION] == after
        assert "20000101-000000-0000" not in fleet.views["default"]

    run(body)


def test_a_leaf_is_in_the_domain_that_it_names() -> None:
    """One that names none is a domain of its own."""

    async def body() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0], [0]], takes(0.01), domains=["a", "b", ""])
        assert [leaf.leaf.domain for leaf in fleet.leaves] == ["a", "b", "http://leaf-2"]

    run(body)


def test_a_leaf_that_comes_back_with_nothing_is_not_asked_yet() -> None:
    """A leaf that is restarted speaks before it has loaded what it held: who has a view in which
    it is a replica would only be refused there.
    """

    async def main() -> None:
        held = holding(card(1), [0])
        async with LeafServer(held) as server, connected(server) as fleet:
            before = fleet.view()
            assert before is not None
            channel = fleet.channels[server.url]
            server.greeting = LeafFrame(hello=hello())
            await server.close()
            await server.connection(2)
            await until(lambda: channel.hello is not None)
            assert not channel.leaf.connected
            assert channel.described()["problem"] == "holds nothing so far"
            assert before.uncovered == [0]
            await server.send(hello=hello(held))
            await until(lambda: channel.leaf.connected)
            assert channel.described()["problem"] is None
            assert before.uncovered == []

    asyncio.run(main())


def test_a_leaf_that_comes_back_is_taken_for_average() -> None:
    """Its speed is not known any more: it starts with its peers' average, slowly."""

    async def body() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0], [0]], takes(0.01))
        assert [leaf.leaf.latency_s for leaf in fleet.leaves] == [UNKNOWN_LATENCY_S] * 3
        fleet[1].leaf.latency_s, fleet[2].leaf.latency_s = 0.010, 0.030
        fleet.disconnect(0)
        await asyncio.sleep(100.0)
        fleet.come_back(0)
        back = fleet[0].leaf
        assert back.latency_s == pytest.approx(0.020)
        assert back.joined_s == 100.0

    run(body)


def test_a_new_generation_is_searched_once_it_is_whole() -> None:
    """While leaves load it one after the other, the old one stays; then it is the one."""

    async def main() -> None:
        old = [holding(card(2), [shard]) for shard in (0, 1)]
        new = [holding(card(2, generation=NEWER), [shard]) for shard in (0, 1)]
        async with LeafServer(old[0]) as a, LeafServer(old[1]) as b, connected(a, b) as fleet:
            await a.send(hello=hello(old[0], new[0]))
            await until(lambda: NEWER in fleet.views["default"])
            assert _current(fleet) == OLDER
            await b.send(hello=hello(old[1], new[1]))
            await until(lambda: _current(fleet) == NEWER)
            assert OLDER in fleet.views["default"]
            await a.send(hello=hello(new[0]))
            await b.send(hello=hello(new[1]))
            await until(lambda: OLDER not in fleet.views["default"])
            assert fleet.uncovered == {}

    asyncio.run(main())


def _current(fleet: Fleet) -> str | None:
    view = fleet.view()
    return view.card.generation if view else None


def test_a_shard_moves_without_a_moment_without_replicas() -> None:
    """The leaf that is to give it up is asked until the one that is to have it serves it, is
    then left alone, and comes back into play when that one is lost; who had asked it before gets
    the answer.
    """

    async def main() -> None:
        both = card(2)
        a_held = holding(both, [0, 1])
        async with (
            LeafServer(a_held) as a,
            LeafServer(name="leaf-1") as b,
            reaching(a.url, b.url) as fleet,
        ):
            await until(fleet.ready.is_set)
            first = fleet.channels[a.url].leaf
            other = fleet.channels[b.url].leaf
            pinned = fleet.view()
            leaving = msgspec.structs.replace(a_held, leaving={0: 1})
            await a.send(hello=hello(leaving))
            await until(lambda: fleet.channels[a.url].held[0].leaving)
            assert _replicas(fleet) == ((first,), (first,))
            await b.send(hello=hello(holding(both, [0]), name="leaf-1"))
            await until(lambda: other.connected)
            assert _replicas(fleet) == ((other,), (first,))
            assert pinned is not None
            assert pinned.replicas[0] == (first,)
            b.greeting = LeafFrame(hello=hello(name="leaf-1"))
            await b.close()
            await until(lambda: not other.connected)
            assert _replicas(fleet)[0][0] is first
            assert fleet.uncovered == {}

    asyncio.run(main())


def _replicas(fleet: Fleet) -> tuple[tuple[Leaf, ...], ...]:
    view = fleet.view()
    assert view is not None
    return view.replicas
