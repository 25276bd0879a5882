"""Connections that break, leaves that break the protocol, and leaves that fall silent.

Whatever it is: every leg that the leaf owes ends at once, the channel says why, it connects
again, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import root.channel
from bench.simulation.answers import hits
from bench.simulation.scripted_fleet import BareRoot, card
from leaf.protocol import (
    PROTOCOL_VERSION,
    Documents,
    FetchedDocument,
    LeafFrame,
    Refusal,
    RootFrame,
)
from root.budget import BudgetTerms
from root.hedging import Off
from tests.sim.loopback import (
    LeafServer,
    answered,
    answers,
    connected,
    hello,
    holding,
    legs,
    only,
    reaching,
    run,
    until,
    written,
)

SHARDS = 4
ALL = holding(card(SHARDS), range(SHARDS))
PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect again at once, and wait for no close for long."""
    monkeypatch.setattr(root.channel, "RETRY_S", (0.005,))
    monkeypatch.setattr(root.channel, "CLOSE_TIMEOUT_S", 0.02)


def raw(data: bytes) -> Callable[[RootFrame], bytes]:
    return lambda _: data


def _unknown_leg(asked: RootFrame) -> LeafFrame:
    return LeafFrame(hits=[hits(10**9, [], [])])


def _unknown_refusal(asked: RootFrame) -> LeafFrame:
    return LeafFrame(refusals=[Refusal(10**9, 0, 0, "busy")])


def _twice(asked: RootFrame) -> LeafFrame:
    first = answers(asked)[0]
    return LeafFrame(hits=[first, first])


def _documents(asked: RootFrame) -> LeafFrame:
    document = FetchedDocument(0, 1.0, "a", {}, {})
    return LeafFrame(documents=[Documents(legs(asked)[0][1], 0, 0, [document])])


def _beyond_the_generation(asked: RootFrame) -> LeafFrame:
    return LeafFrame(hello=hello(holding(card(SHARDS), [0, SHARDS])))


GARBAGE: dict[str, tuple[Callable[[RootFrame], LeafFrame | bytes], str]] = {
    "no JSON": (raw(b"\x00\x01"), "no frame"),
    "no UTF-8": (raw(b'{"refused": "\xff"}'), "no frame"),
    "no object": (raw(b"[]"), "no frame"),
    "a wrong type": (raw(b'{"pong": "1"}'), "no frame"),
    "an unknown reason": (raw(b'{"refusals": [[0, 0, 0, "tired"]]}'), "no frame"),
    "bottomless": (raw(b'{"x":' + b"[" * 100_000), "no frame"),
    "an unknown leg": (_unknown_leg, "does not owe"),
    "an unknown refusal": (_unknown_refusal, "does not owe"),
    "an answer twice": (_twice, "does not owe"),
    "documents for a search": (_documents, "something else"),
    "shards that are not there": (_beyond_the_generation, "lacks"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_the_connection_and_no_more(name: str) -> None:
    """All legs owed fail as garbage, the channel says what was wrong, and connects again."""
    make, problem = GARBAGE[name]

    async def main() -> None:
        async with LeafServer(ALL) as leaf, connected(leaf) as fleet:
            a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
            query = asyncio.create_task(a_root.query())
            await leaf.send_raw(make(await leaf.frame()))
            seen = await query
            assert set(seen.outcome.missing.values()) == {"error"}
            assert all(problem in words for words in seen.outcome.details.values())
            assert a_root.accounted
            assert only(fleet).owed == 0
            await leaf.connection(2)
            await until(lambda: only(fleet).leaf.connected)
            assert (await answered(leaf, a_root)).complete
            assert a_root.ledger.failures["garbage"] >= SHARDS - 1

    run(main)


def test_a_good_answer_beside_garbage_counts_at_once() -> None:
    """A query whose last answer stands in a frame that breaks the protocol further on is
    answered then, not at its deadline.
    """

    async def main() -> None:
        async with LeafServer(ALL) as leaf, connected(leaf) as fleet:
            a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=3600.0)
            query = asyncio.create_task(a_root.query())
            asked = await leaf.frame()
            unknown = hits(10**9, [], [])
            await leaf.send(hits=[*answers(asked), unknown])
            async with asyncio.timeout(5):
                assert (await query).complete
            assert a_root.accounted

    run(main)


def test_a_text_frame_is_garbage() -> None:
    """The protocol has binary frames only."""

    async def main() -> None:
        async with LeafServer(ALL) as leaf, connected(leaf) as fleet:
            a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
            query = asyncio.create_task(a_root.query())
            await leaf.frame()
            await leaf.send_text("{}")
            assert (await query).outcome.missing
            await leaf.connection(2)
            assert a_root.accounted

    run(main)


def test_a_frame_over_the_limit_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its legs fail, and the next connection works."""
    monkeypatch.setattr(root.channel, "FRAME_BYTES_MAX", 10_000)

    async def main() -> None:
        async with LeafServer(ALL) as leaf, connected(leaf) as fleet:
            a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
            query = asyncio.create_task(a_root.query())
            asked = await leaf.frame()
            long = [hits(a.leg, [1.0] * 5000, list(range(5000))) for a in answers(asked)]
            await leaf.send(hits=long)
            assert len((await query).outcome.missing) == SHARDS
            await leaf.connection(2)
            await until(lambda: only(fleet).leaf.connected)
            assert (await answered(leaf, a_root)).complete

    run(main)


def test_a_closed_connection_moves_its_legs_at_once() -> None:
    """With another replica connected, a query of the lost leaf is answered by that one,
    outside the budget.
    """

    async def main() -> None:
        async with (
            LeafServer(ALL, name="a") as a,
            LeafServer(ALL, name="b") as b,
            connected(a, b) as fleet,
        ):
            nothing = BudgetTerms(max_extra_load=0.0, floor_per_s=0.0, burst=0.0)
            a_root = BareRoot(fleet, Off(), nothing, timeout_s=30.0)
            channels = fleet.channels
            channels[b.url].leaf.latency_s = 1000.0  # so that all first attempts go to a
            query = asyncio.create_task(a_root.query())
            await a.frame()
            await a.close()
            moved = await b.frame()
            assert sorted(shard for _, _, shard in legs(moved)) == list(range(SHARDS))
            await b.send(hits=answers(moved))
            seen = await query
            assert seen.complete
            assert seen.gather.tally.failed_over == SHARDS
            assert a_root.ledger.failures["gone"] == SHARDS
            await a.connection(2)
            await until(lambda: channels[a.url].leaf.connected)
            assert a_root.accounted

    run(main)


def test_a_silent_leaf_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf that answers no ping is given up, though its connection is open; one that does
    is kept, however long its answers take.
    """
    monkeypatch.setattr(root.channel, "PING_EVERY_S", 0.01)
    monkeypatch.setattr(root.channel, "SILENCE_S", 0.05)

    async def main() -> None:
        async with LeafServer(ALL) as leaf, connected(leaf) as fleet:
            a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
            query = asyncio.create_task(a_root.query())
            await leaf.frame()
            await until(lambda: leaf.pings > 10)
            assert not query.done()
            leaf.deaf = True
            seen = await query
            assert set(seen.outcome.missing.values()) == {"no_replica"}
            assert "silent" in seen.outcome.details[0]
            assert a_root.accounted
            leaf.deaf = False
            await leaf.connection(2)
            await until(lambda: only(fleet).leaf.connected)
            assert (await answered(leaf, a_root)).complete

    run(main)


def test_another_protocol_version_is_refused_in_words() -> None:
    """The leaf is no replica of anything, and the channel says which versions met."""

    async def main() -> None:
        async with LeafServer() as leaf:
            leaf.greeting = LeafFrame(hello=hello(ALL, protocol=PROTOCOL_VERSION + 1))
            async with reaching(leaf.url) as fleet:
                await leaf.connection(2)
                channel = only(fleet)
                assert channel.problem == (
                    f"the leaf speaks protocol {PROTOCOL_VERSION + 1}, this root {PROTOCOL_VERSION}"
                )
                assert not channel.leaf.connected
                assert fleet.view() is None
                assert channel.described()["problem"] == channel.problem

    run(main)


def test_a_refused_root_says_so_and_tries_again() -> None:
    """A leaf's refusal is kept in its own words, until it says hello."""

    async def main() -> None:
        async with LeafServer(ALL) as leaf:
            welcome, leaf.greeting = leaf.greeting, LeafFrame(refused="not before noon")
            async with reaching(leaf.url) as fleet:
                await leaf.connection(2)
                assert only(fleet).problem == "the leaf refused this root: not before noon"
                leaf.greeting = welcome
                await until(lambda: only(fleet).leaf.connected)
                assert only(fleet).problem == ""

    run(main)


@pytest.mark.parametrize(
    ("greeting", "problem"),
    [
        (LeafFrame(pong=1), "did not say hello"),
        (b"hello", "no frame"),
        (written({"hello": {"protocol": 1}}), "no frame"),
        (
            written(
                {
                    "hello": {
                        "protocol": PROTOCOL_VERSION,
                        "leaf": "a",
                        "domain": "",
                        "pid": 1,
                        "workers": 1,
                        "collections": {"default": [{"card": {"generation": 1}, "shards": []}]},
                    }
                }
            ),
            "describes no generation",
        ),
    ],
    ids=["no hello", "no frame", "half a hello", "no generation"],
)
def test_a_greeting_that_is_none_is_said_to_be_none(
    greeting: LeafFrame | bytes, problem: str
) -> None:
    """The channel says what was wrong with it, and goes on trying."""

    async def main() -> None:
        async with LeafServer() as leaf:
            leaf.greeting = greeting
            async with reaching(leaf.url) as fleet:
                await leaf.connection(2)
                assert problem in only(fleet).problem
                assert not only(fleet).leaf.connected

    run(main)


def test_a_leaf_that_never_greets_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed after a while, and another one tried."""
    monkeypatch.setattr(root.channel, "HELLO_TIMEOUT_S", 0.02)

    async def main() -> None:
        async with LeafServer() as leaf:
            leaf.greeting = None
            async with reaching(leaf.url) as fleet:
                await leaf.connection(3)
                assert only(fleet).problem == "no answer in time"

    run(main)


def test_an_address_where_nobody_listens_is_tried_again() -> None:
    """The channel says that it could not connect, and is connected once somebody listens."""

    async def main() -> None:
        async with LeafServer(ALL) as leaf:
            url = leaf.url
        async with reaching(url) as fleet:
            await until(lambda: only(fleet).problem not in {"", "not connected yet"})
            assert only(fleet).name == url
            assert fleet.view() is None

    run(main)


def test_one_name_is_one_generation() -> None:
    """A leaf with another generation by a name that is known is refused, the first one kept."""

    async def main() -> None:
        other = holding(card(SHARDS, documents=11), range(SHARDS))
        async with (
            LeafServer(ALL, name="a") as a,
            LeafServer(other, name="b") as b,
            reaching(a.url, b.url) as fleet,
        ):
            channels = fleet.channels
            await until(fleet.ready.is_set)
            await until(lambda: any("another" in c.problem for c in channels.values()))
            assert sum(c.leaf.connected for c in channels.values()) <= 1

    run(main)


def test_a_root_that_ends_ends_its_legs() -> None:
    """Legs under way when the fleet is shut down fail as gone; nothing is left running."""

    async def main() -> None:
        async with LeafServer(ALL) as leaf:
            async with connected(leaf) as fleet:
                a_root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
                query = asyncio.create_task(a_root.query())
                await leaf.frame()
            assert set((await query).outcome.missing.values()) == {"no_replica"}
            assert a_root.accounted

    run(main)
