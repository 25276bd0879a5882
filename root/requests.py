"""What may be asked over HTTP, validated once, here; everything behind may rely on it.

A GET's parameters and a POST's JSON body become the same ``SearchRequest``. In JSON a number
must be a number; in a query string everything is text and is read strictly. Whatever is
unknown, of the wrong type, out of range or twice there is a BadRequest that names the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar, get_args
from urllib.parse import unquote_to_bytes

import msgspec

from leaf.protocol import Priority, Query, TieBreaker
from leaf.suggestion import SUGGESTIONS_MAX, TEXT_CHARS_MAX
from root.errors import BadRequest
from root.query import check_text
from root.selection import FacetRequest, FacetsRequest, FilterRequest, SortRequest

BODY_BYTES_MAX: Final = 64 * 1024
"""A query tree of the largest size allowed, written out; not a way to fill memory."""

SEARCHES_MAX: Final = 32
"""Searches of one multi-search: a page with many lists, not a way past the limit of requests."""
SEARCHES_BYTES_MAX: Final = 8 * BODY_BYTES_MAX
"""Few searches are near the limit of one, and not all of a multi-search."""

RESULT_WINDOW_MAX: Final = 10_000
"""Largest offset + k: every shard must return that many, so depth costs shards x depth."""
CURSOR_CHARS_MAX: Final = 60_000
"""A cursor has a hundred characters mostly, and some thousands where many scores are near."""
TIMEOUT_MS_MAX: Final = 60_000
PARAMETERS_MAX: Final = 32
NAME_CHARS_MAX: Final = 80
DETAIL_CHARS_MAX: Final = 300
"""What a request calls things goes back in the error, but not all of it."""

HedgeName = Literal["off", "shadow", "fixed", "quantile", "sibling", "adaptive", "together", "tied"]

Combine = Literal["sum", "best"]


class SearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A search. Give one of ``q`` (words), ``query`` (a tree) and ``similar_to`` (the id of a
    document, which is itself left out); only words can be ``strict``.

    ``combine`` says what a text without a field counts: the sum of its fields, or the best of
    them and ``tie_breaker`` times the others.

    ``timeout_ms`` bounds the whole answer; ``min_coverage`` is the share of documents that
    must have been searched for the answer to count. None means the root's setting.
    """

    q: str | None = None
    query: Query | None = None
    similar_to: str | None = None
    strict: bool = False
    combine: Combine = "sum"
    tie_breaker: TieBreaker = 0.0
    k: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    offset: Annotated[int, msgspec.Meta(ge=0, le=RESULT_WINDOW_MAX)] = 0
    timeout_ms: Annotated[float, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)] | None = None
    min_coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    filter: FilterRequest = ()
    sort: SortRequest = ("_score",)
    facets: FacetsRequest = {}
    cursor: Annotated[str, msgspec.Meta(max_length=CURSOR_CHARS_MAX)] | None = None
    fields: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] | None = None
    highlight: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] | None = None
    hedge: HedgeName | None = None
    priority: Priority = "interactive"
    trace: bool = False
    explain: bool = False


class SuggestRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What somebody has typed so far: how may its last word go on?"""

    prefix: Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX)] = ""
    k: Annotated[int, msgspec.Meta(ge=1, le=SUGGESTIONS_MAX)] = 10
    timeout_ms: Annotated[float, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)] | None = None


class OneOfSeveral(SearchRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A search among others, of a collection: of the first, if it names none."""

    collection: str | None = None


class MultiSearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Searches that are run at once and answered in order, each by itself."""

    searches: Annotated[
        tuple[OneOfSeveral, ...], msgspec.Meta(min_length=1, max_length=SEARCHES_MAX)
    ]


class _Searches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same, each search as it was sent: one that cannot be read is no fault of the others."""

    searches: Annotated[
        tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=SEARCHES_MAX)
    ]


Deed = Literal["slow", "quicken", "stop", "resume", "kill"]


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What trouble to make, on which leaf (its URL)."""

    leaf: str
    do: Deed


_Body = TypeVar("_Body", bound=msgspec.Struct)
_Search = TypeVar("_Search", bound=SearchRequest)


def search_from_json(body: bytes) -> SearchRequest:
    """Return the request in a POST body."""
    return checked(decoded(body, SearchRequest))


def one_of_several_from_json(body: bytes) -> OneOfSeveral:
    """Return one of the searches in a POST body. Raises BadRequest."""
    return checked(decoded(body, OneOfSeveral))


def searches_from_json(body: bytes) -> list[bytes]:
    """Return the searches in a POST body, each still to be read. Raises BadRequest."""
    return [bytes(search) for search in decoded(body, _Searches).searches]


def decoded(body: bytes, of: type[_Body]) -> _Body:
    """Return a body of JSON as what it is to be. Raises BadRequest."""
    try:
        request = msgspec.json.decode(body, type=of)
        json.loads(body, object_pairs_hook=_each_once)
    except msgspec.ValidationError as error:
        raise _named(str(error), body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest("body", f"is not valid JSON: {error}") from None
    return request


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that has a name twice: which of the two is meant, nobody knows."""
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            raise BadRequest(name, "is given twice")
        seen.add(name)
    return dict(members)


def search_from_query_string(query_string: bytes) -> SearchRequest:
    """Return the request in the parameters of a GET."""
    values = {name: _read(name, text) for name, text in parameters(query_string).items()}
    try:
        request = msgspec.convert(values, SearchRequest)
    except msgspec.ValidationError as error:
        raise _named(str(error), values) from None
    return checked(request)


def suggest_from_query_string(query_string: bytes) -> SuggestRequest:
    """Return the request of a GET for suggestions."""
    values = {
        name: _read(name, text, _SUGGEST_READERS) for name, text in parameters(query_string).items()
    }
    try:
        request = msgspec.convert(values, SuggestRequest)
    except msgspec.ValidationError as error:
        raise _named(str(error), values) from None
    check_text("prefix", request.prefix)
    if not request.prefix.strip():
        raise BadRequest("prefix", "is empty: type the beginning of a word")
    return request


def parameters(query_string: bytes) -> dict[str, str]:
    """Return the parameters of a query string, each at most once, as strict UTF-8."""
    found: dict[str, str] = {}
    parts = query_string.split(b"&") if query_string else []
    if len(parts) > PARAMETERS_MAX:
        raise BadRequest("query string", f"has more than {PARAMETERS_MAX} parameters")
    for part in filter(None, parts):
        raw_name, _, raw_value = part.partition(b"=")
        name = _unquoted(raw_name, "query string")
        if not name:
            raise BadRequest("query string", "has a value without a name")
        if name in found:
            raise BadRequest(name, "is given twice")
        found[name] = _unquoted(raw_value, name)
    return found


def _unquoted(raw: bytes, field: str) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise BadRequest(field, "is not valid UTF-8") from None


def checked(request: _Search) -> _Search:
    """Return a request whose members go together. Raises BadRequest."""
    given = [request.q, request.query, request.similar_to]
    if given.count(None) != len(given) - 1:
        raise BadRequest(
            "q", "give one of q (words), query (a tree) and similar_to (a document's id)"
        )
    if request.similar_to is not None:
        check_text("similar_to", request.similar_to)
    if request.strict and request.q is None:
        raise BadRequest("strict", "is about q (words); a query tree is always read strictly")
    if request.tie_breaker and request.combine != "best":
        raise BadRequest("tie_breaker", "is about combine=best: a sum breaks no ties")
    if request.cursor is not None and request.offset:
        raise BadRequest("offset", "is about pages without a cursor, which says where to go on")
    if request.offset + request.k > RESULT_WINDOW_MAX:
        raise BadRequest("offset", f"offset + k must not pass {RESULT_WINDOW_MAX}")
    return request


# --- reading text strictly ---------------------------------------------------------------


def _integer(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,20}", text):
        raise BadRequest(name, f"must be a whole number, not {text[:40]!r}")
    return int(text)


def _number(name: str, text: str) -> float:
    if not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", text):
        raise BadRequest(name, f"must be a number, not {text[:40]!r}")
    return float(text)


def _switch(name: str, text: str) -> bool:
    known = {"1": True, "true": True, "0": False, "false": False}
    if text not in known:
        raise BadRequest(name, f"must be 1 or 0, true or false, not {text[:40]!r}")
    return known[text]


def _names(_: str, text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _text(_: str, text: str) -> str:
    return text


def _json(name: str, text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise BadRequest(name, f"is not JSON: {error}") from None


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "q": _text,
    "similar_to": _text,
    "strict": _switch,
    "combine": _text,
    "tie_breaker": _number,
    "k": _integer,
    "offset": _integer,
    "timeout_ms": _number,
    "min_coverage": _number,
    "filter": _json,
    "sort": _names,
    "facets": _json,
    "cursor": _text,
    "fields": _names,
    "highlight": _names,
    "hedge": _text,
    "priority": _text,
    "trace": _switch,
    "explain": _switch,
}


_SUGGEST_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "prefix": _text,
    "k": _integer,
    "timeout_ms": _number,
}


def _read(name: str, text: str, readers: Mapping[str, Callable[[str, str], Any]] = _READERS) -> Any:
    reader = readers.get(name)
    if reader is None:
        raise BadRequest(
            name[:NAME_CHARS_MAX], f"is not a parameter; there are {', '.join(readers)}"
        )
    return reader(name, text)


_PATH: Final = re.compile(r" - at (?P<name>`key` in )?`\$\.?(?P<path>[^`]*)`$")
_ANY_FACET: Final = "facets[...]"
_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>[^`]*)`")


def _named(message: str, given: bytes | dict[str, Any]) -> BadRequest:
    """Turn msgspec's message, which ends in a path, into an error that names the field.

    ``given`` is the whole request, as JSON or its members.
    """
    path = found["path"] if (found := _PATH.search(message)) else ""
    of_a_name = "a name in it " if found and found["name"] else ""
    if path.startswith(_ANY_FACET):
        path = _bad_facet(given) + path.removeprefix(_ANY_FACET)
    detail = _PATH.sub("", message)
    if unknown := _UNKNOWN.search(message):
        path = f"{path}.{unknown['name']}".lstrip(".")
        detail = "is not a field of the request"
    words = of_a_name + _in_words(path, detail)
    return BadRequest(path[:NAME_CHARS_MAX] or "body", words[:DETAIL_CHARS_MAX])


def _bad_facet(given: bytes | dict[str, Any]) -> str:
    """Return the path of the first facet that is none: msgspec does not tell the names in it."""
    members = _json("body", given) if isinstance(given, bytes) else given
    for name, facet in members["facets"].items():
        try:
            msgspec.convert(facet, FacetRequest)
        except msgspec.ValidationError:
            return f"facets.{name}"
    return _ANY_FACET


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "combine": get_args(Combine),
    "hedge": get_args(HedgeName),
    "priority": get_args(Priority),
    "type": tuple(str(node.__struct_config__.tag) for node in get_args(Query)),
}
_FACETS: Final = tuple(str(facet.__struct_config__.tag) for facet in get_args(FacetRequest))
_JSON_TYPES: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_LENGTH: Final = re.compile(
    r"Expected `(?P<of>str|array|object)` of length (?P<bound>[<>]=) (?P<limit>[0-9]+)"
)
_PARTS: Final[Mapping[str, str]] = {"str": "characters", "array": "values", "object": "members"}
_MOST: Final[Mapping[str, str]] = {"<=": "most", ">=": "least"}
_BOUND: Final = re.compile(r"Expected `[^`]*` (?P<bound>[<>]=) (?P<limit>[0-9.]+)")
_TYPE: Final = re.compile(r"Expected `(?P<wanted>\w+)[^`]*`, got `(?P<got>\w+)`")


def _in_words(path: str, detail: str) -> str:
    """Say msgspec's complaint as a person would; what is not known here stays as it is."""
    if found := _BOUND.search(detail):
        return f"must be at {_MOST[found['bound']]} {found['limit']}"
    if found := _LENGTH.search(detail):
        return f"must have at {_MOST[found['bound']]} {found['limit']} {_PARTS[found['of']]}"
    if found := _TYPE.search(detail):
        wanted, got = (_JSON_TYPES.get(found[side], found[side]) for side in ("wanted", "got"))
        return f"must be {wanted}, not {got}"
    first, last = re.split(r"[.\[]", path)[0], path.rpartition(".")[2]
    choices = _FACETS if (first, last) == ("facets", "type") else _CHOICES.get(last)
    if choices and detail.startswith("Invalid"):
        return f"must be one of {', '.join(choices)}; {detail.rpartition(' ')[2]} is none of them"
    return detail
