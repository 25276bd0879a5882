"""Queries under suspicion, and what became of their canaries, for tests."""

from __future__ import annotations

from typing import Any

from root.canary import (
    Refusal,
    Shapes,
    Trial,
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
