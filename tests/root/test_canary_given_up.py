"""Canaries that were given up before they ended: what they say, and when."""

from __future__ import annotations

from root.canary import (
    CANCEL_S,
    QUARANTINE_S,
    QUARANTINE_S_MAX,
    STALL_S,
    Pause,
    Refusal,
    Shapes,
    Trial,
)
from root.race import Attempt
from tests.root.canary_suspects import (
    ENDED_S,
    ONE,
    SENT_S,
    Heard,
    attempt,
    seconds_refused,
    tried,
)


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
