"""Trouble on demand: what is to happen to each leg that reaches a leaf.

A `Plan` is an ordered list of rules. A rule has a kind of trouble, says how long it lasts
where that matters, and when, where and how often it strikes:

    transit   the leg's answer is held back on its way; nobody is occupied by that
    busy      a worker is occupied before it begins the leg, so that queues form
    block     the event loop stands still; nobody gets anything from the leaf meanwhile
    fail      the worker, having been busy, gives a refusal instead of an answer
    refuse    the leg is refused as it arrives
    hang      the leg is not answered until it is cancelled or its deadline has passed
    garbage   the answer cannot be read

Durations of several rules add up; of those that end a leg the first in the plan decides.

`Interference` is a plan in force on one leaf. What strikes a leg is a function of plan, seed,
leaf, query and shard, whatever else arrives: a run with hedging and one without meet the very
same trouble, and what another replica would have drawn can be worked out. What strikes with a
shared draw is one of plan, seed and query: every leg on every leaf has the same.

Pure: no clock, no loop, no log, and no chance but what the seed decides. Time is an argument
in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Annotated, Final, Literal, NamedTuple, get_args

import msgspec

from leaf.chance import KeyedRandom, key_of
from leaf.laws import LONGEST_S, Law
from leaf.protocol import Kind, RefusalReason

RULES_MAX: Final = 100
"""A plan that a person can still follow is far shorter."""

RETRY_MS: Final = 10
"""The hint with a ``busy`` that is no sign of a queue."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Spell = Annotated[float, msgspec.Meta(gt=0.0, le=1e9)]
Factor = Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Numbers = Annotated[tuple[Number, ...], msgspec.Meta(min_length=1)]
Kinds = Annotated[tuple[Kind, ...], msgspec.Meta(min_length=1)]
Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


# --- what arrives, and what strikes it ----------------------------------------------------


class Arrival(NamedTuple):
    """Legs of one ask, as the rules see them.

    ``query`` is the root's number of the query; without one, each arrival draws for itself, and
    what is shared is shared by all that ask the same: ``body`` is a checksum of that. ``words``
    are the words in it, in lower case. ``alone``: not part of a fan-out.
    """

    kind: Kind
    shards: Sequence[int]
    query: int | None = None
    alone: bool = False
    body: int = 0
    words: frozenset[str] = frozenset()


class Trouble(msgspec.Struct, gc=False):
    """What one leg meets. ``ending`` is how it ends if not by its answer."""

    transit_s: float = 0.0
    busy_s: float = 0.0
    block_s: float = 0.0
    ending: Fail | Refuse | Hang | Garbage | None = None


# --- when and where -----------------------------------------------------------------------


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a rule is in force, in seconds since its plan is: from ``from_s`` until ``to_s``,
    and in that time always, or for the first ``lasts_s`` of every ``every_s``.
    """

    from_s: Seconds = 0.0
    to_s: Seconds | None = None
    every_s: Spell | None = None
    lasts_s: Spell | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for half a spell, or one that is longer than its period."""
        if (self.every_s is None) != (self.lasts_s is None):
            message = "every_s and lasts_s are given together"
            raise ValueError(message)
        if self.every_s and self.lasts_s and self.lasts_s > self.every_s:
            message = f"lasts_s must be at most every_s, {self.every_s:g}, not {self.lasts_s:g}"
            raise ValueError(message)

    def holds(self, elapsed_s: float) -> bool:
        """Whether this is the time."""
        since_s = elapsed_s - self.from_s
        if since_s < 0.0 or (self.to_s is not None and elapsed_s >= self.to_s):
            return False
        if self.every_s is None or self.lasts_s is None:
            return True
        return math.fmod(since_s, self.every_s) < self.lasts_s


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom a rule strikes: what is not named is not asked about.

    ``leaves`` are ordinals. ``words``: only queries with one of these. ``alone``: only requests
    to one leaf alone, or only those that are part of a fan-out.
    """

    leaves: Numbers | None = None
    shards: Numbers | None = None
    kinds: Kinds | None = None
    words: Words | None = None
    alone: bool | None = None

    def covers(self, leaf: int, arrival: Arrival) -> bool:
        """Whether an ask on a leaf is meant; which of its legs, ``shards`` says."""
        return (
            (self.leaves is None or leaf in self.leaves)
            and (self.kinds is None or arrival.kind in self.kinds)
            and (self.alone is None or self.alone is arrival.alone)
            and (self.words is None or any(word.lower() in arrival.words for word in self.words))
        )


# --- rules --------------------------------------------------------------------------------


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Strikes each leg with this probability; with ``shared``, all legs of a query or none."""

    name: str = ""
    probability: Share = 1.0
    shared: bool = False
    when: Schedule = Schedule()
    where: Scope = Scope()


class Outliers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """So large a share of the draws is ``factor`` times as long."""

    share: Share
    factor: Factor


class Lasting(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Trouble that takes time.

    With ``share_power``, a leg gets a part of what was drawn: a uniform number to this power.
    Of a shared draw each leg then has a part of its own.
    """

    takes: Law
    outliers: Outliers | None = None
    share_power: Factor = 0.0

    def draw_s(self, random: Random) -> float:
        """Draw a duration in seconds, before it is shared out."""
        lasts_s = self.takes.draw_s(random)
        if self.outliers is not None and random.random() < self.outliers.share:
            lasts_s *= self.outliers.factor
        return min(lasts_s, LONGEST_S)


class Transit(Lasting, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="transit"):
    """The answer is held back."""


class Busy(Lasting, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="busy"):
    """A worker is occupied."""


class Block(Lasting, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="block"):
    """The event loop stands still: once for an ask, for the longest that one of its legs draws."""


class Fail(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="fail"):
    """The worker's answer is a refusal."""

    reason: RefusalReason = "error"


class Refuse(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="refuse"):
    """The leg is not admitted."""

    reason: RefusalReason = "busy"
    retry_ms: Annotated[int, msgspec.Meta(ge=0, le=60_000)] = RETRY_MS


class Hang(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hang"):
    """Nothing is heard of the leg."""


class Garbage(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="garbage"):
    """Bytes that are no frame, which costs the leaf its connection, or hits without sense."""

    what: Literal["frame", "hits"] = "hits"


AnyRule = Transit | Busy | Block | Fail | Refuse | Hang | Garbage


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ordered list of rules, and what they are about in a sentence."""

    about: Name
    rules: Annotated[tuple[AnyRule, ...], msgspec.Meta(min_length=1, max_length=RULES_MAX)]


# --- a plan in force ----------------------------------------------------------------------

KINDS: Final = get_args(Kind)

NUMBERED, COUNTED, NAMED = range(3)
"""By what a query is known: its number, the arrivals before it, or what it asks for."""


class Interference:
    """A plan in force on the leaf with this ordinal since ``began_s``."""

    def __init__(self, plan: Plan, *, leaf: int, seed: int, began_s: float) -> None:
        self.plan = plan
        self.reads_words = any(rule.where.words is not None for rule in plan.rules)
        self._leaf = leaf
        self._rules = [(rule, key_of(seed, number)) for number, rule in enumerate(plan.rules)]
        self._began_s = began_s
        self._arrivals = 0
        self._random = KeyedRandom()

    def meet(self, arrival: Arrival, now: float) -> list[Trouble]:
        """Return what each leg of an ask meets that arrives now."""
        troubles = [Trouble() for _ in arrival.shards]
        elapsed_s = now - self._began_s
        for rule, key in self._rules:
            if rule.when.holds(elapsed_s) and rule.where.covers(self._leaf, arrival):
                if rule.shared:
                    self._strike_all(rule, key, arrival, troubles)
                else:
                    self._strike_each(rule, key, arrival, troubles)
        self._arrivals += 1
        return troubles

    def _strike_all(
        self, rule: AnyRule, key: int, arrival: Arrival, troubles: list[Trouble]
    ) -> None:
        random = self._random
        random.begin(key_of(*_query(arrival, NAMED, arrival.body), beginning=key))
        if random.random() >= rule.probability:
            return
        lasts_s = rule.draw_s(random) if isinstance(rule, Lasting) else 0.0
        for leg_key, trouble in self._legs(rule, key, arrival, troubles):
            random.begin(leg_key)
            _add(rule, trouble, lasts_s * _part(rule, random))

    def _strike_each(
        self, rule: AnyRule, key: int, arrival: Arrival, troubles: list[Trouble]
    ) -> None:
        random = self._random
        for leg_key, trouble in self._legs(rule, key, arrival, troubles):
            random.begin(leg_key)
            if rule.probability >= 1.0 or random.random() < rule.probability:
                lasts_s = rule.draw_s(random) if isinstance(rule, Lasting) else 0.0
                _add(rule, trouble, lasts_s * _part(rule, random))

    def _legs(
        self, rule: AnyRule, key: int, arrival: Arrival, troubles: list[Trouble]
    ) -> Iterator[tuple[int, Trouble]]:
        """Yield the legs that a rule is about, each with the key of its draws."""
        beginning = key_of(*_query(arrival, COUNTED, self._arrivals), self._leaf, beginning=key)
        shards = rule.where.shards
        for shard, trouble in zip(arrival.shards, troubles, strict=True):
            if shards is None or shard in shards:
                yield key_of(shard, beginning=beginning), trouble


def _query(arrival: Arrival, known_by: int, otherwise: int) -> tuple[int, int, int]:
    """Return what tells a phase of a query from others: by its number if it has one."""
    kind = KINDS.index(arrival.kind)
    if arrival.query is None:
        return kind, known_by, otherwise
    return kind, NUMBERED, arrival.query


def _part(rule: AnyRule, random: Random) -> float:
    if isinstance(rule, Lasting) and rule.share_power:
        return float(random.random() ** rule.share_power)
    return 1.0


def _add(rule: AnyRule, trouble: Trouble, lasts_s: float) -> None:
    match rule:
        case Transit():
            trouble.transit_s += lasts_s
        case Busy():
            trouble.busy_s += lasts_s
        case Block():
            trouble.block_s += lasts_s
        case Fail() | Refuse() | Hang() | Garbage():
            trouble.ending = trouble.ending or rule
