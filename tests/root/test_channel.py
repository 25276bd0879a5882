"""The root's end of a channel, against a leaf on a real connection that plays by the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

import msgspec
import pytest

import root.channel
from bench.simulation.answers import hits
from bench.simulation.scripted_fleet import GENERATION, BareRoot, card
from leaf.protocol import PROTOCOL_VERSION, Ask, Refusal, RefusalReason, RootHello, Tie
from root.budget import BudgetTerms
from root.channel import RETRY_MS_MAX
from root.discovery import Fleet
from root.hedging import MIN_SAMPLES, Off, Tied
from root.ranking import ROUND_TRIP_START_S
from tests.sim.loopback import (
    PATIENCE_S,
    LeafServer,
    answered,
    answers,
    connected,
    hello,
    holding,
    legs,
    only,
    run,
    until,
)

SHARDS = 6
PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)

Body = Callable[[LeafServer, Fleet, BareRoot], Awaitable[None]]


def with_one_leaf(body: Body) -> None:
    """Run a test's body with a leaf that holds all shards, and a root connected to it."""

    async def main() -> None:
        async with (
            LeafServer(holding(card(SHARDS), range(SHARDS))) as leaf,
            connected(leaf) as fleet,
        ):
            await body(leaf, fleet, BareRoot(fleet, Off(), PLENTY, timeout_s=30.0))

    run(main)


def test_the_root_says_who_it_is_first() -> None:
    """Its first frame is a hello with its protocol version and name."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        assert [frame.hello for frame in leaf.greeted] == [RootHello(PROTOCOL_VERSION, "root")]
        channel = only(fleet)
        assert (channel.name, channel.problem, channel.leaf.connected) == ("leaf-0", "", True)

    with_one_leaf(body)


def test_legs_of_one_tick_travel_in_one_frame() -> None:
    """All shards of a query are one ask, whose body is written once and whose budget is the
    time left; queries of the same tick share the frame.
    """

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        queries = [
            asyncio.create_task(root.query(timeout_s=timeout_s, body=b'{"k":%d}' % timeout_s))
            for timeout_s in (20, 10)
        ]
        frame = await leaf.frame()
        assert [ask.shards for ask in frame.asks] == [tuple(range(SHARDS))] * 2
        assert [json(ask)["k"] for ask in frame.asks] == [20, 10]
        assert {(ask.kind, ask.generation) for ask in frame.asks} == {("search", GENERATION)}
        for ask, most_ms in zip(frame.asks, (20_000, 10_000), strict=True):
            assert 0 < ask.budget_ms <= most_ms
        assert len({leg for _, leg, _ in legs(frame)}) == 2 * SHARDS
        await leaf.send(hits=answers(frame))
        assert all(seen.complete for seen in await asyncio.gather(*queries))

    with_one_leaf(body)


def test_answers_of_one_frame_are_taken_together() -> None:
    """They end the query, with the leaf's own times on each attempt."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        seen = await answered(leaf, root)
        assert [shard for shard, _ in seen.outcome.replies] == list(range(SHARDS))
        assert {(a.queue_us, a.service_us) for a in seen.gather.attempts} == {(5, 7)}
        assert only(fleet).reported_us == SHARDS * 12
        assert root.accounted
        assert only(fleet).owed == 0

    with_one_leaf(body)


def test_a_cancel_is_a_message_about_what_is_still_owed() -> None:
    """A caller that leaves cancels the legs not answered yet, on the same connection; they
    end when the leaf says so.
    """

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        query = asyncio.create_task(root.query())
        asked = await leaf.frame()
        await leaf.send(hits=answers(asked)[:2])
        await until(lambda: only(fleet).owed == SHARDS - 2)
        query.cancel()
        cancels = (await leaf.frame()).cancels
        assert list(cancels) == [leg for _, leg, _ in legs(asked)][2:]
        assert root.ledger.in_flight == SHARDS - 2
        await leaf.send(refusals=[Refusal(leg, 3, 0, "cancelled") for leg in cancels])
        await until(lambda: root.accounted)
        assert root.ledger.ended["cancelled"] == SHARDS - 2
        assert only(fleet).owed == 0
        assert (await answered(leaf, root)).complete

    with_one_leaf(body)


@pytest.mark.parametrize(
    ("reason", "missing"),
    [
        ("busy", "refused"),
        ("expired", "timeout"),
        ("unknown_shard", "refused"),
        ("unknown_generation", "refused"),
        ("bad_query", "refused"),
        ("error", "error"),
    ],
)
def test_a_refusal_ends_its_leg_only(reason: RefusalReason, missing: str) -> None:
    """The other answers of the frame count, the channel stays, and the leaf's words come along."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        query = asyncio.create_task(root.query())
        first, *others = answers(await leaf.frame())
        await leaf.send(hits=others, refusals=[Refusal(first.leg, 3, 9, reason, "so it is")])
        seen = await query
        assert seen.outcome.missing == {0: missing}
        assert seen.outcome.details == {0: "so it is"}
        assert seen.gather.attempts[0].service_us == 9
        assert only(fleet).leaf.connected
        assert root.accounted

    with_one_leaf(body)


def test_answers_are_never_mixed_up() -> None:
    """Whatever is cancelled, and in whatever order answers and cancels cross: every query
    gets its own answers.
    """
    random = Random("cancels")
    rounds = 400

    async def answering(leaf: LeafServer) -> None:
        owed: dict[int, int] = {}
        gone: set[int] = set()
        while True:
            if leaf.waiting or not owed:
                frame = await leaf.frame()
                owed |= {leg: mark(ask, shard) for ask, leg, shard in legs(frame)}
                gone |= set(frame.cancels)
            now = random.sample(sorted(owed), min(len(owed), 1 + random.randrange(20)))
            answers = [hits(leg, [1.0], [owed[leg]]) for leg in now if leg not in gone]
            refusals = [Refusal(leg, 0, 0, "cancelled") for leg in now if leg in gone]
            for leg in now:
                del owed[leg]
            await leaf.send(hits=answers, refusals=refusals)

    async def answered(root: BareRoot, number: int) -> bool:
        query = asyncio.create_task(root.query(body=b'{"k":%d}' % number))
        for _ in range(random.randrange(50)):
            await asyncio.sleep(0)
        if random.random() < 0.5:
            query.cancel()
        await asyncio.wait([query])
        if query.cancelled():
            return False
        replies = query.result().outcome.replies
        expected = [[1000 * number + shard] for shard in range(SHARDS)]
        assert [reply.read()[1] for _, reply in replies] == expected
        return True

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        leaf_at_work = asyncio.create_task(answering(leaf))
        results = await asyncio.gather(*(answered(root, number) for number in range(rounds)))
        await until(lambda: root.accounted)
        leaf_at_work.cancel()
        await asyncio.wait([leaf_at_work])
        assert 0 < sum(results) < rounds
        assert only(fleet).owed == 0

    with_one_leaf(body)


def mark(ask: Ask, shard: int) -> int:
    """What tells the answer to one leg from every other's."""
    return 1000 * json(ask)["k"] + shard


def json(ask: Ask) -> dict[str, int]:
    """The body of an ask."""
    return msgspec.json.decode(ask.body, type=dict[str, int])


def test_a_hello_may_come_again() -> None:
    """A leaf that holds something else now says so, and no query is dropped for it."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        query = asyncio.create_task(root.query())
        asked = await leaf.frame()
        await leaf.send(hello=hello(holding(card(SHARDS), [0, 1])))
        await until(lambda: fleet.uncovered == {"default": [2, 3, 4, 5]})
        await leaf.send(hits=answers(asked))
        assert (await query).complete
        assert (await root.query(timeout_s=0.001)).outcome.missing[5] == "no_replica"

    with_one_leaf(body)


def is_known(fleet: Fleet, notice: str | None) -> bool:
    """Whether this is what an operator is told of the leaf."""
    return bool(only(fleet).described()["notice"] == notice)


@pytest.mark.parametrize(
    ("hint_ms", "full_s"), [(250, 0.25), (0, 0.0), (-5, 0.0), (2**40, RETRY_MS_MAX / 1000.0)]
)
def test_a_busy_leaf_is_full_for_as_long_as_it_says(hint_ms: int, full_s: float) -> None:
    """And not for ever, whatever it says."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        query = asyncio.create_task(root.query())
        asked = [leg for _, leg, _ in legs(await leaf.frame())]
        await leaf.send(refusals=[Refusal(leg, 0, 0, "busy", "", hint_ms) for leg in asked])
        attempts = (await query).gather.attempts
        full = only(fleet).leaf
        assert full.full_until_s == max(full.joined_s, attempts[-1].ended_s + full_s)

    with_one_leaf(body)


def test_a_notice_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """Trouble that is injected while a leaf is connected is news, and so is its end."""

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        held = hello(holding(card(SHARDS), range(SHARDS)))
        for notice in ("trouble", "trouble", ""):
            await leaf.send(hello=msgspec.structs.replace(held, notice=notice))
            await until(partial(is_known, fleet, notice or None))

    with_one_leaf(body)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [words.rpartition(": ")[2] for words in told] == ["trouble", "its notice is withdrawn"]


def test_a_leaf_is_heard_of_as_long_as_it_answers_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not it answers queries; once it does not, it was last heard of before that."""
    monkeypatch.setattr(root.channel, "PING_EVERY_S", 0.01)

    async def body(leaf: LeafServer, fleet: Fleet, _: BareRoot) -> None:
        the_leaf, now = only(fleet).leaf, asyncio.get_running_loop().time
        started_s = now()
        await until(lambda: fleet.heard_s(the_leaf) > started_s + 0.05)
        leaf.deaf = True
        pings = leaf.pings
        await until(lambda: leaf.pings > pings + 1)
        deaf_s = now()
        pings = leaf.pings
        await until(lambda: leaf.pings > pings + 10)
        assert started_s < fleet.heard_s(the_leaf) < deaf_s
        await leaf.close()
        await until(lambda: not the_leaf.connected)
        assert fleet.heard_s(the_leaf) < now()

    with_one_leaf(body)


def test_a_leaf_that_fell_silent_keeps_the_process_that_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has stopped it, or wants to end it, can look up which process that is."""
    monkeypatch.setattr(root.channel, "PING_EVERY_S", 0.01)
    monkeypatch.setattr(root.channel, "SILENCE_S", 0.05)

    async def body(leaf: LeafServer, fleet: Fleet, _: BareRoot) -> None:
        channel = only(fleet)
        assert channel.described()["pid"] == 1
        leaf.greeting, leaf.deaf = None, True
        await until(lambda: not channel.leaf.connected)
        assert channel.described()["pid"] == 1
        assert channel.described()["workers"] is None

    with_one_leaf(body)


def test_pings_measure_the_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the frame that has the ping to the frame that has the pong; no leg is in it."""
    monkeypatch.setattr(root.channel, "PING_EVERY_S", 0.001)

    async def body(leaf: LeafServer, fleet: Fleet, root: BareRoot) -> None:
        measured = only(fleet).leaf
        await until(lambda: measured.round_trip_s != ROUND_TRIP_START_S)
        assert 0.0 < measured.round_trip_s < PATIENCE_S

    with_one_leaf(body)


def test_tied_legs_name_the_other_leaf() -> None:
    """The first copy's ask has the address of the leaf that the second goes to, the second's has
    that of the first; both have the same key.
    """

    async def main() -> None:
        held = holding(card(1), [0])
        async with (
            LeafServer(held) as one,
            LeafServer(held, name="leaf-1") as two,
            connected(one, two) as fleet,
        ):
            bare = BareRoot(fleet, Tied(), PLENTY, timeout_s=30.0)
            for _ in range(MIN_SAMPLES):
                bare.history.finished(0.010)
            query = asyncio.create_task(bare.query())
            frames = await asyncio.gather(one.frame(), two.frame())
            asks = [frame.asks[0] for frame in frames]
            assert [ask.tie for ask in asks] == [
                Tie("0:1", (two.url,), (0,)),
                Tie("0:1", (one.url,), (0,)),
            ]
            await one.send(refusals=[Refusal(0, 5, 0, "twin_began")])
            await two.send(hits=answers(frames[1]))
            assert (await query).complete
            assert bare.ledger.tied_dropped == 1
            assert bare.accounted

    asyncio.run(main())
