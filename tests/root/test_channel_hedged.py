"""Two copies of a leg on two connections: what is large, what crosses, what is too long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Final

import msgspec
import orjson
import pytest

from bench.simulation.answers import hits
from bench.simulation.scripted_fleet import GENERATION, BareRoot, card
from leaf.protocol import Hits, LeafFrame, Refusal, RootFrame
from root.budget import Budget, BudgetTerms
from root.channel import DETAIL_CHARS_MAX, Channel
from root.discovery import Fleet
from root.gather import Gather
from root.hedging import MIN_SAMPLES, Off, Together
from root.latency import Latency
from root.ledger import Ledger
from root.race import Attempt, Terms
from root.ranking import Leaf
from root.scatter import Ask, Flight, scatter
from tests.sim.loopback import LeafServer, answers, connected, holding, legs, until

PLENTY: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)
MEGABYTE: Final = 1_000_000

_frames: Final = msgspec.json.Decoder(RootFrame)


async def warm(root: BareRoot, *leaves: LeafServer) -> None:
    """Give the root the history without which it does not hedge."""
    answering = [asyncio.create_task(answer_all(leaf)) for leaf in leaves]
    for _ in range(MIN_SAMPLES):
        await root.query()
    for task in answering:
        task.cancel()
    await asyncio.wait(answering)
    root.policy = Together()


def is_connected(fleet: Fleet, url: str) -> bool:
    return fleet.channels[url].leaf.connected


async def answer_all(leaf: LeafServer) -> None:
    while True:
        await leaf.send(hits=answers(await leaf.frame()))


def test_large_answers_are_whole_though_their_losers_are_cancelled() -> None:
    """Answers of a megabyte, two copies of each leg, over real connections: every query gets a
    whole one of its own, while the other one is cancelled before, in or after its writing.
    """
    queries = 150
    scores = [1.0] * (MEGABYTE // 12)
    ordinals = [999_999] * len(scores)
    whole = orjson.dumps([scores, ordinals])
    assert len(whole) > MEGABYTE * 0.9

    async def answering(leaf: LeafServer, random: Random) -> None:
        while True:
            frame = await leaf.frame()
            if random.random() < 0.3:
                await asyncio.sleep(0.001)
            for ask, leg, _ in legs(frame):
                raw = msgspec.Raw(whole[:-8] + ask.body + b"]]")
                await leaf.send(hits=[Hits(leg, 1, 1, len(scores), 1.0, raw)])

    async def main() -> None:
        all_of_it = holding(card(1), [0])
        async with (
            LeafServer(all_of_it, name="a") as a,
            LeafServer(all_of_it, name="b") as b,
            connected(a, b) as fleet,
        ):
            root = BareRoot(fleet, Off(), PLENTY, timeout_s=30.0)
            await warm(root, a, b)
            at_work = [
                asyncio.create_task(answering(leaf, Random(name)))
                for name, leaf in (("a", a), ("b", b))
            ]
            for number in range(queries):
                last = 100_000 + number  # as many digits as what it takes the place of
                seen = await root.query(body=b"%d" % last)
                ((_, reply),) = seen.outcome.replies
                expected = [*ordinals[:-1], last]
                assert reply.read() == (scores, expected)
            await until(lambda: root.accounted)
            assert root.ledger.sent["hedge"] == queries
            assert root.ledger.ended["won"] == queries + MIN_SAMPLES
            for task in at_work:
                task.cancel()
            await asyncio.wait(at_work)

    asyncio.run(main())


class TwoLeaves:
    """Two channels without connections, and leaves at their ends that answer in any order.

    Cancels and answers cross; what is cancelled in time is acknowledged.
    """

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.replicas = [Leaf(name, -60.0) for name in ("a", "b")]
        self.channels = {
            leaf.name: Channel(leaf.name, "root", leaf, lambda _: None) for leaf in self.replicas
        }
        self.owed: dict[str, dict[int, int]] = {"a": {}, "b": {}}

    def send(self, attempt: Attempt, flight: Flight) -> None:
        self.channels[attempt.leaf.name].send(attempt, flight)

    def cancel(self, attempt: Attempt) -> None:
        self.channels[attempt.leaf.name].cancel(attempt)

    def step(self, now: float) -> None:
        """Let both leaves hear what the root has for them, and answer some of what they owe."""
        for name, channel in self.channels.items():
            frame = _frames.decode(channel._take_frame(now))
            owed = self.owed[name]
            for ask in frame.asks:
                number = msgspec.json.decode(ask.body)
                owed |= {ask.first + i: 1000 * number + shard for i, shard in enumerate(ask.shards)}
            heard = set(frame.cancels) if self.random.random() < 0.5 else set()
            ending = [leg for leg in owed if leg in heard or self.random.random() < 0.5]
            self.random.shuffle(ending)
            marks = {leg: owed.pop(leg) for leg in ending}
            channel._deliver(self._answers(marks, heard), now)

    def _answers(self, marks: Mapping[int, int], heard: set[int]) -> LeafFrame:
        return LeafFrame(
            hits=[hits(leg, [1.0], [mark]) for leg, mark in marks.items() if leg not in heard],
            refusals=[Refusal(leg, 0, 0, "cancelled") for leg in marks if leg in heard],
        )


def test_a_hundred_thousand_legs_half_of_them_hedged_get_their_own_answers() -> None:
    """One copy or two of each, answered in any order while cancels cross: no answer ever reaches
    another leg, and no leg is left.
    """
    shards, queries = 200, 500

    async def main() -> None:
        loop = asyncio.get_running_loop()
        fleet = TwoLeaves("crossing")
        budget, ledger, history = Budget(PLENTY, 0.0), Ledger(), Latency(0.0)
        for _ in range(MIN_SAMPLES):
            history.finished(0.01)
        random = Random("replicas")

        async def query(number: int) -> None:
            terms = Terms(random, budget, ledger, history)
            deadline_s = loop.time() + 60.0
            wanted = [(shard, fleet.replicas) for shard in range(shards)]
            gather = Gather(wanted, Together(), terms, deadline_s)
            ask = Ask("search", GENERATION, b"%d" % number, deadline_s)
            outcome = await scatter(gather, ask, fleet)
            marks = [reply.read()[1] for _, reply in outcome.replies]
            assert marks == [[1000 * number + shard] for shard in range(shards)]

        under_way: set[asyncio.Task[None]] = set()
        for number in range(queries):
            under_way.add(asyncio.create_task(query(number)))
            while len(under_way) > 5:
                await asyncio.sleep(0)
                fleet.step(loop.time())
                await asyncio.sleep(0)
                done = {task for task in under_way if task.done()}
                for task in done:
                    task.result()
                under_way -= done
        while ledger.in_flight:
            await asyncio.sleep(0)
            fleet.step(loop.time())
        await asyncio.gather(*under_way)
        assert ledger.sent["hedge"] > 0.4 * shards * queries
        assert ledger.ended["won"] == shards * queries
        assert ledger.ended["lost"] > 0
        assert ledger.ended["cancelled"] > 0
        assert all(channel.owed == 0 for channel in fleet.channels.values())

    asyncio.run(main())


@pytest.mark.parametrize("reason", ["error", "busy"])
def test_five_hundred_long_refusals_are_kept_short(reason: str) -> None:
    """Every shard is refused with tens of thousands of characters: the root keeps a sentence."""
    shards = 500

    async def main() -> None:
        async with LeafServer(holding(card(shards), range(shards))) as leaf, connected(leaf) as f:
            root = BareRoot(f, Off(), PLENTY, timeout_s=30.0)
            for _ in range(3):
                query = asyncio.create_task(root.query())
                asked = await leaf.frame()
                long = "the shard is broken " * 1500
                await leaf.send(
                    refusals=[Refusal(leg, 0, 0, reason, long) for _, leg, _ in legs(asked)]  # type: ignore[arg-type]
                )
                outcome = (await query).outcome
                assert len(outcome.missing) == shards
                assert all(len(said) <= DETAIL_CHARS_MAX for said in outcome.details.values())
                assert len(outcome.details) == shards
            assert root.accounted

    asyncio.run(main())


def test_a_connection_that_was_closed_while_idle_fails_no_query() -> None:
    """Again and again a leaf closes its idle connection: whoever asks right after, or a little
    later, is answered, by the other replica or over the next connection.
    """

    async def main() -> None:
        whole = holding(card(4), range(4))
        async with (
            LeafServer(whole, name="a") as a,
            LeafServer(whole, name="b") as b,
            connected(a, b) as fleet,
        ):
            root = BareRoot(fleet, Off(), BudgetTerms(0.0, 0.0, 0.0), timeout_s=30.0)
            at_work = [asyncio.create_task(answer_all(leaf)) for leaf in (a, b)]
            assert (await root.query()).complete
            for times in range(1, 4):
                for leaf in (a, b):
                    await leaf.close()
                    for _ in range(3):
                        assert (await root.query()).complete
                        await asyncio.sleep(0.001)
                    await leaf.connection(times + 1)
                    await until(partial(is_connected, fleet, leaf.url))
                    at_work.append(asyncio.create_task(answer_all(leaf)))
                    assert (await root.query()).complete
            assert root.accounted
            for task in at_work:
                task.cancel()
            await asyncio.wait(at_work)

    asyncio.run(main())
