"""The slowest of each minute are kept, with what became of each attempt; nothing grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.scripted import takes
from index_data.manifest import Field, GenerationCard
from leaf.protocol import Priority
from root.config import Settings
from root.gather import AttemptFailed, AttemptsReplied, Gather
from root.hedging import Off
from root.pursuit import Phase, Pursuit
from root.requests import SearchRequest
from root.slow import MINUTE_S, MINUTES_KEPT, SlowQueries
from root.topology import Held, View, views
from tests.root.conftest import leaves, terms
from tests.sim.serving import SHARDS, Served, served

CARD = GenerationCard("20260101-000000-aaaa", (10, 20), (Field("name", "text"),), 0.01)


def view() -> View:
    """Two leaves that both hold both shards."""
    return views(Held(leaf, CARD, (0, 1)) for leaf in leaves(2))[CARD.generation]


def done(
    number: int,
    arrived_s: float,
    took_s: float,
    *,
    fails: bool = False,
    priority: Priority = "interactive",
) -> Pursuit:
    """A request that took so long; its second shard may have failed."""
    request = SearchRequest(q=f"q{number}", priority=priority)
    pursuit = Pursuit(view(), arrived_s, arrived_s + 90.0, request, number)
    gather = Gather(pursuit.view.shard_replicas(), Off(), terms(), arrived_s + 90.0)
    first, second = (send.attempt for send in gather.start(arrived_s))
    gather.handle(AttemptsReplied([(first, "hits")]), arrived_s + took_s)
    if fails:
        gather.handle(AttemptFailed(second, "bad_query", "no"), arrived_s + took_s)
    else:
        gather.handle(AttemptsReplied([(second, "hits")]), arrived_s + took_s)
    assert gather.outcome is not None
    pursuit.note(Phase("search", "short", gather.outcome, gather.attempts, arrived_s, gather.tally))
    return pursuit


def numbers(slow: SlowQueries, now: float) -> dict[int, list[int]]:
    """Which queries are kept, by how many minutes ago they came."""
    return {
        minute["minutes_ago"]: [query["number"] for query in minute["slowest"]]
        for minute in slow.listed(now)
    }


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_slowest_of_a_minute_are_kept_slowest_first(took: list[int]) -> None:
    """Of two that took the same, the earlier one."""
    slow = SlowQueries(3)
    for number, units in enumerate(took):
        slow.note(done(number, 1.0, units / 1000.0))
    wanted = sorted(range(len(took)), key=lambda number: (-took[number], number))[:3]
    assert numbers(slow, 2.0).get(0, []) == wanted


def test_work_that_may_wait_is_passed_over() -> None:
    """An export would fill the list, and nobody waits for one of its pages."""
    slow = SlowQueries(1)
    slow.note(done(1, 1.0, 5.0, priority="batch"))
    slow.note(done(2, 1.0, 0.1))
    assert numbers(slow, 2.0) == {0: [2]}


def test_each_minute_has_its_own_and_old_ones_go() -> None:
    """Newest minute first; after ten minutes a minute is forgotten, also for who only reads."""
    slow = SlowQueries(1)
    for minute in range(MINUTES_KEPT + 2):
        slow.note(done(minute, minute * MINUTE_S, 0.001))
    now = (MINUTES_KEPT + 1) * MINUTE_S
    kept = numbers(slow, now)
    assert list(kept) == list(range(MINUTES_KEPT))
    assert kept[0] == [MINUTES_KEPT + 1]
    assert list(numbers(slow, now + MINUTE_S)) == list(range(1, MINUTES_KEPT))
    assert numbers(slow, now + MINUTES_KEPT * MINUTE_S) == {}


def test_a_query_that_ends_late_belongs_to_the_minute_it_came_in() -> None:
    """A slow one from a minute ago does not push out the newer minutes."""
    slow = SlowQueries(1)
    slow.note(done(1, MINUTES_KEPT * MINUTE_S, 0.001))
    slow.note(done(2, MINUTE_S, 59.0))
    assert numbers(slow, MINUTES_KEPT * MINUTE_S) == {0: [1], MINUTES_KEPT - 1: [2]}


def test_a_query_is_kept_with_its_waterfall_and_what_was_missing() -> None:
    """All that ``trace`` would have shown, without the hits."""
    slow = SlowQueries(1)
    slow.note(done(7, 3.0, 0.25, fails=True))
    (minute,) = slow.listed(10.0)
    (query,) = minute["slowest"]
    assert query["seconds_ago"] == 7.0
    assert query["took_ms"] == 250.0
    assert query["request"].q == "q7"
    assert query["missing"] == [{"shard": 1, "reason": "refused"}]
    (phase,) = query["trace"]
    assert phase["phase"] == "search"
    assert [attempt["fate"] for attempt in phase["attempts"]] == ["won", "failed"]


def test_a_query_without_a_phase_and_a_log_of_nothing_keep_nothing() -> None:
    """Who left before anything was decided has no waterfall; 0 switches it off."""
    slow, none = SlowQueries(1), SlowQueries(0)
    slow.note(Pursuit(view(), 0.0, 1.0, SearchRequest(q="a")))
    none.note(done(1, 0.0, 1.0))
    assert slow.listed(0.0) == none.listed(0.0) == []


def test_a_root_shows_its_slowest_searches() -> None:
    """With what was asked; a document that is fetched is no search, and a refused one had none."""

    async def body(serving: Served) -> None:
        for target in ("/search?q=a&k=3", "/search?q=a&k=0", "/documents/nowhere"):
            await serving.client.get(target)
        (minute,) = (await serving.client.get("/slow")).json["minutes"]
        (query,) = minute["slowest"]
        assert (query["request"]["q"], query["request"]["k"]) == ("a", 3)
        assert [phase["phase"] for phase in query["trace"]] == ["search", "fetch"]
        assert len(query["trace"][0]["attempts"]) == SHARDS

    served(body, Settings(canary=False))


def test_a_search_that_failed_is_shown_as_well() -> None:
    """Those that did not come to an answer in time are the slowest of all."""

    async def body(serving: Served) -> None:
        serving.fleet.leaves[0].script = serving.fleet.leaves[2].script = takes(5.0)
        answer = await serving.client.get("/search?q=a&timeout_ms=50")
        assert answer.status == 504
        (minute,) = (await serving.client.get("/slow")).json["minutes"]
        assert minute["slowest"][0]["missing"]

    served(body, Settings(canary=False))
