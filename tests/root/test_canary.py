"""What is known of shapes: who goes straight, who is tried, who waits and who is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.canary import (
    CANCEL_S,
    CAUSES,
    QUARANTINE_S,
    QUARANTINE_S_MAX,
    RECORDS_MAX,
    SILENCES_MAX,
    SILENT_S,
    STALL_S,
    Finding,
    Pause,
    Record,
    Refusal,
    Shapes,
    Trial,
    Wait,
    _learn,
    judge,
)
from root.race import Attempt
from root.ranking import Leaf
from root.shapes import Subject

SENT_S = 10.0
ENDED_S = 10.1


class Heard:
    """When the one leaf was last heard of: at ``at_s``."""

    def __init__(self, at_s: float = SENT_S) -> None:
        self.at_s = at_s

    def __call__(self, _: Leaf) -> float:
        return self.at_s


def attempt(fate: Any = "won", reason: Any = None, slot: int = 0, **members: Any) -> Attempt:
    ended_s = 0.0 if fate == "in_flight" else ENDED_S
    return Attempt(
        *(0, slot, 0, Leaf("a", 0.0), "primary", SENT_S, fate),
        ended_s=ended_s,
        reason=reason,
        **({"leaf_gone": reason == "gone"} | members),
    )


def killed(slot: int = 0) -> Attempt:
    return attempt("failed", "gone", slot)


def subject(shape: str, words: str = "words", *, dangerous: bool = False) -> Subject:
    return Subject(shape.encode(), words.encode(), dangerous, shape)


def tried(shapes: Shapes, suspect: Subject, *canaries: Attempt, now: float = ENDED_S) -> bool:
    """Let a suspect send these canaries; return whether it is refused then."""
    trial = shapes.admit(suspect, now)
    assert isinstance(trial, Trial)
    condemned = False
    for canary in canaries:
        shapes.send(trial, [canary])
        condemned = shapes.condemns(trial, now)
    shapes.release(trial, now)
    return condemned


def seconds_refused(shapes: Shapes, suspect: Subject, now: float = ENDED_S) -> float:
    refusal = shapes.admit(suspect, now)
    assert isinstance(refusal, Refusal)
    return refusal.seconds


def proven(*suspects: Subject, heard: Heard | None = None) -> Shapes:
    shapes = Shapes(heard or Heard())
    for suspect in suspects:
        assert not tried(shapes, suspect, attempt())
    return shapes


ONE, OTHER = subject("one"), subject("other")


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


# --- canaries that were given up before they ended ---------------------------------------


def left_behind(heard: Heard) -> tuple[Shapes, Attempt]:
    """A shape whose canary was given up at ENDED_S, undecided."""
    shapes, canary = Shapes(heard), attempt("in_flight")
    assert not tried(shapes, ONE, canary)
    return shapes, canary


def test_a_leaf_at_work_on_a_canary_is_enough() -> None:
    """As long as it is alive and has not ended that one, no other is sent; but not for ever."""
    heard = Heard()
    shapes, _ = left_behind(heard)
    heard.at_s = ENDED_S + 1.0
    assert seconds_refused(shapes, ONE, ENDED_S + 1.0) == QUARANTINE_S
    assert seconds_refused(shapes, ONE, ENDED_S + QUARANTINE_S_MAX - 0.1) == QUARANTINE_S
    assert shapes.quarantined(ENDED_S + 1.0) == 0
    assert isinstance(shapes.admit(ONE, ENDED_S + QUARANTINE_S_MAX), Trial)


def test_a_canary_just_given_up_says_nothing_yet() -> None:
    """An ordinary leg takes its time too: whoever comes next waits, and is not refused. When it
    has ended well he goes straight; when it has had time enough, its leaf is held up by it.
    """
    shapes, canary = left_behind(Heard(ENDED_S + 1.0))
    assert isinstance(shapes.admit(ONE, ENDED_S), Pause)
    assert isinstance(shapes.admit(ONE, SENT_S + STALL_S - 0.01), Pause)
    assert seconds_refused(shapes, ONE, SENT_S + STALL_S) == QUARANTINE_S
    assert shapes.refused == 1
    canary.fate, canary.service_us = "cancelled", 5
    assert shapes.admit(ONE, SENT_S + STALL_S) == "straight"


def test_a_leaf_that_is_not_heard_of_holds_nobody_up() -> None:
    """It does not work on the canary, as far as is known: it stands still."""
    shapes, _ = left_behind(Heard(SENT_S))
    assert isinstance(shapes.admit(ONE, ENDED_S + 1.0), Trial)


def test_a_canary_that_ends_late_is_heard_all_the_same() -> None:
    """Done, it has proven its shape; lost with its leaf, it condemns it; put back, nothing."""
    for ending, admission in (
        ({"service_us": 5}, "straight"),
        ({"queue_us": 5}, Trial),
        ({}, Trial),
        ({"leaf_gone": True}, Refusal),
    ):
        shapes, canary = left_behind(Heard(ENDED_S))
        canary.fate, canary.ended_s = "cancelled", ENDED_S + 0.1
        for name, value in ending.items():
            setattr(canary, name, value)
        after = shapes.admit(ONE, ENDED_S + 0.2)
        assert after == "straight" if admission == "straight" else type(after) is admission


def test_a_leaf_has_the_time_to_say_that_a_canary_has_only_waited() -> None:
    """That it is heard of within the milliseconds a cancel takes says nothing yet."""
    for heard_after_s, admission in ((0.5 * CANCEL_S, Trial), (CANCEL_S, Refusal)):
        heard = Heard()
        shapes, canary = left_behind(heard)
        canary.sent_s = ENDED_S - STALL_S
        heard.at_s = ENDED_S + heard_after_s
        assert isinstance(shapes.admit(ONE, heard.at_s), admission)


def test_a_verdict_counts_from_when_it_fell() -> None:
    """A canary that was given up, and lost with its leaf a while ago: the quarantine for it is
    over when somebody asks.
    """
    shapes, canary = left_behind(Heard(ENDED_S))
    canary.fate, canary.ended_s, canary.leaf_gone = "cancelled", ENDED_S + 0.1, True
    assert isinstance(shapes.admit(ONE, ENDED_S + 0.1 + QUARANTINE_S), Trial)


def test_a_stall_that_was_none_ends_the_quarantine() -> None:
    """The leaf says at last that the canary has only waited; a death before is not undone."""
    heard = Heard(SENT_S + STALL_S)
    shapes, canary = Shapes(heard), attempt("in_flight")
    now = SENT_S + STALL_S
    assert tried(shapes, ONE, canary, now=now)
    assert seconds_refused(shapes, ONE, now) == QUARANTINE_S
    canary.fate, canary.ended_s, canary.queue_us = "cancelled", now, 5
    assert isinstance(shapes.admit(ONE, now), Trial)


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
