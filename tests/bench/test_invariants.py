"""A product that is broken on purpose: the swarm's rules find it, within a few seeds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from random import Random
from typing import Any, Final, Protocol

import pytest

import root.answer
import root.race
import root.ranking
from bench.simulation.invariants import breaches
from bench.simulation.scripted import Script
from bench.simulation.swarm import simulate
from bench.simulation.trouble import Trouble
from root.budget import Budget
from root.gather import Action, CallerLeft, Event, Gather
from root.pursuit import Pursuit
from root.race import Attempt, Race
from root.ranking import Leaf
from root.scatter import Flight

SEEDS: Final = 60
RARE: Final = {"push_back_is_ignored": 120, "push_back_is_never_forgotten": 310}
"""Breaches that take a coincidence: where to begin looking, so that the search is short."""


class Patch(Protocol):
    """Breaks the product."""

    __name__: str

    def __call__(self, patch: pytest.MonkeyPatch, /) -> None:
        """Break it until the test is over."""


def hedges_go_anywhere(patch: pytest.MonkeyPatch) -> None:
    """To replicas that have the work already, too."""
    choose = root.ranking.choose

    def anywhere(
        replicas: Sequence[Leaf], _: Sequence[Leaf], random: Random, now: float
    ) -> Leaf | None:
        return choose(replicas, (), random, now)

    patch.setattr(root.race, "choose", anywhere)


def lost_leaves_are_chosen(patch: pytest.MonkeyPatch) -> None:
    """As if they were there."""
    choose = root.ranking.choose

    def blindly(
        replicas: Sequence[Leaf], tried: Sequence[Leaf], random: Random, now: float
    ) -> Leaf | None:
        untried = [leaf for leaf in replicas if leaf not in tried]
        return choose(replicas, tried, random, now) or (untried[0] if untried else None)

    patch.setattr(root.race, "choose", blindly)


def shards_are_merged_twice(patch: pytest.MonkeyPatch) -> None:
    """Those that took more than one attempt."""
    decide = Gather._decide

    def twice(self: Gather, now: float) -> None:
        decide(self, now)
        assert self.outcome is not None
        if len(self.attempts) > self.legs:
            self.outcome.replies.extend(self.outcome.replies[:1])

    patch.setattr(Gather, "_decide", twice)


def late_answers_count(patch: pytest.MonkeyPatch) -> None:
    """An answer after the first replaces it."""
    replied = Race.replied

    def replaced(self: Race, *arguments: Any) -> Sequence[Attempt]:
        self.reply = None
        return replied(self, *arguments)

    patch.setattr(Race, "replied", replaced)


def nothing_is_cancelled(patch: pytest.MonkeyPatch) -> None:
    """Losers run on."""
    patch.setattr(Race, "_cancel_rest", lambda *_, **__: ())


def budgets_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    """There is always another token."""
    patch.setattr(Budget, "spend", lambda *_, **__: True)


def push_back_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Hedging goes on while leaves are busy."""
    patch.setattr(Budget, "resting", lambda *_: False)


def push_back_is_never_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A leaf that was busy once ends hedging."""
    patch.setattr(Budget, "resting", lambda self, _: self._pushed_back_until_s > 0.0)


def deadlines_are_late(patch: pytest.MonkeyPatch) -> None:
    """By a tenth of a second."""
    made = Gather.__init__

    def late(self: Gather, *arguments: Any) -> None:
        made(self, *arguments)
        self.deadline_s += 0.1

    patch.setattr(Gather, "__init__", late)


def callers_who_leave_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """What they asked for goes on."""
    handle = Gather.handle

    def heedless(self: Gather, event: Event, now: float) -> Sequence[Action]:
        return () if isinstance(event, CallerLeft) else handle(self, event, now)

    patch.setattr(Gather, "handle", heedless)


def what_is_owed_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A cancelled attempt counts as outstanding for ever."""
    end = Race._end

    def keep(self: Race, attempt: Attempt, *arguments: Any) -> None:
        end(self, attempt, *arguments)
        attempt.leaf.outstanding += attempt.cancel_sent

    patch.setattr(Race, "_end", keep)


def failures_are_final(patch: pytest.MonkeyPatch) -> None:
    """No failure is followed by another attempt."""
    patch.setattr(Race, "_next_replica", lambda *_: None)


def alarms_are_left_on(patch: pytest.MonkeyPatch) -> None:
    """A flight that has landed keeps its timer."""
    patch.setattr(Flight, "_disarm", lambda *_: None)


def hits_are_out_of_order(patch: pytest.MonkeyPatch) -> None:
    """The page is turned round."""
    page = root.answer._page
    patch.setattr(root.answer, "_page", lambda *arguments: page(*arguments)[::-1])


def silence_about_what_is_missing(patch: pytest.MonkeyPatch) -> None:
    """An answer in part is called whole."""
    patch.setattr(Pursuit, "note", lambda self, phase: self.phases.append(phase))


def trouble_has_no_end(patch: pytest.MonkeyPatch) -> None:
    """What leaves began to do in the trouble they do for ever."""

    async def say(self: Trouble, number: int, script: Script, _: float) -> None:
        self._fleet[number].script = script

    patch.setattr(Trouble, "_say", say)
    patch.setattr(Trouble, "_mend", lambda *_: None)


@pytest.mark.parametrize(
    ("break_it", "invariant"),
    [
        (hedges_go_anywhere, "no replica is asked twice"),
        (lost_leaves_are_chosen, "no lost leaf is asked"),
        (shards_are_merged_twice, "one answer a shard"),
        (late_answers_count, "one answer a shard"),
        (nothing_is_cancelled, "losers are cancelled at once"),
        (budgets_are_not_kept, "the budget is kept"),
        (push_back_is_ignored, "hedges are allowed"),
        (push_back_is_never_forgotten, "hedging returns"),
        (deadlines_are_late, "it ends by its deadline"),
        (callers_who_leave_are_ignored, "its work ends with it"),
        (what_is_owed_is_forgotten, "every attempt is accounted for"),
        (failures_are_final, "a shard is missing for a cause"),
        (alarms_are_left_on, "nothing is left alive"),
        (hits_are_out_of_order, "the page is the oracles"),
        (silence_about_what_is_missing, "the coverage is true"),
        (trouble_has_no_end, "with time and replicas it is complete"),
        (trouble_has_no_end, "latency returns"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_broken_is_found(
    break_it: Patch, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rule that it breaks."""
    break_it(monkeypatch)
    first = RARE.get(break_it.__name__, 0)
    seeds = range(first, first + SEEDS)
    found = chain.from_iterable(breaches(simulate(seed)) for seed in seeds)
    assert any(breach.invariant == invariant for breach in found)
