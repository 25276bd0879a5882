"""The driver's promises to its transport and its loop; what it does is in tests/sim."""

from __future__ import annotations

import asyncio

import pytest

from bench.simulation.answers import hits
from bench.virtual_time import run, running_loop
from leaf.protocol import Documents, FetchedDocument, Hits
from root.gather import Gather
from root.hedging import Fixed, Off, Policy
from root.race import Attempt
from root.scatter import Ask, Flight, scatter
from tests.root.conftest import history_of, leaves, terms

ANSWER = hits(0, [1.0], [0])


class Post:
    """A transport that only writes down what it is given."""

    def __init__(self) -> None:
        self.sent: list[tuple[Attempt, Flight]] = []
        self.cancelled: list[Attempt] = []

    def send(self, attempt: Attempt, flight: Flight) -> None:
        self.sent.append((attempt, flight))

    def cancel(self, attempt: Attempt) -> None:
        self.cancelled.append(attempt)

    def answer(self, number: int) -> None:
        attempt, flight = self.sent[number]
        flight.replied(attempt, ANSWER)
        flight.settle()


def gather_of(shards: int, policy: Policy, deadline_s: float = 1.0) -> Gather:
    both = leaves(2)
    return Gather(
        [(s, both) for s in range(shards)], policy, terms(history=history_of(0.01)), deadline_s
    )


def ask(kind: str = "search") -> Ask:
    return Ask(kind, "20300101-000000-0000", b"{}", 1.0)


def timers() -> list[asyncio.TimerHandle]:
    """Timers of the running loop that will ring."""
    return running_loop().timers


def test_a_query_has_one_timer_and_no_task_however_many_legs() -> None:
    """At a hundred shards, and while answers and hedges come and go."""

    async def main() -> None:
        post = Post()
        query = asyncio.create_task(scatter(gather_of(100, Fixed(0.05)), ask(), post))
        await asyncio.sleep(0.01)
        for number in range(60):
            post.answer(number)
            assert len(timers()) == 1
        await asyncio.sleep(0.05)
        assert len(post.sent) == 140
        assert len(timers()) == 1
        assert asyncio.all_tasks() == {asyncio.current_task(), query}
        for number in range(60, 100):
            post.answer(number)
        assert len((await query).replies) == 100
        assert len(post.cancelled) == 40
        assert timers() == []

    run(main)


def test_everything_is_sent_before_anything_is_waited_for() -> None:
    """All legs leave in the same tick, in the order of the shards."""

    async def main() -> None:
        post = Post()
        query = asyncio.create_task(scatter(gather_of(10, Off()), ask(), post))
        await asyncio.sleep(0)
        assert [attempt.shard for attempt, _ in post.sent] == list(range(10))
        query.cancel()
        await asyncio.wait([query])

    run(main)


def test_a_query_of_nothing_ends_at_once() -> None:
    """No shard, no leg, no wait."""

    async def main() -> None:
        outcome = await scatter(gather_of(0, Off()), ask(), Post())
        assert (outcome.replies, outcome.missing, outcome.decided_s) == ([], {}, 0.0)
        assert timers() == []

    run(main)


def test_a_query_whose_deadline_has_passed_asks_nobody() -> None:
    """It ends at once, with everything missing."""

    async def main() -> None:
        post = Post()
        outcome = await scatter(gather_of(3, Off(), deadline_s=0.0), ask(), post)
        assert set(outcome.missing.values()) == {"timeout"}
        assert post.sent == []
        assert asyncio.get_running_loop().time() == 0.0

    run(main)


def test_cancelling_the_caller_cancels_what_is_in_flight() -> None:
    """And late events are taken without a word."""

    async def main() -> None:
        post = Post()
        query = asyncio.create_task(scatter(gather_of(3, Off()), ask(), post))
        await asyncio.sleep(0.1)
        post.answer(0)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        assert [attempt.shard for attempt in post.cancelled] == [1, 2]
        assert timers() == []
        post.answer(1)
        attempt, flight = post.sent[2]
        flight.failed(attempt, "gone", "")
        flight.settle()
        assert [attempt.fate for attempt, _ in post.sent] == ["won", "lost", "cancelled"]

    run(main)


def test_the_outcome_is_the_one_of_its_time() -> None:
    """Answers that come between the decision and the caller's turn do not change it."""

    async def main() -> None:
        post = Post()
        query = asyncio.create_task(scatter(gather_of(1, Off()), ask(), post))
        await asyncio.sleep(0.1)
        post.answer(0)
        outcome = await query
        assert outcome.decided_s == 0.1
        assert outcome.replies == [(0, ANSWER)]

    run(main)


@pytest.mark.parametrize(
    ("kind", "reply_type"), [("search", Hits), ("lookup", Hits), ("fetch", Documents)]
)
def test_an_ask_knows_what_answers_it(kind: str, reply_type: type) -> None:
    """So that the channel can tell another answer from garbage."""
    assert ask(kind).reply_type is reply_type


@pytest.mark.parametrize(("fetched", "answered"), [([4, 2], True), ([4], False), ([2, 4], False)])
def test_a_fetch_is_answered_by_the_documents_asked_for(fetched: list[int], answered: bool) -> None:
    """Fewer, or others, are no answer: hits would be missing without a word."""
    ask = Ask("fetch", "g", b"{}", 1.0, ordinals={7: [4, 2]})
    attempt = Attempt(0, 0, 7, leaves(1)[0], "primary", 0.0)
    documents = [FetchedDocument(ordinal, 1.0, str(ordinal), {}, {}) for ordinal in fetched]
    assert ask.answered_by(attempt, Documents(0, 0, 0, documents)) == answered
    assert not ask.answered_by(attempt, ANSWER)
    assert Ask("search", "g", b"{}", 1.0).answered_by(attempt, ANSWER)
