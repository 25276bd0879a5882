"""What is known of shapes: who goes straight, who is tried, who waits and who is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.canary import (
    CAUSES,
    QUARANTINE_S,
    QUARANTINE_S_MAX,
    RECORDS_MAX,
    SILENCES_MAX,
    SILENT_S,
    STALL_S,
    Finding,
    Record,
    Refusal,
    Shapes,
    Trial,
    Wait,
    _learn,
    judge,
)
from root.race import Attempt
from tests.root.canary_suspects import (
    ENDED_S,
    ONE,
    OTHER,
    SENT_S,
    Heard,
    attempt,
    killed,
    proven,
    seconds_refused,
    subject,
    tried,
)

# --- evidence ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("canary", "heard_s", "finding"),
    [
        (attempt("won"), SENT_S, "answered"),
        (attempt("lost"), SENT_S, "answered"),
        (attempt("cancelled", service_us=1), SENT_S, "answered"),
        (attempt("cancelled", queue_us=1), SENT_S, "refused"),
        (attempt("cancelled"), SENT_S, "refused"),
        (attempt("cancelled", leaf_gone=True), ENDED_S, "killed"),
        (attempt("cancelled", leaf_gone=True), ENDED_S - SILENT_S, "silent"),
        (attempt("failed", "gone"), ENDED_S - SILENT_S + 0.01, "killed"),
        (attempt("failed", "gone"), ENDED_S - SILENT_S, "silent"),
        (attempt("failed", "gone"), ENDED_S + 5.0, "killed"),
        *((attempt("failed", reason), SENT_S, "refused") for reason in ("busy", "error")),
        (attempt("in_flight"), SENT_S + STALL_S, "stalled"),
        (attempt("in_flight"), SENT_S + STALL_S - 0.01, "open"),
    ],
)
def test_an_attempt_says_what_became_of_its_leaf(
    canary: Attempt, heard_s: float, finding: Finding
) -> None:
    """By how it ended, and by when the leaf was last heard of."""
    assert judge(canary, SENT_S + 1.0, Heard(heard_s)) == finding


def test_evidence_of_an_unknown_kind_is_a_fault_of_ours() -> None:
    """A fate or a finding that nobody has decided about is not passed over."""
    with pytest.raises(AssertionError):
        judge(attempt("mislaid"), ENDED_S, Heard())
    with pytest.raises(AssertionError):
        _learn(Record(), "dreamt", ENDED_S, 1)  # type: ignore[arg-type]


def test_too_short_a_time_is_no_stall() -> None:
    """However alive the leaf is."""
    now = SENT_S + STALL_S - 0.01
    assert judge(attempt("in_flight"), now, Heard(now + 1.0)) == "open"


# --- shapes ------------------------------------------------------------------------------


def test_an_unseen_shape_is_tried_and_then_goes_straight() -> None:
    """Whatever its words; another shape is tried for itself."""
    shapes = proven(ONE)
    assert shapes.admit(subject("one", "other words"), ENDED_S) == "straight"
    assert isinstance(shapes.admit(OTHER, ENDED_S), Trial)
    assert shapes.canaries == 1


def test_one_canary_of_a_shape_is_out_at_a_time() -> None:
    """The others wait for its trial; when it says nothing, it is the next one's turn."""
    shapes = Shapes(Heard())
    trial = shapes.admit(ONE, ENDED_S)
    assert isinstance(trial, Trial)
    for words in ("words", "others"):
        admission = shapes.admit(subject("one", words), ENDED_S)
        assert isinstance(admission, Wait)
        assert admission.trial is trial
    assert not shapes.condemns(trial, ENDED_S)
    shapes.release(trial, ENDED_S)
    assert isinstance(shapes.admit(ONE, ENDED_S), Trial)


def test_what_kills_is_refused_for_a_time_that_doubles() -> None:
    """Up to a limit. Once it has passed all is forgotten."""
    shapes, now = Shapes(Heard()), ENDED_S
    span_s = QUARANTINE_S
    for _ in range(8):
        trial = shapes.admit(ONE, now)
        assert isinstance(trial, Trial)
        shapes.send(trial, [killed()])
        assert shapes.condemns(trial, now)
        assert shapes.refusal(trial, now).seconds == pytest.approx(span_s)
        shapes.release(trial, now)
        assert shapes.quarantined(now) == 1
        assert seconds_refused(shapes, subject("one", "others"), now + 1.0) == pytest.approx(
            span_s - 1.0
        )
        now += span_s
        assert shapes.quarantined(now) == 0
        span_s = min(2.0 * span_s, QUARANTINE_S_MAX)
    assert shapes.refused == 16
    assert not tried(shapes, ONE, attempt(), now=now)
    shapes.watch(ONE, [killed(), killed()], now)
    assert seconds_refused(shapes, ONE, now) == QUARANTINE_S


def test_one_silence_is_chance_and_two_are_not() -> None:
    """In one trial or in two; an answer between them makes it chance again."""
    heard = Heard(ENDED_S - SILENT_S)
    shapes = Shapes(heard)
    assert not tried(shapes, ONE, *[killed()] * (SILENCES_MAX - 1))
    assert tried(shapes, ONE, killed())
    assert "silent" in shapes.admit(ONE, ENDED_S).cause  # type: ignore[union-attr]
    shapes = Shapes(heard)
    assert tried(shapes, ONE, *[killed()] * SILENCES_MAX)
    shapes = Shapes(heard)
    assert not tried(shapes, ONE, killed(), attempt())
    shapes.watch(ONE, [killed()], ENDED_S)
    assert not tried(shapes, ONE, killed())


def test_one_silence_is_enough_for_the_dangerous() -> None:
    """They are not given the benefit of the doubt."""
    shapes = Shapes(Heard(ENDED_S - SILENT_S))
    assert tried(shapes, subject("one", dangerous=True), killed())


def test_a_refusal_changes_nothing() -> None:
    """Neither for the unseen nor for those that have been condemned before."""
    shapes = Shapes(Heard())
    assert not tried(shapes, ONE, attempt("failed", "busy"))
    assert tried(shapes, ONE, killed())
    later_s = ENDED_S + QUARANTINE_S
    assert not tried(shapes, ONE, attempt("failed", "busy"), now=later_s)
    assert tried(shapes, ONE, killed(), now=later_s)
    assert seconds_refused(shapes, ONE, later_s) == pytest.approx(2.0 * QUARANTINE_S)


# --- words -------------------------------------------------------------------------------


def test_a_query_that_was_at_work_on_a_lost_leaf_is_tried_by_itself() -> None:
    """Others of its shape go straight meanwhile; when it passes, so does it."""
    shapes = proven(ONE)
    shapes.watch(ONE, [attempt(), killed(3), killed(4)], ENDED_S)
    trial = shapes.admit(ONE, ENDED_S)
    assert isinstance(trial, Trial)
    assert not trial.whole_shape
    assert shapes.admit(subject("one", "others"), ENDED_S) == "straight"
    shapes.send(trial, [attempt()])
    assert not shapes.condemns(trial, ENDED_S)
    shapes.release(trial, ENDED_S)
    assert shapes.admit(ONE, ENDED_S) == "straight"


def test_words_that_kill_are_refused_by_themselves() -> None:
    """Not their shape."""
    shapes = proven(ONE)
    shapes.watch(ONE, [killed()], ENDED_S)
    assert tried(shapes, ONE, killed())
    refusal = shapes.admit(ONE, ENDED_S)
    assert isinstance(refusal, Refusal)
    assert (refusal.whole_shape, refusal.cause) == (False, CAUSES["killed"])
    assert shapes.admit(subject("one", "others"), ENDED_S) == "straight"


def test_two_leaves_lost_under_one_leg_need_no_trial() -> None:
    """Two under two legs do: a rack that fails takes several at once."""
    shapes = proven(ONE, OTHER)
    shapes.watch(ONE, [killed(1), killed(1)], ENDED_S)
    assert seconds_refused(shapes, ONE) == pytest.approx(QUARANTINE_S)
    shapes.watch(OTHER, [killed(1), killed(2)], ENDED_S)
    assert seconds_refused(shapes, subject("one")) > 0
    assert isinstance(shapes.admit(subject("other", "words of its own"), ENDED_S), str)


def test_a_query_that_lost_nobody_is_not_remembered() -> None:
    """What is kept by words are suspects only."""
    shapes = proven(ONE)
    shapes.watch(ONE, [attempt(), attempt("failed", "busy"), attempt("cancelled")], ENDED_S)
    assert shapes.admit(ONE, ENDED_S) == "straight"
    assert len(shapes) == 1


def test_the_dangerous_are_tried_each_time() -> None:
    """Each by its own words: two that differ do not wait for each other, two that do not, do."""
    first, second = (subject("one", words, dangerous=True) for words in ("first", "second"))
    shapes = proven(first)
    for _ in range(2):
        trial = shapes.admit(first, ENDED_S)
        assert isinstance(trial, Trial)
        assert isinstance(shapes.admit(first, ENDED_S), Wait)
        other = shapes.admit(second, ENDED_S)
        assert isinstance(other, Trial)
        for each in (trial, other):
            shapes.send(each, [attempt()])
            assert not shapes.condemns(each, ENDED_S)
            shapes.release(each, ENDED_S)


def test_the_verdict_on_a_dangerous_query_is_for_those_who_waited_for_it() -> None:
    """For the very same query, that is; and not where nothing was learned."""
    first, second = (subject("one", words, dangerous=True) for words in ("first", "second"))
    shapes = Shapes(Heard())
    unheard = shapes.admit(first, ENDED_S)
    assert isinstance(unheard, Trial)
    shapes.send(unheard, [attempt("failed", "busy")])
    assert not shapes.condemns(unheard, ENDED_S)
    shapes.release(unheard, ENDED_S)
    trial = shapes.admit(first, ENDED_S, unheard)
    assert isinstance(trial, Trial)
    shapes.send(trial, [attempt()])
    assert not shapes.condemns(trial, ENDED_S)
    shapes.release(trial, ENDED_S)
    assert shapes.admit(first, ENDED_S, trial) == "straight"
    assert isinstance(shapes.admit(second, ENDED_S, trial), Trial)
    assert isinstance(shapes.admit(first, ENDED_S), Trial)


# --- memory ------------------------------------------------------------------------------


@given(numbers=st.lists(st.integers(0, 30), max_size=100), records_max=st.integers(1, 20))
def test_memory_is_bounded(numbers: list[int], records_max: int) -> None:
    """However many shapes come in, so many are known: those that were asked for last."""
    shapes, known = Shapes(Heard(), records_max), list[int]()
    for number in numbers:
        if number in known:
            known.remove(number)
            assert shapes.admit(subject(str(number)), ENDED_S) == "straight"
        else:
            assert not tried(shapes, subject(str(number)), attempt())
        known = [*known, number][-records_max:]
        assert len(shapes) == len(known)


def test_what_is_in_use_is_not_forgotten() -> None:
    """A shape that somebody asks for again and again outlives any number of strange ones."""
    shapes = Shapes(Heard(), 10)
    assert not tried(shapes, ONE, attempt())
    for number in range(100):
        assert shapes.admit(ONE, ENDED_S) == "straight"
        assert not tried(shapes, subject(str(number)), attempt())
        assert len(shapes) <= 10
    assert shapes.admit(subject("99"), ENDED_S) == "straight"
    assert isinstance(shapes.admit(subject("0"), ENDED_S), Trial)


def test_a_root_remembers_more_shapes_than_there_are() -> None:
    """By default, and what it takes for it is little."""
    shapes = proven(ONE)
    for number in range(RECORDS_MAX - 1):
        assert not tried(shapes, subject(str(number)), attempt())
    assert shapes.admit(ONE, ENDED_S) == "straight"
    assert len(shapes) == RECORDS_MAX
