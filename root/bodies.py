"""The JSON of answers, as types: what the API's document describes and the client reads.

The root builds its answers as plain dictionaries, on the way to whoever waits; nothing there
needs these. That both agree is what the tests of the document check.

Times are milliseconds, names of leaves and generations are the fleet's.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

SCHEMAS: Final = "#/components/schemas/{name}"
"""Where the API's document has a type."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error (RFC 9457). ``detail`` is one sentence; ``field`` names what is at fault."""

    type: str
    title: str
    status: int
    detail: str
    field: str | msgspec.UnsetType = msgspec.UNSET


# --- a search ----------------------------------------------------------------------------


class Share(msgspec.Struct, frozen=True):
    """What one part of a query adds to a score; ``field`` is empty for what any document has."""

    field: str
    text: str
    score: float


class Hit(msgspec.Struct, frozen=True):
    """One document of a page. ``highlights`` are HTML: text is escaped, matches stand in em.

    ``shard`` and ``explanation`` are there where they were asked for.
    """

    id: str
    score: float
    fields: dict[str, Any]
    highlights: dict[str, str]
    shard: int | msgspec.UnsetType = msgspec.UNSET
    explanation: list[Share] | msgspec.UnsetType = msgspec.UNSET


class Total(msgspec.Struct, frozen=True):
    """How many documents match; with ``gte`` at least so many."""

    value: int
    relation: Literal["eq", "gte"]


class ValueCount(msgspec.Struct, frozen=True):
    """A value, and how many documents have it."""

    value: str | int | float | bool
    count: int


class IntervalCount(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """Where an interval begins, and how many documents lie in it."""

    start: int | float | str
    count: int


class TermsFacet(msgspec.Struct, frozen=True, tag="terms", tag_field="type"):
    """The commonest values; no count is higher by more than ``error``."""

    buckets: list[ValueCount]
    other: int
    error: int


class HistogramFacet(msgspec.Struct, frozen=True, tag="histogram", tag_field="type"):
    """The intervals that are not empty, in order."""

    buckets: list[IntervalCount]


class DateHistogramFacet(msgspec.Struct, frozen=True, tag="date_histogram", tag_field="type"):
    """The units of time that are not empty, in order."""

    buckets: list[IntervalCount]


class StatsFacet(msgspec.Struct, frozen=True, tag="stats", tag_field="type"):
    """Of dates the moments as text, and no sum."""

    count: int
    min: int | float | str | None
    max: int | float | str | None
    sum: int | float | None
    avg: int | float | str | None


class DistinctFacet(msgspec.Struct, frozen=True, tag="distinct", tag_field="type"):
    """How many different values, and the standard error as a share: 0 where that is exact."""

    count: int
    error: float


Facet = TermsFacet | HistogramFacet | DateHistogramFacet | StatsFacet | DistinctFacet


class Missing(msgspec.Struct, frozen=True):
    """A shard without an answer, and why."""

    shard: int
    reason: Literal["timeout", "no_replica", "error", "refused"]


class Coverage(msgspec.Struct, frozen=True):
    """How much of the index was searched, in shards and in documents."""

    complete: bool
    shards: int
    answered: int
    documents: int
    searched: int
    missing: list[Missing]


class Attempts(msgspec.Struct, frozen=True):
    """What was sent to leaves for the answer, and what became of it."""

    sent: int
    hedged: int
    hedge_wins: int
    failed_over: int
    cancelled: int
    denied: int


class Warned(msgspec.Struct, frozen=True):
    """What of ``q`` could not be read as it stands, and at which character."""

    position: int
    message: str


class TracedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt; times from the request's arrival, those of the leaf as it reports them."""

    shard: int
    replica: str
    kind: Literal["primary", "hedge", "failover", "tied", "probe"]
    fate: Literal["won", "lost", "cancelled", "failed", "in_flight"]
    sent_ms: float
    ended_ms: float | None
    queue_ms: float | None
    service_ms: float | None
    reason: str | msgspec.UnsetType = msgspec.UNSET


class TracedPhase(msgspec.Struct, frozen=True):
    """One round of asking shards, with all of its attempts."""

    phase: str
    started_ms: float
    decided_ms: float
    attempts: list[TracedAttempt]


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The page, what it is of, and what it took. ``trace`` is there where it was asked for."""

    hits: list[Hit]
    total: Total
    facets: dict[str, Facet]
    coverage: Coverage
    attempts: Attempts
    generation: str
    took_ms: float
    next: str | None
    warnings: list[Warned]
    did_you_mean: str | None
    trace: list[TracedPhase] | msgspec.UnsetType = msgspec.UNSET


class PartialAnswer(SearchAnswer, frozen=True, kw_only=True):
    """An error with what there is of an answer."""

    type: str
    title: str
    status: int
    detail: str


class FailedSearch(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the place of a search that has failed: the problem and the status that it
    would have had alone, when to try again if that is known, and what there is of an answer.
    """

    error: Problem
    status: int
    retry_after_s: int | msgspec.UnsetType = msgspec.UNSET
    partial: SearchAnswer | msgspec.UnsetType = msgspec.UNSET


AnswerInPlace = Annotated[
    Any,
    msgspec.Meta(
        extra_json_schema={
            "anyOf": [{"$ref": SCHEMAS.format(name=n)} for n in ("SearchAnswer", "FailedSearch")]
        }
    ),
]
"""SearchAnswer or FailedSearch: the library has no union of two structs without a tag."""


class MultiSearchAnswer(msgspec.Struct, frozen=True):
    """What has come of each search, in the order of the request."""

    answers: list[AnswerInPlace]


class ExportedAll(msgspec.Struct, frozen=True):
    """How an export has ended: how many hits there were, of which generation, and whether no
    shard was missing at any page.
    """

    documents: int
    generation: str
    complete: bool


class ExportEnd(msgspec.Struct, frozen=True):
    """The last line of an export that was not cut off."""

    end: ExportedAll


class ExportError(msgspec.Struct, frozen=True):
    """The last line of an export that could not go on."""

    error: Problem


class Suggestion(msgspec.Struct, frozen=True):
    """A way to go on, and how many documents have its last word."""

    text: str
    documents: int


class SuggestAnswer(msgspec.Struct, frozen=True):
    """Ways to go on with what is typed, the most frequent first."""

    suggestions: list[Suggestion]
    generation: str
    took_ms: float


class DocumentAnswer(msgspec.Struct, frozen=True):
    """One document by its id, of which generation."""

    id: str
    fields: dict[str, Any]
    generation: str
