"""Which queries are tried on one leaf first, and which are refused: what is known of shapes.

A query that kills or stalls what works on it must not reach every leaf at once. So of a query
whose shape has not been seen to end well, one leg goes ahead, the *canary*; the others follow
when it is answered. What a shape, or a query by its words, is known as:

    unseen -----canary answered----> proven            goes straight to all leaves
    unseen -----canary condemned---> quarantined       refused until its time is over
    quarantined --time is over-----> unseen, but remembered: condemned again, it is refused
                                     for twice as long; proven, all is forgotten

One canary of a suspect is out at a time; the queries like it wait for its verdict. One that was
given up, as its caller had left or his time was over, is waited for as well, until it has had
time enough to be called stalled: only then is it known which of the two is to blame. While the
shape of a query is unproven, the shape is the suspect. Once it is proven, only this very query
can be: because it is dangerous, or because it was at work on a leaf that was lost. So what
the words of one query do is never held against others of its shape.

What a canary's attempt says (``judge``):

    answered    the leaf has worked on it to the end
    refused     the leaf has not worked on it, or not to the end: nothing is known
    killed      the connection was closed over it
    silent      the leaf had fallen silent, before it was lost: most likely its own trouble
    stalled     no answer for long, by a leaf that is otherwise alive
    open        none of these yet

Plain synchronous code. Times are seconds on one clock. ``Hearing`` tells when a leaf was last
heard of: leaves answer pings all the time, however busy their workers are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

from root.race import Attempt
from root.ranking import Leaf
from root.shapes import Subject

RECORDS_MAX: Final = 10_000
"""Shapes and queries remembered, the latest: some 3 MB, far more than there are in practice."""

QUARANTINE_S: Final = 2.0
"""As long as a leaf takes to come back: a shape that kills costs one leaf in that time."""
QUARANTINE_S_MAX: Final = 60.0
"""A cause that is mended is noticed after a minute at the latest."""

STALL_S: Final = 0.5
"""A leg is worked on for some milliseconds: a hundred times that is no ordinary slowness. With
less time than this a query may be too late, but condemns nothing."""

SILENT_S: Final = 0.5
"""A leaf answers pings every 0.2 s, and is given up after more than 0.7 s of silence. One that
was lost and had been heard of more lately than this has closed its connection."""

CANCEL_S: Final = 0.05
"""A leaf acknowledges at once the cancel of a leg that only waited in its queue, and that of one
that it works on when it is done: after so long it is known which of the two a late canary was."""

SILENCES_MAX: Final = 2
"""Leaves that fell silent over a suspect one after the other: one is chance, and two are not."""

Hearing = Callable[[Leaf], float]
Finding = Literal["answered", "refused", "killed", "silent", "stalled", "open"]

CAUSES: Final[dict[Finding, str]] = {
    "killed": "a leaf was lost while it worked on {}",
    "silent": "leaves that were to work on {} fell silent",
    "stalled": "a leaf that works on {} comes to no end",
}
"""Of a quarantine, in words; what is left open is the suspect."""


@dataclass(slots=True, eq=False)
class Record:
    """What is known of a suspect. ``left`` is an attempt that was given up before it ended."""

    proven: bool = False
    until_s: float = 0.0
    span_s: float = 0.0
    silences: int = 0
    cause: Finding = "open"
    trial: Trial | None = None
    left: Attempt | None = None
    left_s: float = 0.0


@dataclass(slots=True, eq=False)
class Trial:
    """Leave to send canaries; ``attempts`` are those of the latest. ``whole_shape`` says whether
    the shape is tried, or one query of a proven shape; ``passed``, that a canary was answered.
    """

    subject: Subject
    record: Record
    whole_shape: bool
    attempts: Sequence[Attempt] = field(default_factory=list)
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """No leave, for ``seconds`` from now."""

    whole_shape: bool
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """No leave before ``trial`` is over; then ask again."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class Pause:
    """No leave yet: a canary that was given up is still out, and it is too early to judge it. It
    ends without anybody being told; ask again in a moment.
    """


Admission = Literal["straight"] | Trial | Wait | Pause | Refusal


class Shapes:
    """What is known of shapes and queries, in constant memory."""

    def __init__(self, heard_s: Hearing, records_max: int = RECORDS_MAX) -> None:
        """Nothing is known at first, and never of more than ``records_max``."""
        self.canaries = 0
        self.refused = 0
        self._heard_s = heard_s
        self._records_max = records_max
        self._records: OrderedDict[bytes, Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def quarantined(self, now: float) -> int:
        """How many shapes and queries are refused at present."""
        return sum(now < record.until_s for record in self._records.values())

    def admit(self, subject: Subject, now: float, waited: Trial | None = None) -> Admission:
        """Say how a query may go to the leaves. A Trial must be released, whatever comes of it.

        ``waited`` is the trial that the query has waited for, if any: where it was one of the very
        same query, its verdict is enough, or the dangerous would go one after the other.
        """
        if waited is not None and waited.passed and waited.subject.words == subject.words:
            return "straight"
        shape = self._known(subject.shape, now)
        if not shape.proven:
            return self._examine(subject, shape, now, whole_shape=True)
        if subject.words not in self._records and not subject.dangerous:
            return "straight"
        words = self._known(subject.words, now)
        if words.proven and not subject.dangerous:
            return "straight"
        return self._examine(subject, words, now, whole_shape=False)

    def send(self, trial: Trial, attempts: Sequence[Attempt]) -> None:
        """Note that a canary is sent; ``attempts`` are those made for it, as they come."""
        self.canaries += 1
        trial.attempts = attempts

    def condemns(self, trial: Trial, now: float) -> bool:
        """Learn from the trial's latest canary; return whether its suspect is refused now."""
        if trial.attempts:
            silences_max = 1 if trial.subject.dangerous else SILENCES_MAX
            finding = judge(trial.attempts[-1], now, self._heard_s)
            _learn(trial.record, finding, now, silences_max)
            trial.passed = finding == "answered"
        return now < trial.record.until_s

    def release(self, trial: Trial, now: float) -> None:
        """End a trial. A canary that its leaf still owes is remembered: it may yet do harm."""
        record = trial.record
        record.trial = None
        if trial.attempts and trial.attempts[-1].fate == "in_flight":
            record.left, record.left_s = trial.attempts[-1], now

    def watch(self, subject: Subject, attempts: Sequence[Attempt], now: float) -> None:
        """Learn from what came of a query that went to all leaves.

        One that was at work on a leaf that was lost is tried alone the next time. One that was
        moved to another replica and lost that one too is refused from now on.
        """
        lost = [attempt.slot for attempt in attempts if attempt.reason == "gone"]
        if not lost:
            return
        record = self._known(subject.words, now)
        record.proven = False
        if len(set(lost)) < len(lost):
            _quarantine(record, "killed", now)

    def refusal(self, trial: Trial, now: float) -> Refusal:
        """Return what a query is told whose own canary was condemned."""
        return self._refusal(trial.record, now, whole_shape=trial.whole_shape)

    # --- records ---

    def _known(self, key: bytes, now: float) -> Record:
        """Return the record of a key, up to date and the last to be forgotten."""
        record = self._records.setdefault(key, Record())
        self._records.move_to_end(key)
        if len(self._records) > self._records_max:
            self._records.popitem(last=False)
        if record.left is not None and record.left.fate != "in_flight":
            left, record.left = record.left, None
            finding = judge(left, now, self._heard_s)
            # As of then: a quarantine may be over before anybody asks.
            _learn(record, finding, left.ended_s, SILENCES_MAX)
        return record

    def _examine(
        self, subject: Subject, record: Record, now: float, *, whole_shape: bool
    ) -> Admission:
        if record.trial is not None:
            return Wait(record.trial)
        if now >= record.until_s and _is_fresh(record.left, now):
            return Pause()
        if now < record.until_s or self._holds_up(record, now):
            return self._refusal(record, now, whole_shape=whole_shape)
        record.trial = Trial(subject, record, whole_shape)
        return record.trial

    def _holds_up(self, record: Record, now: float) -> bool:
        """Whether a leaf works on a canary that was given up: it would have ended one that only
        waited, for it has been heard of since the cancel must have reached it.
        """
        left = record.left
        return (
            left is not None
            and min(now, self._heard_s(left.leaf)) >= record.left_s + CANCEL_S
            and now < record.left_s + QUARANTINE_S_MAX
        )

    def _refusal(self, record: Record, now: float, *, whole_shape: bool) -> Refusal:
        self.refused += 1
        if now < record.until_s:
            return Refusal(whole_shape, CAUSES[record.cause], record.until_s - now)
        return Refusal(whole_shape, CAUSES["stalled"], QUARANTINE_S)


def judge(attempt: Attempt, now: float, heard_s: Hearing) -> Finding:
    """Say what has come of a canary's attempt so far; see the module's table."""
    match attempt.fate:
        case "won" | "lost":
            return "answered"
        case "in_flight":
            alive_s = min(now, heard_s(attempt.leaf)) - attempt.sent_s
            return "stalled" if alive_s >= STALL_S else "open"
        case "failed" | "cancelled":
            if attempt.leaf_gone:
                return _loss(attempt, heard_s)
            return "answered" if attempt.fate == "cancelled" and attempt.service_us else "refused"
        case _:
            assert_never(attempt.fate)


def _is_fresh(left: Attempt | None, now: float) -> bool:
    """Whether a canary that was given up may well be an ordinary one that is not done yet."""
    return left is not None and now < left.sent_s + STALL_S


def _loss(attempt: Attempt, heard_s: Hearing) -> Finding:
    return "silent" if attempt.ended_s - heard_s(attempt.leaf) >= SILENT_S else "killed"


def _learn(record: Record, finding: Finding, now: float, silences_max: int) -> None:
    match finding:
        case "answered":
            record.proven = True
            record.until_s = record.span_s = 0.0
            record.silences = 0
        case "killed" | "stalled":
            _quarantine(record, finding, now)
        case "silent":
            record.silences += 1
            if record.silences >= silences_max:
                _quarantine(record, finding, now)
        case "refused":
            if record.cause == "stalled":
                record.until_s = 0.0
        case "open":
            pass
        case _:
            assert_never(finding)


def _quarantine(record: Record, cause: Finding, now: float) -> None:
    record.proven = False
    record.silences = 0
    record.cause = cause
    record.span_s = min(QUARANTINE_S_MAX, 2.0 * record.span_s or QUARANTINE_S)
    record.until_s = now + record.span_s
