"""How long a query waits for more than it was asked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.enough import PATIENCE_Q, Enough
from root.gather import AlarmRang, AttemptFailed, AttemptsReplied, CancelAttempt, Gather
from root.hedging import MIN_SAMPLES, Off
from root.latency import Latency
from root.race import Attempt
from tests.root.conftest import history_of, leaves, terms

USUAL_S = history_of(0.010).quantile(PATIENCE_Q) or math.nan


def test_the_wait_shrinks_from_twice_the_base_to_the_base() -> None:
    """With half of what may be missing open, half again; an answer less open, less."""
    enough = Enough([10] * 10, 40)
    history = history_of(0.010)
    for slot in range(5):
        enough.decided(slot, 0.050, answered=True)
    assert enough.patience_s(history) == math.inf
    waits = []
    for slot in range(5, 9):
        enough.decided(slot, 0.060, answered=True)
        waits.append(enough.patience_s(history))
    assert waits == pytest.approx([0.060 * (1 + still / 40) for still in (40, 30, 20, 10)])


def test_an_ordinary_leg_is_always_waited_for() -> None:
    """Enough in a millisecond is no reason to leave legs behind that are as fast as usual."""
    enough = Enough([10] * 10, 100)
    enough.decided(0, 0.001, answered=True)
    assert enough.patience_s(history_of(0.010)) == pytest.approx(USUAL_S * 1.9)


def test_what_is_lost_is_not_waited_for_and_counts_for_nothing() -> None:
    """A shard that failed brings neither coverage nor hope."""
    enough = Enough([10, 10, 10, 10], 20)
    enough.decided(0, 0.020, answered=False)
    enough.decided(1, 0.020, answered=True)
    assert enough.patience_s(history_of(0.010)) == math.inf
    enough.decided(2, 0.030, answered=True)
    assert enough.patience_s(history_of(0.010)) == pytest.approx(0.030 * 1.5)
    enough.decided(3, 0.040, answered=False)
    assert enough.patience_s(history_of(0.010)) == math.inf


def test_documents_count_and_not_shards() -> None:
    """One shard of nine documents in ten is enough for nine tenths."""
    enough = Enough([1, 90, 9], 10)
    enough.decided(1, 0.020, answered=True)
    assert enough.patience_s(history_of(0.010)) == pytest.approx(0.040)


@pytest.mark.parametrize("samples", [0, MIN_SAMPLES - 1])
def test_without_a_history_nobody_is_left_behind(samples: int) -> None:
    """What is usual is not known yet."""
    enough = Enough([10, 10], 10)
    enough.decided(0, 0.020, answered=True)
    assert enough.patience_s(history_of(0.010, samples)) == math.inf


def test_a_history_of_the_unfinished_is_none() -> None:
    """Where nothing was ever seen to finish, there is no usual time either."""
    enough = Enough([10, 10], 10)
    enough.decided(0, 0.020, answered=True)
    history = Latency(0.0)
    for _ in range(MIN_SAMPLES):
        history.at_least(0.010)
    assert enough.patience_s(history) == math.inf


@pytest.mark.parametrize("may_miss", [-1.0, 0.0, math.nan])
def test_a_query_that_may_miss_nothing_has_no_use_for_it(may_miss: float) -> None:
    """It waits for all of its shards without."""
    with pytest.raises(ValueError, match="may_miss must be more than 0"):
        Enough([10], may_miss)


@given(
    documents=st.lists(st.integers(0, 1000), min_size=1, max_size=20),
    may_miss=st.floats(0.001, 30_000.0),
    answers=st.lists(st.booleans(), min_size=20, max_size=20),
)
def test_the_wait_never_grows(documents: list[int], may_miss: float, answers: list[bool]) -> None:
    """From the moment on in which enough was searched, every shard that is decided shortens it,
    until nothing is open any more; and it is never more than twice the base.
    """
    enough = Enough(documents, may_miss)
    history = history_of(0.010)
    before = math.inf
    for slot, answered in zip(range(len(documents) - 1), answers, strict=False):
        enough.decided(slot, 0.001 * slot, answered=answered)
        wait_s = enough.patience_s(history)
        if math.isfinite(before) and any(documents[slot + 1 :]):
            assert wait_s <= before + 1e-12
        if math.isfinite(wait_s):
            assert wait_s <= 2 * max(0.001 * slot, USUAL_S) * (1 + 1e-9)
            before = wait_s


# --- in a gather -------------------------------------------------------------------------


def gather_of(
    shards: int, may_miss: float, *, without: int | None = None
) -> tuple[Gather, list[Attempt]]:
    """Shards of ten documents, started at 0; ``without``: that shard has no replica."""
    pair = leaves(2)
    gather = Gather(
        [(shard, [] if shard == without else pair) for shard in range(shards)],
        Off(),
        terms(),
        1.0,
        Enough([10] * shards, may_miss),
    )
    return gather, [send.attempt for send in gather.start(0.0)]


def test_a_gather_ends_when_waiting_does_not_pay() -> None:
    """Three shards of four were asked for, and came after 20 ms: the fourth has until 40."""
    gather, sent = gather_of(4, 10)
    gather.handle(AttemptsReplied([(a, "answer") for a in sent[:2]]), 0.010)
    assert gather.wakeup == 1.0
    gather.handle(AttemptsReplied([(sent[2], "answer")]), 0.020)
    assert gather.wakeup == pytest.approx(0.040)
    assert gather.handle(AlarmRang(), 0.030) == ()
    assert gather.outcome is None
    assert gather.handle(AlarmRang(), 0.040) == [CancelAttempt(sent[3])]
    assert gather.outcome is not None
    assert gather.outcome.missing == {3: "timeout"}
    assert [shard for shard, _ in gather.outcome.replies] == [0, 1, 2]


def test_the_deadline_comes_first_where_it_does() -> None:
    """Patience never makes a query longer than its caller's time."""
    gather, sent = gather_of(2, 10)
    gather.handle(AttemptsReplied([(sent[0], "answer")]), 0.900)
    assert gather.wakeup == 1.0


def test_a_failure_shortens_the_wait() -> None:
    """What cannot come any more is not hoped for."""
    pair = leaves(1)
    gather = Gather(
        [(shard, pair) for shard in range(4)], Off(), terms(), 1.0, Enough([10] * 4, 20)
    )
    sent = [send.attempt for send in gather.start(0.0)]
    gather.handle(AttemptsReplied([(a, "answer") for a in sent[:2]]), 0.020)
    assert gather.wakeup == pytest.approx(0.040)
    gather.handle(AttemptFailed(sent[2], "error"), 0.022)
    assert gather.wakeup == pytest.approx(0.030)


def test_a_shard_without_a_replica_is_not_hoped_for() -> None:
    """It is lost from the start."""
    gather, sent = gather_of(4, 20, without=3)
    gather.handle(AttemptsReplied([(a, "answer") for a in sent[:2]]), 0.020)
    assert gather.wakeup == pytest.approx(0.030)
