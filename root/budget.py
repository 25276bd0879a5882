"""How much extra load hedges and failovers may cause: a token bucket filled by successes.

Every answered leg earns ``max_extra_load`` tokens; every hedge, every probe of a leaf on
probation, and every failover after an error or a refusal, spends one. A small floor per second
lets a quiet system hedge at all (at one request a second, five per cent of it would come to one
hedge in twenty seconds), and ``burst`` bounds what can be saved up: some whole queries, unless
the operator has set it, so it follows the number of shards. So in any window of w seconds with
n answered legs

    extra attempts <= n * max_extra_load + w * floor_per_s + burst

which is what keeps a sick replica, or a slowdown of everything, from doubling the load. The last
``RESERVE_SHARE`` of it is for failovers, which an answer depends on. Nor may
a single shard get more than a few times its share of that: see ``shard_share_max``. A tied copy
takes a token too, and gives it back when one of the two copies has left its leaf's queue
unstarted: of tied requests, what is done twice is what counts as extra.

Hedging rests where the trouble is not slowness: for a while after push-back (a leaf that says
it is busy), and while more than ``FAILED_SHARE_MAX`` of recent attempts fail. Failovers go on.

The same mechanism, as a retry budget: Finagle's RetryBudget and BackupRequestFilter.
"""

from __future__ import annotations

from dataclasses import dataclass

PUSH_BACK_S = 1.0
"""How long hedging rests after a leaf said busy: long against a queue of milliseconds,
short against a person's patience. Every further busy prolongs it."""


BURST_QUERIES = 5
"""Whole queries that can be saved up for: where a query that needs it can be hedged in part
only, what it spends is wasted. At 100 shards it makes the 99th percentile 5 % better."""

BURST_MIN = 100.0
"""What a fleet of few shards can save up: its queries are small, but not its spells of trouble."""

BURST_MAX = 100_000.0

RESERVE_SHARE = 0.1
"""Of what can be saved up, so much is for failovers alone: a hedge that is not sent costs time, a
failover that is not sent costs an answer."""

CONCENTRATION = 4.0
"""How many times the share that is allowed everywhere one shard may get. Over a whole fleet the
budget would let every query hedge the same shard: one in a hundred is within any budget, doubles
that shard's load, and keeps its leaves overloaded when the cause is long gone."""

SHARD_SHARE_MIN = 0.1
"""A shard may get that much, however small the budget: now and then hedges come in a row."""

SHARD_SMOOTHING = 0.02
"""Weight of one query in a shard's share of hedges: about the last fifty count, so that a shard
is hedged some times in a row but not for long."""

FAILED_SHARE_MAX = 0.1
"""Hedging rests while more of the recent attempts fail. A fleet that is only slow fails none;
one that fails one attempt in ten has another trouble, and needs its room for failovers."""

RECENT_HALF_LIFE_S = 1.0
"""How fast what has come of attempts is forgotten: as soon as push-back is."""

RECENT_MIN = 20.0
"""So many recent attempts make a share: a single error in a quiet system says nothing."""


def burst_for(shards: int) -> float:
    """Return the tokens that can be saved up where queries are of so many legs."""
    return min(BURST_MAX, max(BURST_MIN, float(BURST_QUERIES * shards)))


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """The operator's limits. ``max_extra_load`` is a share: 0.05 is one attempt in twenty.

    ``burst`` None follows the number of shards, see ``burst_for``.
    """

    max_extra_load: float = 0.05
    floor_per_s: float = 1.0
    burst: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError, naming the term, where a limit is out of range."""
        if not 0.0 <= self.max_extra_load <= 1.0:
            raise ValueError(f"max_extra_load must be from 0 to 1, not {self.max_extra_load}")
        if not 0.0 <= self.floor_per_s <= 1000.0:
            raise ValueError(f"floor_per_s must be from 0 to 1000, not {self.floor_per_s}")
        if self.burst is None:
            return
        if not 0.0 <= self.burst <= BURST_MAX:
            raise ValueError(f"burst must be from 0 to 100000, not {self.burst}")
        if 0.0 < self.burst < 1.0:
            raise ValueError(f"burst must be 0 or at least 1, a whole token, not {self.burst}")

    @property
    def shard_share_max(self) -> float:
        """The share of a shard's recent queries that may have hedged it."""
        return max(SHARD_SHARE_MIN, CONCENTRATION * self.max_extra_load)


class _Crowd:
    """How often the shards of one collection are hedged, as a share of its recent queries."""

    __slots__ = ("_hedged", "_rounds", "legs_max")

    def __init__(self) -> None:
        self.legs_max = 1
        self._rounds = 0.0
        self._hedged: dict[int, tuple[float, float]] = {}

    def answered(self, legs: int) -> None:
        """Count a query, or the part of one, of which so many legs were answered."""
        self.legs_max = max(self.legs_max, legs)
        self._rounds += legs / self.legs_max

    def hedged(self, shard: int) -> None:
        """Count a hedge."""
        self._hedged[shard] = (self.share(shard) + SHARD_SMOOTHING, self._rounds)

    def share(self, shard: int) -> float:
        """Return the share of recent queries that hedged a shard, fading as others are answered."""
        share, at = self._hedged.get(shard, (0.0, 0.0))
        return float(share * (1.0 - SHARD_SMOOTHING) ** (self._rounds - at))


class Budget:
    """The bucket of all collections, and what each of their shards has had of it. Not thread-safe;
    owned by one loop.
    """

    __slots__ = (
        "_answered",
        "_at_s",
        "_crowds",
        "_faded_at_s",
        "_failed",
        "_lent",
        "_pushed_back_until_s",
        "_tokens",
        "burst",
        "terms",
    )

    def __init__(self, terms: BudgetTerms, now: float) -> None:
        """Start with a full bucket if anything may be spent at all."""
        self.terms = terms
        self.burst = burst_for(0) if terms.burst is None else terms.burst
        self._tokens = self.burst if terms.max_extra_load > 0.0 else 0.0
        self._at_s = now
        self._pushed_back_until_s = now
        self._answered = 0.0
        self._failed = 0.0
        self._faded_at_s = now
        self._crowds: dict[str, _Crowd] = {}
        self._lent = 0

    def fit(self, shards: int, collection: str = "") -> None:
        """Learn how many shards queries of a collection ask: let a burst that follows the shards
        be that of the most there are; as full as it was.
        """
        self._crowd(collection).legs_max = shards
        burst = burst_for(max(crowd.legs_max for crowd in self._crowds.values()))
        if self.terms.burst is None and burst != self.burst:
            self._tokens *= burst / self.burst
            self.burst = burst

    def earn(self, answered_legs: int, now: float, collection: str = "") -> None:
        """Add what ``answered_legs`` successes are worth, those of one query."""
        terms = self.terms
        self._tokens = min(self._room, self._tokens + answered_legs * terms.max_extra_load)
        self._fade(now)
        self._answered += answered_legs
        self._crowd(collection).answered(answered_legs)

    def level(self, now: float) -> float:
        """Tokens in the bucket."""
        terms = self.terms
        if terms.max_extra_load > 0.0 and now > self._at_s:
            self._tokens = min(self._room, self._tokens + (now - self._at_s) * terms.floor_per_s)
        self._at_s = max(self._at_s, now)
        return self._tokens

    @property
    def allows_any(self) -> bool:
        """Whether the operator accepts any extra attempt at all."""
        return self.terms.max_extra_load > 0.0 and self.burst > 0.0

    @property
    def fullness(self) -> float:
        """The level when it was last changed, as a share of the burst, from 0 to 1."""
        return self._tokens / self.burst if self.burst else 0.0

    def spend(self, now: float, *, needed: bool) -> bool:
        """Take one token for an extra attempt; False, and nothing taken, if there is none.

        ``needed``: an answer depends on it, so it may be one of those in reserve.
        """
        reserve = 0.0 if needed else RESERVE_SHARE * (self.burst - 1.0)
        if self.level(now) < 1.0 + reserve:
            return False
        self._tokens -= 1.0
        return True

    def hedged(self, shard: int, collection: str = "") -> None:
        """Note that a shard is hedged."""
        self._crowd(collection).hedged(shard)

    def crowded(self, shard: int, collection: str = "") -> bool:
        """Whether a shard has been hedged so often of late that it may not be now."""
        return self._crowd(collection).share(shard) > self.terms.shard_share_max

    def _crowd(self, collection: str) -> _Crowd:
        crowd = self._crowds.get(collection)
        if crowd is None:
            crowd = self._crowds[collection] = _Crowd()
        return crowd

    def lend(self, now: float) -> bool:
        """Take a token as a hedge does, that is to be kept or given back later. Until then its
        place in the bucket stays free.
        """
        if not self.spend(now, needed=False):
            return False
        self._lent += 1
        return True

    def keep(self) -> None:
        """Note that what a lent token was for has cost work."""
        self._lent -= 1

    def give_back(self) -> None:
        """Return a lent token: what it was for has cost no work."""
        self._lent -= 1
        self._tokens = min(self._room, self._tokens + 1.0)

    @property
    def _room(self) -> float:
        """Tokens that the bucket may hold now."""
        return self.burst - self._lent

    def push_back(self, now: float) -> None:
        """Note that a leaf is busy: hedging rests, failovers do not."""
        self._pushed_back_until_s = max(self._pushed_back_until_s, now + PUSH_BACK_S)

    def failed(self, now: float) -> None:
        """Note that an attempt has failed for a reason that is not slowness."""
        self._fade(now)
        self._failed += 1.0

    def pushed_back(self, now: float) -> bool:
        """Whether a leaf has been busy lately."""
        return now < self._pushed_back_until_s

    def failing(self, now: float) -> bool:
        """Whether too large a share of recent attempts has failed."""
        self._fade(now)
        recent = self._answered + self._failed
        return recent >= RECENT_MIN and self._failed > FAILED_SHARE_MAX * recent

    def resting(self, now: float) -> bool:
        """Whether hedging rests, for either reason."""
        return self.pushed_back(now) or self.failing(now)

    def _fade(self, now: float) -> None:
        """Forget by so much as time has passed."""
        if now > self._faded_at_s:
            kept = 0.5 ** ((now - self._faded_at_s) / RECENT_HALF_LIFE_S)
            self._answered *= kept
            self._failed *= kept
            self._faded_at_s = now
