"""The wire contract between a root and a leaf: the leaf's own, imported by both.

One WebSocket from each root to each leaf carries binary frames, each frame one JSON
object. Whatever one loop tick has for the peer travels in one frame.

    root                                   leaf
      | -- {"hello": RootHello} ------------> |   first frame, once
      | <-- {"hello": LeafHello} ------------ |   or {"refused": "why, in words"} and close
      | -- {"asks": [...], "cancels": [...]}> |
      | <-- {"hits": [...], "documents": [...], "refusals": [...]}
      | -- {"ping": 7} ---------------------> |   answered from the event loop, even when
      | <-- {"pong": 7} --------------------- |   every worker is busy
      | <-- {"hello": LeafHello} ------------ |   again whenever what it holds changes

    leaf                                   leaf
      | -- {"hello": RootHello, peer} ------> |   never answered
      | -- {"begun": [Begun, ...]} ---------> |   tied legs whose other copy is being worked on

A *leg* is one attempt on one shard: the unit of work, of cancelling and of answering.
An *ask* is what the legs of one query to one leaf have in common, written once a frame.
Legs are numbered by the root, per connection, upwards; an ask names its first leg and
the shards in order, so leg ``first + i`` is about ``shards[i]``.

Every leg is answered exactly once: by hits, by documents, or by a refusal. A cancelled leg is
answered too (``Refusal`` with reason ``cancelled`` and the time it cost), so that the root can
account for every attempt it ever sent. Only a lost connection ends a leg without an answer.

Time on the wire is relative: ``budget_ms`` is left when a frame is written; no clocks are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from leaf.broken import FACETS, RANKED, SORTED, decoded, paired
from leaf.selection import Selection, SortValue

PROTOCOL_VERSION: Final = 2
CHANNEL_PATH: Final = "/channel"

DEFAULT_COLLECTION: Final = "default"
COLLECTION_NAME: Final = r"\A[a-z0-9_-]{1,40}\Z"
COLLECTIONS_MAX: Final = 100
"""What one without a name is called; names; each is an index that every leaf keeps open."""

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""A frame over this ends the connection: it is larger than any honest peer's."""

QUERY_NODES_MAX: Final = 256
QUERY_DEPTH_MAX: Final = 16
TEXT_BYTES_MAX: Final = 4096
"""Limits of a query tree: what a person types, with room; not a way to stall a leaf."""

BOOST_MIN: Final = 0.001
BOOST_MAX: Final = 1000.0
"""A clause a thousand times as dear has the field to itself; far below, scores lose digits."""

DISTANCE_MAX: Final = 2
"""Letters in which a fuzzy word may differ: four of five mistyped words differ in one."""

Bound = str | int | float | bool

TieBreaker = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]

TRACE_CHARS_MAX: Final = 55
"""Of a ``traceparent``: version, trace, span and flags in hexadecimal, with dashes."""

TIE_KEY_CHARS_MAX: Final = 64
PEERS_MAX: Final = 2000
PEER_CHARS_MAX: Final = 512
"""A tie is a few random bytes, its twins may be all leaves of a root, each a scheme, host, port."""

QUERY_NUMBER_MAX: Final = 2**53
"""Queries are numbered upwards for as long as a root lives; JSON is exact up to here."""

HITS_MAX: Final = 20_000
"""Most hits a leg returns: offset + k, with the margin for re-scoring, never passes it."""


# --- the query: parsed once at the root, sent as data ------------------------------------


class Word(msgspec.Struct, frozen=True, tag="word", tag_field="type", forbid_unknown_fields=True):
    """Text that is analysed where it is searched; several tokens must stand side by side.

    ``field`` None means every default text field of the schema, with its weight. The score is
    then the best field's and ``tie_breaker`` times the others': 1 makes it their sum.
    """

    text: str
    field: str | None = None
    boost: float = 1.0
    tie_breaker: TieBreaker = 1.0


class Phrase(
    msgspec.Struct, frozen=True, tag="phrase", tag_field="type", forbid_unknown_fields=True
):
    """Words that stand side by side, in order."""

    text: str
    field: str | None = None
    boost: float = 1.0
    tie_breaker: TieBreaker = 1.0


class Prefix(
    msgspec.Struct, frozen=True, tag="prefix", tag_field="type", forbid_unknown_fields=True
):
    """Words side by side of which the last is a beginning, as ``pars`` is of ``parser``."""

    text: str
    field: str | None = None
    boost: float = 1.0
    tie_breaker: TieBreaker = 1.0


class Fuzzy(msgspec.Struct, frozen=True, tag="fuzzy", tag_field="type", forbid_unknown_fields=True):
    """A word that may differ in ``distance`` letters: typed, left out, added or changed over."""

    text: str
    distance: Annotated[int, msgspec.Meta(ge=1, le=DISTANCE_MAX)] = DISTANCE_MAX
    field: str | None = None
    boost: float = 1.0
    tie_breaker: TieBreaker = 1.0


class Range(msgspec.Struct, frozen=True, tag="range", tag_field="type", forbid_unknown_fields=True):
    """Values of a field from ``gte`` or after ``gt``, to ``lte`` or before ``lt``.

    A bound is a value, or the text of one. Without bounds, any value at all.
    """

    field: str
    gte: Bound | None = None
    gt: Bound | None = None
    lte: Bound | None = None
    lt: Bound | None = None
    boost: float = 1.0


class Bool(msgspec.Struct, frozen=True, tag="bool", tag_field="type", forbid_unknown_fields=True):
    """All of ``must``, none of ``must_not``; ``should`` adds score, and one of it is needed
    when ``must`` is empty. With only ``must_not`` it matches every other document.
    """

    must: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()


class All(msgspec.Struct, frozen=True, tag="all", tag_field="type", forbid_unknown_fields=True):
    """Every document, each with score 1."""


Text = Word | Phrase | Prefix | Fuzzy
"""What is looked for in the text of one field, or of every default field."""

Query = Text | Range | Bool | All


# --- root to leaf ------------------------------------------------------------------------

Kind = Literal["search", "fetch", "lookup", "suggest"]
DOCUMENT_KINDS: Final = frozenset({"fetch", "suggest"})
"""What is answered with documents; all else with hits."""

Priority = Literal["interactive", "batch"]


class RootHello(msgspec.Struct, frozen=True):
    """The first frame of a root; or of a leaf, ``peer``, that tells what it has begun."""

    protocol: int
    root: str
    peer: bool = False


class SearchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phase one: the best ``k`` of a shard, as (score, ordinal); with a selection as it says."""

    query: Query
    k: int
    selection: Selection | None = None


class FetchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phase two: final scores, stored fields and highlights of documents named by ordinal.

    ``fields`` None means all stored fields. ``highlight`` names the text fields to cut
    snippets from. ``query`` None, a look-up by id, has no score, no snippet, nothing to explain.
    """

    query: Query | None
    fields: tuple[str, ...] | None = None
    highlight: tuple[str, ...] = ()
    explain: bool = False


class LookupBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document by its id: answered with hits (score 0), none where the shard lacks it."""

    id: str


PeerUrl = Annotated[
    str, msgspec.Meta(pattern=r"(?i)^https?://[^/?#\s]+$", max_length=PEER_CHARS_MAX)
]


class Tie(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which legs of an ask have a twin: a copy on another leaf, of which one is to be dropped.

    ``twins[i]`` is the place of ``shards[i]``'s other leaf in ``peers``, or None where that leg
    has no twin. Both copies have the same ``key``, which nobody else can guess: whoever knows it
    can have them dropped, and no more.
    """

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=TIE_KEY_CHARS_MAX)]
    peers: Annotated[tuple[PeerUrl, ...], msgspec.Meta(max_length=PEERS_MAX)]
    twins: tuple[Annotated[int, msgspec.Meta(ge=0)] | None, ...]


class Begun(msgspec.Struct, frozen=True, array_like=True):
    """Tied legs that a leaf has begun: those of its twin may be dropped if they still wait."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=TIE_KEY_CHARS_MAX)]
    shards: tuple[int, ...]


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What several legs have in common.

    ``kind`` says how ``body`` is read: ``search`` SearchBody, ``fetch`` FetchBody, ``lookup``
    LookupBody, ``suggest`` leaf.suggestion.SuggestBody. ``ordinals[i]`` (fetch only) lists the
    documents of ``shards[i]``. ``query`` is the root's number of the query, which its legs on all
    leaves have in common; only injected trouble looks at it. ``trace`` is the ``traceparent`` of
    its caller, if it has one, for the leaf's log.
    """

    kind: Kind
    generation: str
    body: msgspec.Raw
    budget_ms: float
    first: int
    shards: tuple[int, ...]
    ordinals: tuple[tuple[int, ...], ...] = ()
    priority: Priority = "interactive"
    query: Annotated[int, msgspec.Meta(ge=0, le=QUERY_NUMBER_MAX)] | None = None
    tie: Tie | None = None
    trace: Annotated[str, msgspec.Meta(max_length=TRACE_CHARS_MAX)] = ""


class RootFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything one tick of a root has for one leaf, or of a leaf for its peer (``begun``)."""

    hello: RootHello | None = None
    asks: tuple[Ask, ...] = ()
    cancels: tuple[int, ...] = ()
    begun: tuple[Begun, ...] = ()
    ping: int | None = None


# --- leaf to root ------------------------------------------------------------------------


class Hits(msgspec.Struct, array_like=True, gc=False):
    """A shard's answer to ``search`` or ``lookup``.

    ``ranked`` is ``[scores, ordinals]``, best first. It is left as JSON until it is needed:
    of a hundred shards few have a hit on the page, and ``best``, the first score (0 without
    hits), tells which. Times in microseconds: waiting in the leaf's queue, and being worked on.

    In a search that is sorted, ``ranked`` is ``[rows of sort values, ordinals]``. ``facets``
    has an entry for each facet of the selection, in its order.
    """

    leg: int
    queue_us: int
    service_us: int
    total: Annotated[int, msgspec.Meta(ge=0)]
    best: float
    ranked: msgspec.Raw
    facets: msgspec.Raw = msgspec.Raw(b"[]")

    def read(self) -> tuple[list[float], list[int]]:
        """Return scores and ordinals, best first, ties in score lowest ordinal first.

        Ordinals are ranks of document ids in the whole generation: comparing two ordinals
        compares the ids, on whichever shard they live. Raises BrokenAnswer.
        """
        return paired(RANKED, self.ranked)

    def read_sorted(self) -> tuple[list[list[SortValue]], list[int]]:
        """Return the sort values of each hit, and ordinals, in order. Raises BrokenAnswer."""
        return paired(SORTED, self.ranked)

    def read_facets(self) -> list[Any]:
        """Return what was counted for each facet. Raises BrokenAnswer."""
        return decoded(FACETS, self.facets)


def ranked(scores: Sequence[float], ordinals: Sequence[int]) -> tuple[float, Any]:
    """Return ``best`` and ``ranked`` of Hits, as an encoder takes them."""
    return (scores[0] if scores else 0.0), (scores, ordinals)


class FetchedDocument(msgspec.Struct, array_like=True, gc=False):
    """One document. ``score``, as of one big index, is the sum of (field, text, share) if asked."""

    ordinal: int
    score: float
    id: str
    fields: dict[str, Any]
    highlights: dict[str, str]
    explanation: list[tuple[str, str, float]] = []


class Documents(msgspec.Struct, array_like=True, gc=False):
    """A shard's answer to ``fetch``, in the order asked for, or to ``suggest``."""

    leg: int
    queue_us: int
    service_us: int
    documents: list[FetchedDocument]


RefusalReason = Literal[
    "busy",  # the queue is full: try another replica; nothing is wrong with this one
    "expired",  # could not have been answered within budget_ms; never started
    "cancelled",  # as the root wished; service_us > 0 if work had begun
    "twin_began",  # the other of two tied copies is being worked on; this one never started
    "unknown_shard",
    "unknown_generation",
    "bad_query",  # no replica will answer it
    "error",  # the leaf failed; another replica may not
]


class Refusal(msgspec.Struct, array_like=True, gc=False):
    """A leg that ends without an answer, and why. ``retry_ms`` is a hint with ``busy``."""

    leg: int
    queue_us: int
    service_us: int
    reason: RefusalReason
    detail: str = ""
    retry_ms: int = 0


class Holding(msgspec.Struct, frozen=True):
    """A generation as one leaf holds it.

    ``card`` is the generation's GenerationCard (index_data.manifest), the same on every
    leaf that has it; ``shards`` are the ones held here. Those of them that this leaf is to give
    up stand in ``leaving``, each with the number of leaves that are to hold it instead: it is
    served as long as anybody asks, and roots ask no more once so many others have it.
    """

    card: msgspec.Raw
    shards: tuple[int, ...]
    leaving: dict[int, int] = {}


Name = Annotated[str, msgspec.Meta(pattern=COLLECTION_NAME)]
Collections = Annotated[dict[Name, tuple[Holding, ...]], msgspec.Meta(max_length=COLLECTIONS_MAX)]


class LeafHello(msgspec.Struct, frozen=True):
    """Who a leaf is, and what it holds of its collections, in the order in which it was given them:
    the topology is what leaves say. Of one of which nothing is loaded yet, it holds none.
    """

    protocol: int
    leaf: str
    domain: str
    pid: int
    collections: Collections
    workers: int
    notice: str = ""
    """Set when answers are not to be trusted as real: injected trouble, canned answers."""

    @property
    def holdings(self) -> list[Holding]:
        """What it holds of all collections."""
        return [holding for held in self.collections.values() for holding in held]


class LeafFrame(msgspec.Struct, gc=False):
    """Everything one tick of a leaf has for one root."""

    hello: LeafHello | None = None
    refused: str | None = None
    hits: list[Hits] = []
    documents: list[Documents] = []
    refusals: list[Refusal] = []
    pong: int | None = None
