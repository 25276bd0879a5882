"""A client of a root: ``Client`` for plain code, ``AsyncClient`` for asyncio.

    with Client("http://127.0.0.1:8080") as client:
        answer = client.search("parse json", k=3)
        for hit in answer.hits:
            print(hit.id, hit.score)

Both have the same methods, return the types of ``root.bodies`` and ``root.states``, keep their
connection open between requests, and raise the same errors:

    ClientError
    ├── NoAnswer            nothing, or nothing that can be read, came back in time
    └── Refused             an answer that says no: status, title, detail, field, retry_after_s
        ├── AtFault         4xx: send something else
        ├── Busy            429, and 422 of a query in quarantine: try again later
        └── Unavailable     5xx: what there is of a search is ``partial``

A caller that is refused for a time is told how long (``retry_after_s``); nothing here tries again
by itself, but for a connection that the root had closed while it was idle.

Nothing of a root's own work is imported: this may be used where no root runs.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec

from root.bodies import (
    DocumentAnswer,
    FailedSearch,
    MultiSearchAnswer,
    PartialAnswer,
    Problem,
    SearchAnswer,
    SuggestAnswer,
)
from root.states import CollectionsAnswer, LiveAnswer, TopologyAnswer

TIMEOUT_S: Final = 10.0
"""Of a whole request; a root answers within its own timeout, which is shorter."""

BodyT = TypeVar("BodyT", bound=msgspec.Struct)


class ClientError(Exception):
    """Base of what a client raises."""


class NoAnswer(ClientError):
    """Nothing that can be read came back in time; says why, in one sentence."""


class Refused(ClientError):
    """An answer that says no. ``retry_after_s`` is when to try again, if that was said."""

    def __init__(
        self, problem: Problem, retry_after_s: int | None, partial: SearchAnswer | None
    ) -> None:
        """Take what the root has said."""
        where = f"{problem.field}: " if problem.field is not msgspec.UNSET else ""
        super().__init__(f"{where}{problem.detail}")
        self.status = problem.status
        self.title = problem.title
        self.detail = problem.detail
        self.field = None if problem.field is msgspec.UNSET else problem.field
        self.retry_after_s = retry_after_s
        self.partial = partial


class AtFault(Refused):
    """The request is at fault; ``field`` names what of it."""


class Busy(Refused):
    """Not now."""


class Unavailable(Refused):
    """The fleet cannot answer."""


class SearchOptions(TypedDict, total=False):
    """What a search may ask beside its query, or in its place; see ``root.requests``."""

    similar_to: str
    strict: bool
    combine: str
    tie_breaker: float
    k: int
    offset: int
    timeout_ms: float
    min_coverage: float
    filter: list[dict[str, Any]]
    sort: list[str]
    facets: dict[str, Any]
    cursor: str
    fields: list[str]
    highlight: list[str]
    hedge: str
    priority: str
    trace: bool
    explain: bool


class _Call(NamedTuple):
    """A request as it is sent."""

    method: str
    target: str
    body: bytes | None = None


class _Reply(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Calls:
    """The requests of a client that asks one collection, or the first."""

    def __init__(self, collection: str | None) -> None:
        self._collection = collection
        self._within = "" if collection is None else f"/collections/{quote(collection, safe='')}"

    def search(
        self, q: str | None, query: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> _Call:
        given = {"q": q, "query": query}
        asked = {name: value for name, value in given.items() if value is not None}
        return _Call("POST", f"{self._within}/search", msgspec.json.encode({**asked, **options}))

    def searches(self, searches: Iterable[Mapping[str, Any]]) -> _Call:
        named = {} if self._collection is None else {"collection": self._collection}
        body = {"searches": [{**named, **each} for each in searches]}
        return _Call("POST", "/searches", msgspec.json.encode(body))

    def suggest(self, prefix: str, k: int) -> _Call:
        return _Call("GET", f"{self._within}/suggest?{urlencode({'prefix': prefix, 'k': k})}")

    def document(self, document_id: str) -> _Call:
        return _Call("GET", f"{self._within}/documents/{quote(document_id, safe='')}")

    def topology(self) -> _Call:
        return _Call("GET", f"{self._within}/topology")


_COLLECTIONS: Final = _Call("GET", "/collections")
_LIVE: Final = _Call("GET", "/live")


def _read(reply: _Reply, wanted: type[BodyT]) -> BodyT:
    """Return the body of an answer. Raises ClientError."""
    try:
        if reply.status == 200:
            return msgspec.json.decode(reply.body, type=wanted)
        problem = msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NoAnswer(f"what answers with {reply.status} is no root: {error}") from error
    raise _refused(reply, problem)


def _refused(reply: _Reply, problem: Problem) -> Refused:
    later = reply.headers.get("retry-after", "")
    retry_after_s = int(later) if later.isdecimal() else None
    try:
        partial = msgspec.json.decode(reply.body, type=PartialAnswer)
    except msgspec.ValidationError:
        partial = None
    return _refusing(reply.status)(problem, retry_after_s, partial)


def _refusing(status: int) -> type[Refused]:
    """Return what a status is raised as."""
    if status in {422, 429}:
        return Busy
    return Unavailable if status >= 500 else AtFault


def _each(reply: _Reply) -> list[SearchAnswer | Refused]:
    """Return what has come of each search. Raises ClientError where the whole has failed."""
    return [_in_its_place(placed) for placed in _read(reply, MultiSearchAnswer).answers]


def _in_its_place(placed: Any) -> SearchAnswer | Refused:
    try:
        if "error" not in placed:
            return msgspec.convert(placed, SearchAnswer)
        failed = msgspec.convert(placed, FailedSearch)
    except (msgspec.ValidationError, TypeError) as error:
        raise NoAnswer(f"what answers is no root: {error}") from error
    unset = msgspec.UNSET
    retry_after_s = None if failed.retry_after_s is unset else failed.retry_after_s
    partial = None if failed.partial is unset else failed.partial
    return _refusing(failed.status)(failed.error, retry_after_s, partial)


def _base(url: str) -> str:
    """Return the address without a slash at its end. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
        raise ValueError(f"{url!r} is not an address like http://127.0.0.1:8080")
    _ = parts.port
    return url.rstrip("/")


class Client:
    """Asks one root, one request at a time: a thread needs one of its own."""

    def __init__(
        self, url: str, timeout_s: float = TIMEOUT_S, collection: str | None = None
    ) -> None:
        """``timeout_s`` is for each step of a request, ``collection`` the one to ask, if not the
        first. Raises ValueError for a bad address.
        """
        self._calls = _Calls(collection)
        parts = urlsplit(_base(url))
        connect = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        self._path = parts.path
        self._connection = connect[parts.scheme](parts.netloc, timeout=timeout_s)

    def search(
        self,
        q: str | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        **options: Unpack[SearchOptions],
    ) -> SearchAnswer:
        """Search for words, or for a query tree. Raises ClientError."""
        return _read(self._send(self._calls.search(q, query, options)), SearchAnswer)

    def searches(self, searches: Iterable[Mapping[str, Any]]) -> list[SearchAnswer | Refused]:
        """Run several searches at once, each given by its members; return, in order, the answer
        of each, or the error that it would have raised alone. Raises ClientError.
        """
        return _each(self._send(self._calls.searches(searches)))

    def document(self, document_id: str) -> DocumentAnswer:
        """Return a document by its id. Raises ClientError; AtFault with 404 if there is none."""
        return _read(self._send(self._calls.document(document_id)), DocumentAnswer)

    def suggest(self, prefix: str, k: int = 10) -> SuggestAnswer:
        """Return ways to go on with what is typed. Raises ClientError."""
        return _read(self._send(self._calls.suggest(prefix, k)), SuggestAnswer)

    def collections(self) -> CollectionsAnswer:
        """Return the collections that there are. Raises ClientError."""
        return _read(self._send(_COLLECTIONS), CollectionsAnswer)

    def topology(self) -> TopologyAnswer:
        """Return who holds what. Raises ClientError."""
        return _read(self._send(self._calls.topology()), TopologyAnswer)

    def live(self) -> LiveAnswer:
        """Return the state of the root and its last minute. Raises ClientError."""
        return _read(self._send(_LIVE), LiveAnswer)

    def close(self) -> None:
        """Close the connection; another request opens one again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: _Call) -> _Reply:
        kept = self._connection.sock is not None
        try:
            return self._exchange(call)
        except (ConnectionError, http.client.BadStatusLine) as error:
            if not kept:
                raise NoAnswer(_why(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise NoAnswer(_why(error)) from error
        try:  # the root had closed it while it was idle
            return self._exchange(call)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise NoAnswer(_why(error)) from error

    def _exchange(self, call: _Call) -> _Reply:
        headers = {"content-type": "application/json"} if call.body is not None else {}
        try:
            self._connection.request(call.method, self._path + call.target, call.body, headers)
            response = self._connection.getresponse()
            body = response.read()
        except BaseException:
            self.close()  # what is left on it belongs to nobody
            raise
        sent = {name.lower(): value for name, value in response.getheaders()}
        return _Reply(response.status, sent, body)


class AsyncClient:
    """Asks one root, any number of requests at once. Use it as an asynchronous context."""

    def __init__(
        self, url: str, timeout_s: float = TIMEOUT_S, collection: str | None = None
    ) -> None:
        """``timeout_s`` is for a whole request, ``collection`` the one to ask, if not the first.
        Raises ValueError for a bad address.
        """
        self._calls = _Calls(collection)
        self._base = _base(url)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def search(
        self,
        q: str | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        **options: Unpack[SearchOptions],
    ) -> SearchAnswer:
        """Search for words, or for a query tree. Raises ClientError."""
        return _read(await self._send(self._calls.search(q, query, options)), SearchAnswer)

    async def searches(self, searches: Iterable[Mapping[str, Any]]) -> list[SearchAnswer | Refused]:
        """Run several searches at once, each given by its members; return, in order, the answer
        of each, or the error that it would have raised alone. Raises ClientError.
        """
        return _each(await self._send(self._calls.searches(searches)))

    async def document(self, document_id: str) -> DocumentAnswer:
        """Return a document by its id. Raises ClientError; AtFault with 404 if there is none."""
        return _read(await self._send(self._calls.document(document_id)), DocumentAnswer)

    async def suggest(self, prefix: str, k: int = 10) -> SuggestAnswer:
        """Return ways to go on with what is typed. Raises ClientError."""
        return _read(await self._send(self._calls.suggest(prefix, k)), SuggestAnswer)

    async def collections(self) -> CollectionsAnswer:
        """Return the collections that there are. Raises ClientError."""
        return _read(await self._send(_COLLECTIONS), CollectionsAnswer)

    async def topology(self) -> TopologyAnswer:
        """Return who holds what. Raises ClientError."""
        return _read(await self._send(self._calls.topology()), TopologyAnswer)

    async def live(self) -> LiveAnswer:
        """Return the state of the root and its last minute. Raises ClientError."""
        return _read(await self._send(_LIVE), LiveAnswer)

    async def close(self) -> None:
        """Close all connections; another request opens one again."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, call: _Call) -> _Reply:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        headers = {"content-type": "application/json"} if call.body is not None else {}
        address = self._base + call.target
        try:
            async with self._session.request(
                call.method, address, data=call.body, headers=headers
            ) as response:
                sent = {name.lower(): value for name, value in response.headers.items()}
                return _Reply(response.status, sent, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise NoAnswer(_why(error)) from error


def _why(error: Exception) -> str:
    """Say why nothing came, in a sentence."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError | aiohttp.ClientConnectorError):
        return "nothing listens there"
    return str(error) or type(error).__name__
