"""What must hold of every race: one shard of one gather. See ``bench.simulation.invariants``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bench.simulation.evidence import FREE, INSTANT_S, Case, Evidence
from root.budget import PUSH_BACK_S
from root.conduct import CONDUCT
from root.ledger import FATES, SECOND_ATTEMPTS
from root.race import Attempt

HEDGELESS: Final = frozenset({"off", "shadow"})
"""Policies by which no attempt is ever late."""

HOPELESS: Final = frozenset({"bad_query"})
"""What fails for these, no other replica can do."""


def one_answer_a_shard(_: Evidence, case: Case) -> Iterator[str]:
    """Each shard has one answer and one winner, or none and a reason."""
    answers = [shard for shard, _ in case.outcome.replies].count(case.shard)
    won = sum(attempt.fate == "won" for attempt in case.attempts)
    if answers != won or answers + (case.shard in case.outcome.missing) != 1:
        yield f"{answers} answers, {won} winners, missing: {case.outcome.missing.get(case.shard)}"


def no_replica_is_asked_twice(evidence: Evidence, case: Case) -> Iterator[str]:
    """And none that does not hold the shard."""
    names = [attempt.leaf.name for attempt in case.attempts if not attempt.dropped]
    if len(set(names)) < len(names) or not evidence.holders(case.shard).issuperset(names):
        yield f"asked {', '.join(names)}; held by {sorted(evidence.holders(case.shard))}"


def no_lost_leaf_is_asked(evidence: Evidence, case: Case) -> Iterator[str]:
    """A leaf without a connection would never answer."""
    for attempt in case.attempts:
        if attempt.leg in evidence.run.fleet.astray:
            yield f"{attempt.kind} sent to {attempt.leaf.name}, which is not connected"


def nothing_is_sent_too_late(_: Evidence, case: Case) -> Iterator[str]:
    """Neither from the deadline on, nor once there is an answer."""
    for attempt in case.attempts:
        if attempt.sent_s >= case.deadline_s:
            yield f"{attempt.kind} sent {attempt.sent_s - case.deadline_s} s after the deadline"
        if attempt.sent_s > case.decided_s:
            yield f"{attempt.kind} sent {attempt.sent_s - case.decided_s} s after the decision"


def losers_are_cancelled_at_once(evidence: Evidence, case: Case) -> Iterator[str]:
    """What is in flight when its race is decided is told so then, and nothing else is. A probe
    is measured to its end, or to that of its query.
    """
    for attempt in case.attempts:
        cancelled_s = evidence.run.fleet.cancelled_s.get(attempt.leg)
        if attempt.kind == "probe":
            if cancelled_s not in {None, case.outcome.decided_s}:
                yield f"probe cancelled at {cancelled_s} s, decided at {case.outcome.decided_s} s"
            continue
        if attempt.dropped:  # its twin had begun, whatever became of the race
            continue
        if cancelled_s is None and attempt.ended_s > case.decided_s:
            yield f"{attempt.kind} on {attempt.leaf.name} was not cancelled"
        if cancelled_s is not None and cancelled_s != case.decided_s:
            yield f"cancelled at {cancelled_s} s, decided at {case.decided_s} s"
        if (cancelled_s is not None) != (attempt.fate in {"cancelled", "lost"}):
            yield f"cancelled at {cancelled_s} s, and it has {attempt.fate}"


def every_attempt_has_one_fate(_: Evidence, case: Case) -> Iterator[str]:
    """And a reason where it failed or was dropped, and there only."""
    for attempt in case.attempts:
        if attempt.fate not in FATES:
            yield f"{attempt.kind} on {attempt.leaf.name} is {attempt.fate}"
        elif (attempt.fate == "failed" or attempt.dropped) != (attempt.reason is not None):
            yield f"{attempt.fate} for {attempt.reason}"


def hedges_are_allowed(evidence: Evidence, case: Case) -> Iterator[str]:
    """Not for batch, not by a policy without them, not beyond the limit of attempts, not alone,
    and not while leaves push back.
    """
    priority, policy = case.request.asked.priority, case.flight.gather.policy.name
    for hedge in (attempt for attempt in case.attempts if attempt.kind in SECOND_ATTEMPTS):
        if priority == "batch" or policy in HEDGELESS:
            yield f"a hedge of a {priority} search by policy {policy}"
        if case.counted_before(hedge) >= evidence.settings.attempts_max:
            yield f"{case.counted_before(hedge) + 1} attempts"
        others = [attempt for attempt in case.attempts if attempt is not hedge]
        if not any(other.sent_s <= hedge.sent_s <= other.ended_s for other in others):
            yield "a hedge with nothing in flight"
        if evidence.busy_before(hedge.sent_s, PUSH_BACK_S):
            yield f"a hedge at {hedge.sent_s} s, while leaves push back"


def failovers_follow_failures(evidence: Evidence, case: Case) -> Iterator[str]:
    """At once, where the failure allows it, within the limit of attempts."""
    for failover in (attempt for attempt in case.attempts if attempt.kind == "failover"):
        failed = case.failed_at(failover.sent_s)
        if all(attempt.reason in HOPELESS for attempt in failed):
            yield f"at {failover.sent_s} s nothing failed that another replica could do"
        counted = case.counted_before(failover)
        if case.costs(failover) and counted >= evidence.settings.attempts_max:
            yield f"{counted + 1} attempts"


def a_shard_is_missing_for_a_cause(evidence: Evidence, case: Case) -> Iterator[str]:
    """Nothing more could have been done: no time, no token, no attempt or no leaf left; or the
    search had enough.
    """
    reason = case.outcome.missing.get(case.shard)
    in_time = case.outcome.decided_s < case.deadline_s - INSTANT_S
    if reason is None or case.request.left:
        return
    if reason == "timeout" and (not in_time or _has_enough(evidence, case)):
        return
    failed = [a for a in case.attempts if a.fate == "failed" or a.dropped]
    if not failed:
        if reason != "no_replica" or not _all_tried_or_away(evidence, case):
            yield f"{reason}, and no attempt has failed"
        return
    last_s = _failed_for_good_s(case, failed)
    causes = [a.reason for a in case.failed_at(last_s) if a.reason is not None]
    if reason not in {CONDUCT[cause].missing for cause in causes}:
        yield f"{reason}, after {', '.join(causes)}"
    if last_s < case.deadline_s - INSTANT_S and not (
        _all_tried_or_away(evidence, case) or _may_not_go_on(evidence, case, last_s)
    ):
        yield f"{reason}, and there was another replica, and time, an attempt and a token for it"


def _failed_for_good_s(case: Case, failed: Sequence[Attempt]) -> float:
    """When the last failure came: the first that no other replica could mend, where nothing but
    probes was in flight then, as nobody waits for those.
    """
    for attempt in sorted(failed, key=lambda a: a.ended_s):
        waited_for = (a for a in case.attempts if a.kind != "probe" and a is not attempt)
        if attempt.reason in HOPELESS and not any(
            a.sent_s <= attempt.ended_s < a.ended_s for a in waited_for
        ):
            return attempt.ended_s
    return max(attempt.ended_s for attempt in failed)


def _all_tried_or_away(evidence: Evidence, case: Case) -> bool:
    """Whether each leaf that holds the shard was asked, or away at some time of the request."""
    away = evidence.away(case.request.arrived_s, case.decided_s)
    return evidence.holders(case.shard) <= away | {a.leaf.name for a in case.attempts}


def _has_enough(evidence: Evidence, case: Case) -> bool:
    """Whether as much was searched as is wanted, and less than all of it is."""
    wanted = evidence.wanted_share(case.request) * evidence.corpus.size
    searched = evidence.searched(case.flight, case.request)
    return case.flight.ask.kind == "search" and wanted <= searched > 0


def _may_not_go_on(evidence: Evidence, case: Case, last_s: float) -> bool:
    """Whether what failed last forbids another attempt, or there was no room for one."""
    causes = {attempt.reason for attempt in case.failed_at(last_s)}
    if sum(attempt.reason in FREE for attempt in case.attempts) > case.losses_max:
        return True
    counted = sum(
        a.reason not in FREE and a.kind != "probe" and not a.dropped for a in case.attempts
    )
    no_room = counted >= evidence.settings.attempts_max or evidence.may_be_empty(last_s)
    return bool(causes & HOPELESS) or (no_room and not causes <= FREE)


RULES: Final[tuple[Callable[[Evidence, Case], Iterator[str]], ...]] = (
    one_answer_a_shard,
    no_replica_is_asked_twice,
    no_lost_leaf_is_asked,
    nothing_is_sent_too_late,
    losers_are_cancelled_at_once,
    every_attempt_has_one_fate,
    hedges_are_allowed,
    failovers_follow_failures,
    a_shard_is_missing_for_a_cause,
)
