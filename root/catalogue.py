"""The routes of a root, as its API's document tells of them: one entry a method and path.

What a request may be is in ``root.requests``, what an answer is in ``root.bodies`` and
``root.states``; here stands which goes with which, under which status. ``root.openapi`` makes the
document of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from leaf.protocol import DEFAULT_COLLECTION
from root.bodies import (
    DocumentAnswer,
    ExportEnd,
    ExportError,
    FailedSearch,
    Hit,
    MultiSearchAnswer,
    PartialAnswer,
    Problem,
    SearchAnswer,
    SuggestAnswer,
)
from root.export_pages import ExportRequest
from root.requests import MultiSearchRequest, Order, SearchRequest, SuggestRequest
from root.states import (
    Alive,
    CollectionsAnswer,
    HedgingAnswer,
    LiveAnswer,
    LiveTrouble,
    Readiness,
    SlowAnswer,
    TopologyAnswer,
)

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
NDJSON: Final = "application/x-ndjson"

Header = Literal["Retry-After", "ETag"]


class Reply(NamedTuple):
    """What comes under one status: any of ``types``, or text where the medium is no JSON.

    ``within`` are types that stand inside and are only named there.
    """

    about: str
    types: tuple[type[msgspec.Struct], ...] = ()
    media: tuple[str, ...] = (JSON,)
    headers: tuple[Header, ...] = ()
    within: tuple[type[msgspec.Struct], ...] = ()

    @property
    def all_types(self) -> tuple[type[msgspec.Struct], ...]:
        """Every type that its schema needs."""
        return self.types + self.within


class Operation(NamedTuple):
    """One method of one path.

    ``query`` is the struct whose members are the parameters of the query string, ``path_is``
    says of each parameter in the path what it is, with an example, ``body`` is what is sent.
    ``example`` are values of parameters of the query string, ``bodies`` whole bodies by what they
    show. ``instead`` are parameters that may be given in place of the required one, with an
    example of each.
    """

    method: Literal["get", "post"]
    path: str
    name: str
    about: str
    replies: Mapping[int, Reply]
    query: type[msgspec.Struct] | None = None
    required: str | None = None
    instead: Mapping[str, Any] = {}
    without: frozenset[str] = frozenset()
    path_is: Mapping[str, tuple[str, str]] = {}
    body: type[msgspec.Struct] | None = None
    example: Mapping[str, Any] = {}
    bodies: Mapping[str, Any] = {}


def _problem(about: str, *headers: Header) -> Reply:
    return Reply(about, (Problem,), (PROBLEM,), headers)


_BUSY: Final = _problem("Leaves push back, or too many requests are in work.", "Retry-After")
_BAD: Final = _problem("The request is at fault; `field` names the part of it.")
_NOTHING: Final = Reply(
    "No shard has answered, and not for want of time.", (Problem, PartialAnswer), (PROBLEM,)
)
_FLEET: Final = {
    429: _BUSY,
    503: _NOTHING,
    504: Reply(
        "Too little was searched in time; with what there is.",
        (Problem, PartialAnswer),
        (PROBLEM,),
    ),
}
_DANGEROUS: Final = _problem(
    "A query like this one has just ended or held up a leaf.", "Retry-After"
)
_SEARCH: Final = {
    200: Reply("The page.", (SearchAnswer,)),
    400: _BAD,
    404: _problem("No shard holds the document of `similar_to`."),
    410: _problem("The generation of the cursor is held no more."),
    422: _DANGEROUS,
    **_FLEET,
}
_BODY: Final = {
    408: _problem("The body did not come in time."),
    413: _problem("The body is over the limit."),
}
_FILE: Final = {304: Reply("It is what the client has.", media=(), headers=("ETag",))}


def _file(about: str, *media: str) -> Mapping[int, Reply]:
    return {200: Reply(about, media=media, headers=("ETag",)), **_FILE}


_EXAMPLE: Final[Mapping[str, Any]] = {
    "q": "parse json",
    "strict": True,
    "combine": "best",
    "k": 3,
    "offset": 10,
    "timeout_ms": 500,
    "min_coverage": 0.9,
    "filter": [{"field": "kind", "equals": "function"}],
    "sort": ["-kind", "_id"],
    "facets": {"kinds": {"type": "terms", "field": "kind"}},
    "fields": ["name", "kind"],
    "highlight": ["body"],
    "hedge": "adaptive",
    "priority": "interactive",
    "trace": True,
    "explain": True,
}

_TREE: Final = {
    "type": "bool",
    "must": [{"type": "word", "text": "json"}],
    "should": [{"type": "phrase", "text": "file like object", "field": "body"}],
    "must_not": [{"type": "word", "text": "xml", "field": "name"}],
}

_BODIES: Final[Mapping[str, Any]] = {
    "words": {"q": '+json "file like object"', "k": 3, "trace": True},
    "tree": {"query": _TREE},
    "similar": {"similar_to": "json.dumps", "filter": [{"field": "year", "gte": 2000}]},
    "filtered": {"q": "json", "filter": [{"field": "kind", "one_of": ["class", "function"]}]},
    "sorted": {"q": "json", "sort": ["kind", "-_id"], "k": 5},
    "counted": {
        "q": "json",
        "k": 1,
        "facets": {
            "kinds": {"type": "terms", "field": "kind", "size": 5},
            "different": {"type": "distinct", "field": "kind"},
        },
    },
}

_SEARCHES: Final = Operation(
    *("post", "/searches", "searches", "Several searches at once, answered in order."),
    {
        200: Reply(
            "An answer, or what went wrong, for each.",
            (MultiSearchAnswer,),
            within=(SearchAnswer, FailedSearch),
        ),
        400: _BAD,
        **_BODY,
        429: _problem("As many requests are in work as may be.", "Retry-After"),
    },
    body=MultiSearchRequest,
    bodies={
        "named": {"searches": [{"q": "json", "collection": DEFAULT_COLLECTION, "k": 1}]},
        "two": {"searches": [{"q": "json", "k": 3}, {"q": "xml", "sort": ["-year"]}]},
        "one_fails": {"searches": [{"q": "json"}, {"q": "json", "sort": ["nowhere"]}]},
    },
)

_OF_A_COLLECTION: Final = (
    Operation(
        *("get", "/search", "search", "The best documents for a query, typed as a person does."),
        _SEARCH,
        query=SearchRequest,
        required="q",
        instead={"similar_to": "json.dumps"},
        without=frozenset({"query"}),
        example=_EXAMPLE,
    ),
    Operation(
        *("post", "/search", "post_search", "The same, of a JSON body: give `q` or `query`."),
        _SEARCH | _BODY,
        body=SearchRequest,
        bodies=_BODIES,
    ),
    Operation(
        *("post", "/export", "export", "Everything that matches, one hit a line."),
        {
            200: Reply(
                "Each line is one of these; the last one tells how it ended.",
                (Hit, ExportEnd, ExportError),
                (NDJSON,),
            ),
            400: _BAD,
            **_BODY,
            422: _DANGEROUS,
            429: _problem("As many exports are running as may be.", "Retry-After"),
            503: _problem("No shard has answered, and not for want of time."),
            504: _problem("Too little was searched in time."),
        },
        body=ExportRequest,
        bodies={
            "words": {"q": "json", "fields": ["name"]},
            "filtered": {"q": "*", "filter": [{"field": "kind", "equals": "function"}]},
        },
    ),
    Operation(
        *("get", "/suggest", "suggest", "Ways to go on with what is typed."),
        {200: Reply("The most frequent first.", (SuggestAnswer,)), 400: _BAD, **_FLEET},
        query=SuggestRequest,
        required="prefix",
        example={"prefix": "json pa", "k": 5, "timeout_ms": 500},
    ),
    Operation(
        *("get", "/documents/{id}", "document", "One document by its id, slashes included."),
        {
            200: Reply("The document.", (DocumentAnswer,)),
            400: _BAD,
            404: _problem("No shard holds it."),
            **_FLEET,
        },
        path_is={"id": ("The id as it stands in hits, percent-encoded.", "json.dumps")},
    ),
    Operation(
        *("get", "/topology", "topology", "Generations, shards and their replicas, leaves."),
        {200: Reply("What leaves say they hold.", (TopologyAnswer,))},
    ),
)
"""What is about the first collection, or under ``/collections/{collection}`` about that one."""


def _within(operation: Operation) -> Operation:
    """Return an operation as it is about a collection that is named."""
    about = operation.replies[404].about if 404 in operation.replies else ""
    missing = _problem(f"There is no such collection. {about}".rstrip())
    name = ("A name that `GET /collections` lists.", DEFAULT_COLLECTION)
    return operation._replace(
        path="/collections/{collection}" + operation.path,
        name=f"{operation.name}_within",
        about=f"{operation.about.rstrip('.')}, in one collection.",
        replies={**operation.replies, 404: missing},
        path_is={"collection": name, **operation.path_is},
    )


OPERATIONS: Final = (
    *_OF_A_COLLECTION,
    *map(_within, _OF_A_COLLECTION),
    _SEARCHES,
    Operation(
        *("get", "/collections", "collections", "The collections that there are."),
        {200: Reply("The first is what is asked where none is named.", (CollectionsAnswer,))},
    ),
    Operation(
        *("get", "/healthz", "healthz", "Whether the process is alive."),
        {200: Reply("It is.", (Alive,))},
    ),
    Operation(
        *("get", "/readyz", "readyz", "Whether every shard has a live replica."),
        {
            200: Reply("Each has.", (Readiness,)),
            503: Reply("Which have none.", (Readiness,)),
        },
    ),
    Operation(
        *("get", "/hedging", "hedging", "The policy, and what hedging would have done."),
        {200: Reply("Of the requests that ran with `shadow`.", (HedgingAnswer,))},
    ),
    Operation(
        *("get", "/slow", "slow", "The slowest searches of each of the last ten minutes."),
        {200: Reply("The newest minute first.", (SlowAnswer,))},
    ),
    Operation(
        *("get", "/metrics", "metrics", "Counters, for Prometheus."),
        {200: Reply("In its text format.", media=("text/plain",))},
    ),
    Operation(
        *("get", "/live", "live", "The state of the root and its last minute."),
        {
            200: Reply(
                "One snapshot; with `Accept: text/event-stream` one each second.",
                (LiveAnswer,),
                (JSON, "text/event-stream"),
            ),
            503: _problem("As many views are open as may be.", "Retry-After"),
        },
    ),
    Operation(
        *("post", "/trouble", "trouble", "Slow, stop or kill a leaf: for the page's buttons."),
        {
            200: Reply("What can be done, and has been.", (LiveTrouble,)),
            400: _problem("The body cannot be read."),
            403: _problem("Only the page of this root may ask."),
            404: _problem("There is no such leaf."),
            409: _problem("It cannot be done to this leaf now."),
            413: _problem("The body is over the limit."),
        },
        body=Order,
        bodies={"stop": {"leaf": "http://127.0.0.1:8081", "do": "stop"}},
    ),
    Operation(
        *("get", "/openapi.json", "openapi", "This document."),
        _file("OpenAPI 3.1.", JSON),
    ),
    Operation(*("get", "/docs", "docs", "This document, to read."), _file("A page.", "text/html")),
    Operation(
        *("get", "/", "page", "The page: searching, and the live view."),
        _file("A page.", "text/html"),
    ),
    Operation(
        *("get", "/ui/{name}", "page_file", "A file of the pages."),
        {
            **_file("The file.", "text/html", "text/css", "text/javascript", "image/svg+xml"),
            404: _problem("There is no such file."),
        },
        path_is={"name": ("The name of the file.", "style.css")},
    ),
)
