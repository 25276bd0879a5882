"""The JSON of what a root tells of itself and its fleet, as types; beside ``root.bodies``.

Times are milliseconds.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from index_data.manifest import Field
from root.bodies import Missing, TracedPhase

# --- the fleet ---------------------------------------------------------------------------


class ShardState(msgspec.Struct, frozen=True):
    """A shard of the generation in use, and the connected leaves that serve it."""

    shard: int
    documents: int
    leaves: list[str]


class GenerationState(msgspec.Struct, frozen=True):
    """A generation that leaves hold, and its shards that no connected leaf has."""

    documents: int
    uncovered: list[int]


class LeafState(msgspec.Struct, frozen=True):
    """A leaf and the connection to it; null where it is not connected. ``pid`` is the process that
    it was when it last said hello.
    """

    leaf: str
    url: str
    connected: bool
    probation: bool
    problem: str | None
    pid: int | None
    domain: str | None
    workers: int | None
    notice: str | None
    outstanding: int
    latency_ms: float


class CollectionState(msgspec.Struct, frozen=True):
    """A collection, the generation that is searched, and its shards that no connected leaf has."""

    collection: str
    generation: str | None
    documents: int
    shards: int
    uncovered: list[int]


class CollectionsAnswer(msgspec.Struct, frozen=True):
    """All there are. The first is that of requests which name none."""

    collections: list[CollectionState]


class TopologyAnswer(msgspec.Struct, frozen=True):
    """Leaves, the generations of a collection, and who holds what of it; and the names of all
    collections.
    """

    collection: str
    collections: list[str]
    generation: str | None
    documents: int
    fields: list[Field]
    shards: list[ShardState]
    generations: dict[str, GenerationState]
    leaves: list[LeafState]


class Alive(msgspec.Struct, frozen=True):
    """The process is."""

    status: Literal["ok"]


class Readiness(msgspec.Struct, frozen=True):
    """Whether every shard has a live replica; if not, what lacks: shards by collection, or null
    where nothing is held of it.
    """

    ready: bool
    detail: str | msgspec.UnsetType = msgspec.UNSET
    uncovered: dict[str, list[int] | None] | msgspec.UnsetType = msgspec.UNSET


# --- what hedging does, what was slow ----------------------------------------------------


class Percentiles(msgspec.Struct, frozen=True):
    """Null where there was nothing."""

    p50: float | None
    p95: float | None
    p99: float | None


class Rehearsed(msgspec.Struct, frozen=True, rename={"p999": "p99.9"}):
    """What requests would have taken."""

    p50: float
    p95: float
    p99: float
    p999: float


class Arm(msgspec.Struct, frozen=True, rename={"p999": "p99.9"}):
    """What a budget would have cost, as a share of attempts, and what requests had taken."""

    extra_load: float
    p50: float
    p95: float
    p99: float
    p999: float


class Recommendation(msgspec.Struct, frozen=True):
    """A policy and a budget, once enough requests were seen, and why."""

    hedge: str | None
    max_extra_load: float | None
    why: str


class HedgingAnswer(msgspec.Struct, frozen=True):
    """The policy in force, and what hedging would have done to requests that ran without."""

    hedge: str
    requests: int
    off: Rehearsed
    arms: dict[str, Arm]
    recommendation: Recommendation


class SlowSearch(msgspec.Struct, frozen=True):
    """A search that was among the slowest of its minute, with its race."""

    number: int
    collection: str
    trace_id: str | None
    seconds_ago: float
    took_ms: float
    request: dict[str, Any]
    missing: list[Missing]
    trace: list[TracedPhase]


class SlowMinute(msgspec.Struct, frozen=True):
    """A minute and its slowest searches, slowest first."""

    minutes_ago: int
    slowest: list[SlowSearch]


class SlowAnswer(msgspec.Struct, frozen=True):
    """The last minutes, newest first."""

    minutes: list[SlowMinute]


# --- the live view -----------------------------------------------------------------------


class CountedPercentiles(msgspec.Struct, frozen=True):
    """How many, and what they took."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


class FanOuts(msgspec.Struct, frozen=True):
    """When one random leaf, 95 % and 100 % of a query's leaves had answered."""

    one_leaf: Percentiles
    most_leaves: Percentiles
    all_leaves: Percentiles


class Distribution(msgspec.Struct, frozen=True):
    """Requests by what they took: a count for each pair of neighbouring edges."""

    edges_ms: list[float]
    counts: list[int]


class MinuteAttempts(msgspec.Struct, frozen=True):
    """Attempts of the last minute: ``first`` one a leg, ``extra`` beyond."""

    first: int
    extra: int
    hedges: int
    hedge_wins: int
    denied: int


class History(msgspec.Struct, frozen=True):
    """What came in each second, oldest first."""

    requests: list[int]
    first: list[int]
    extra: list[int]


class LiveMinute(msgspec.Struct, frozen=True):
    """The last minute, or as many seconds of it as there were."""

    seconds: float
    requests: CountedPercentiles
    fan_outs: FanOuts
    distribution: Distribution
    attempts: MinuteAttempts
    history: History


class LiveHedging(msgspec.Struct, frozen=True):
    """The policy, what its budget has left, and why hedging rests, if it does."""

    policy: str
    max_extra_load: float
    tokens: float
    burst: float
    resting: Literal["push_back", "errors"] | None


class LiveTrouble(msgspec.Struct, frozen=True):
    """What the page's buttons can do, and which leaves they have slowed or stopped."""

    deeds: list[str]
    slowed: list[str]
    stopped: list[str]


class LiveLeaf(msgspec.Struct, frozen=True):
    """A leaf and its state; ``latency_ms`` is the smoothed time of a leg there, ``legs`` are those
    that it answered in the last minute.
    """

    leaf: str
    url: str
    state: Literal["well", "probation", "lost"]
    latency_ms: float | None
    legs: int
    in_flight: int
    shards: int
    problem: str | None
    notice: str | None


class LiveAnswer(msgspec.Struct, frozen=True):
    """The state of a root and its last minute."""

    collections: list[CollectionState]
    in_flight: int
    minute: LiveMinute
    hedging: LiveHedging
    trouble: LiveTrouble | None
    leaves: list[LiveLeaf]
