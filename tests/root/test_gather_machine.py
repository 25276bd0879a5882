"""Gathers under arbitrary events: what holds whatever leaves, callers and clocks do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from root.budget import BudgetTerms
from root.conduct import CONDUCT, LOST, FailureReason
from root.gather import (
    Action,
    AlarmRang,
    AttemptFailed,
    AttemptsReplied,
    CallerLeft,
    CancelAttempt,
    Event,
    Gather,
    Outcome,
    SendAttempt,
)
from root.hedging import Fixed, Off, Policy, Quantile
from root.latency import Latency
from root.probation import PROBE_EVERY_S, UNPROBED_S, Probation
from root.race import FATES, Attempt, IllegalEvent, Terms
from tests.root.conftest import NOTHING_EXTRA, PLENTY, history_of, leaves, terms

LEAVES = 4
GATHERS_MAX = 4
TIGHT = BudgetTerms(max_extra_load=0.2, floor_per_s=1.0, burst=2.0)

policies = st.sampled_from([Off(), Fixed(0.0), Fixed(0.02), Quantile(0.9)])
replica_sets = st.lists(
    st.lists(st.integers(0, LEAVES - 1), unique=True, max_size=LEAVES), min_size=1, max_size=4
)


class Gathers(RuleBasedStateMachine):
    """Several gathers share leaves, budget and history; a scripted transport carries legs."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.leaves = leaves(LEAVES)
        self.terms: list[Terms] = []
        self.gathers: list[Gather] = []
        self.flying: list[tuple[Gather, Attempt]] = []
        self.ended: list[tuple[Gather, Attempt]] = []
        self.cancelled: list[Attempt] = []
        self.answers: dict[int, list[tuple[Attempt, str]]] = {}
        self.first_outcomes: dict[int, tuple[Outcome, Outcome]] = {}

    @initialize(
        budget=st.sampled_from([PLENTY, TIGHT, NOTHING_EXTRA]),
        history=st.sampled_from([None, 0.001, 0.01]),
        attempts_max=st.integers(1, 3),
        seed=st.integers(0, 3),
        sick=st.sets(st.integers(0, LEAVES - 1)),
    )
    def begin(
        self,
        budget: BudgetTerms,
        history: float | None,
        attempts_max: int,
        seed: int,
        sick: set[int],
    ) -> None:
        known = Latency(0.0) if history is None else history_of(history)
        self.base = terms(budget=budget, history=known, attempts_max=attempts_max, seed=seed)
        self.base.probation = Probation(self.base.budget, 0.0)
        for number in sorted(sick):
            self.leaf_goes_on_probation(number)

    # --- what happens ---

    @precondition(lambda self: len(self.gathers) < GATHERS_MAX)
    @rule(shards=replica_sets, policy=policies, left_s=st.sampled_from([0.0, 0.05, 1.0]))
    def ask(self, shards: list[list[int]], policy: Policy, left_s: float) -> None:
        base = self.base
        given = Terms(
            *(base.random, base.budget, base.ledger, base.history, base.attempts_max),
            probation=base.probation,
        )
        replicas = [[self.leaves[i] for i in held] for held in shards]
        gather = Gather(enumerate(replicas), policy, given, self.now + left_s)
        self.gathers.append(gather)
        self.answers[id(gather)] = []
        self.perform(gather, gather.start(self.now))

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def leaf_answers(self, data: st.DataObject) -> None:
        gather, attempt = self.land(data)
        answer = f"{attempt.shard}/{attempt.number}"
        if not self.race_is_decided(gather, attempt):
            self.answers[id(gather)].append((attempt, answer))
        self.tell(gather, AttemptsReplied([(attempt, answer)]))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), reason=st.sampled_from([r for r in CONDUCT if r not in LOST]))
    def leaf_refuses(self, data: st.DataObject, reason: FailureReason) -> None:
        gather, attempt = self.land(data)
        self.tell(gather, AttemptFailed(attempt, reason, "in words"))

    @rule(number=st.integers(0, LEAVES - 1), reason=st.sampled_from(LOST))
    def leaf_is_lost(self, number: int, reason: FailureReason) -> None:
        leaf = self.leaves[number]
        leaf.connected = False
        for gather, attempt in [pair for pair in self.flying if pair[1].leaf is leaf]:
            self.flying.remove((gather, attempt))
            self.ended.append((gather, attempt))
            self.tell(gather, AttemptFailed(attempt, reason))

    @rule(number=st.integers(0, LEAVES - 1))
    def leaf_returns(self, number: int) -> None:
        if not self.leaves[number].connected:
            self.leaves[number].rejoin(self.now, 0.01)

    @rule(number=st.integers(0, LEAVES - 1))
    def leaf_goes_on_probation(self, number: int) -> None:
        leaf = self.leaves[number]
        if leaf.preferred:
            assert self.base.probation is not None
            self.base.probation.put(leaf, self.now - 2 * PROBE_EVERY_S)

    @precondition(lambda self: self.gathers)
    @rule(data=st.data())
    def alarm_rings_on_time(self, data: st.DataObject) -> None:
        gather = data.draw(st.sampled_from(self.gathers))
        if gather.wakeup is not None:
            self.now = max(self.now, gather.wakeup)
        self.tell(gather, AlarmRang())
        assert gather.wakeup is None or gather.wakeup > self.now
        assert self.now < gather.deadline_s or gather.outcome is not None

    @precondition(lambda self: self.gathers)
    @rule(data=st.data())
    def alarm_rings_whenever(self, data: st.DataObject) -> None:
        self.tell(data.draw(st.sampled_from(self.gathers)), AlarmRang())

    @precondition(lambda self: self.gathers)
    @rule(data=st.data())
    def caller_leaves(self, data: st.DataObject) -> None:
        gather = data.draw(st.sampled_from(self.gathers))
        self.tell(gather, CallerLeft())
        assert gather.outcome is not None

    @rule(step_s=st.sampled_from([0.0005, 0.01, 0.06, 2.0]))
    def time_passes(self, step_s: float) -> None:
        self.now += step_s

    @precondition(lambda self: self.ended)
    @rule(data=st.data(), answered=st.booleans())
    def transport_reports_an_end_twice(self, data: st.DataObject, answered: bool) -> None:
        gather, attempt = data.draw(st.sampled_from(self.ended))
        event: Event = (
            AttemptsReplied([(attempt, "again")]) if answered else AttemptFailed(attempt, "error")
        )
        before = self.everything()
        with pytest.raises(IllegalEvent):
            gather.handle(event, self.now)
        assert self.everything() == before

    # --- the scripted transport ---

    def land(self, data: st.DataObject) -> tuple[Gather, Attempt]:
        pair = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        self.ended.append(pair)
        return pair

    def tell(self, gather: Gather, event: Event) -> None:
        self.perform(gather, gather.handle(event, self.now))

    def perform(self, gather: Gather, actions: Sequence[Action]) -> None:
        for action in actions:
            attempt = action.attempt
            if isinstance(action, SendAttempt):
                assert attempt.leaf.connected
                assert self.now < gather.deadline_s
                assert gather.outcome is None
                assert gather.attempts[attempt.number] is attempt
                self.flying.append((gather, attempt))
            else:
                assert isinstance(action, CancelAttempt)
                assert any(attempt is flying for _, flying in self.flying)
                assert not any(attempt is before for before in self.cancelled)
                self.cancelled.append(attempt)

    def race_is_decided(self, gather: Gather, attempt: Attempt) -> bool:
        answered = [earlier.slot for earlier, _ in self.answers[id(gather)]]
        return gather.outcome is not None or attempt.slot in answered

    def everything(self) -> object:
        return (
            [(repr(g.attempts), repr(g.outcome), g.wakeup, g.open_legs) for g in self.gathers],
            [(leaf.outstanding, leaf.cost(self.now)) for leaf in self.leaves],
            [repr(self.base.ledger), self.base.history.samples, self.base.budget.level(self.now)],
        )

    # --- what always holds ---

    @invariant()
    def an_outcome_never_changes(self) -> None:
        for gather in self.gathers:
            if gather.outcome is not None:
                known, copy = self.first_outcomes.setdefault(
                    id(gather), (gather.outcome, deepcopy(gather.outcome))
                )
                assert gather.outcome is known
                assert known == copy

    @invariant()
    def each_shard_is_answered_once_or_missing(self) -> None:
        for gather in self.gathers:
            if gather.outcome is None:
                continue
            answered = [shard for shard, _ in gather.outcome.replies]
            assert sorted([*answered, *gather.outcome.missing]) == list(range(gather.legs))
            first = sorted(self.answers[id(gather)], key=lambda pair: pair[0].slot)
            assert gather.outcome.replies == [(a.shard, answer) for a, answer in first]
            assert [a for a in gather.attempts if a.fate == "won"] == [
                a for a in gather.attempts if any(a is winner for winner, _ in first)
            ]

    @invariant()
    def no_race_tries_a_leaf_twice(self) -> None:
        for gather in self.gathers:
            tried = Counter((attempt.slot, attempt.leaf.name) for attempt in gather.attempts)
            assert max(tried.values(), default=1) == 1

    @invariant()
    def attempts_are_limited(self) -> None:
        for gather in self.gathers:
            counted = [a for a in gather.attempts if a.reason not in LOST and a.kind != "probe"]
            made = Counter(a.slot for a in counted)
            assert max(made.values(), default=0) <= gather.terms.attempts_max

    @invariant()
    def every_attempt_is_accounted_for(self) -> None:
        if not self.gathers:
            return
        ledger = self.base.ledger
        sent = [attempt for gather in self.gathers for attempt in gather.attempts]
        fates = Counter(attempt.fate for attempt in sent)
        assert sum(ledger.sent.values()) == len(sent)
        assert ledger.ended == {fate: fates[fate] for fate in FATES}
        assert ledger.in_flight == fates["in_flight"] == len(self.flying)
        assert all(g.tally.sent == len(g.attempts) for g in self.gathers if g.outcome)
        assert sum(g.tally.hedged for g in self.gathers) == ledger.sent["hedge"]
        assert sum(g.tally.failed_over for g in self.gathers) == ledger.sent["failover"]
        assert sum(g.tally.cancelled for g in self.gathers) == len(self.cancelled)
        assert sum(g.tally.denied for g in self.gathers) == ledger.denied
        assert sum(ledger.failures.values()) == fates["failed"]

    @invariant()
    def leaves_owe_what_is_in_flight(self) -> None:
        owed = Counter(attempt.leaf.name for _, attempt in self.flying)
        for leaf in self.leaves:
            assert leaf.outstanding == owed[leaf.name] >= 0

    @invariant()
    def the_next_alarm_is_known_until_it_is_decided(self) -> None:
        for gather in self.gathers:
            assert (gather.wakeup is None) == (gather.outcome is not None)
            assert gather.wakeup is None or gather.wakeup <= gather.deadline_s

    @invariant()
    def what_is_open_has_an_attempt_in_flight(self) -> None:
        for gather in self.gathers:
            racing = {
                attempt.slot
                for flown_by, attempt in self.flying
                if flown_by is gather
                and not attempt.cancel_sent
                and not gather._races[attempt.slot].decided
            }
            assert gather.open_legs == len(racing)

    @invariant()
    def a_leaf_owes_one_probe_at_most(self) -> None:
        probes = Counter(a.leaf.name for _, a in self.flying if a.kind == "probe")
        assert max(probes.values(), default=0) <= 1 + int(self.now / UNPROBED_S)

    @invariant()
    def races_know_what_is_in_flight(self) -> None:
        for gather in self.gathers:
            racing = Counter(
                attempt.slot
                for attempt in gather.attempts
                if attempt.fate == "in_flight" and not attempt.cancel_sent
            )
            assert all(race.in_flight == racing[race.slot] for race in gather._races)

    def teardown(self) -> None:
        """When every attempt has ended, all is decided and nobody owes anything."""
        while self.flying:
            gather, attempt = self.flying.pop()
            self.tell(gather, AttemptFailed(attempt, "expired"))
        assert all(gather.outcome is not None for gather in self.gathers)
        assert all(leaf.outstanding == 0 for leaf in self.leaves)
        if self.gathers:
            assert self.base.ledger.in_flight == 0


TestGathers = Gathers.TestCase
TestGathers.settings = settings(max_examples=150, stateful_step_count=40)
