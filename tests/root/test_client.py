"""The client, plain and asynchronous: what it sends, what it returns, and what it raises."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import pytest

from root.client import (
    AsyncClient,
    AtFault,
    Busy,
    Client,
    NoAnswer,
    Refused,
    SearchOptions,
    Unavailable,
)
from root.requests import SearchRequest
from tests.root.client_answers import ANSWER, PARTIAL, problem
from tests.root.client_server import canned


class Asks(Protocol):
    """Calls a method of a client, whichever kind it is."""

    def __call__(self, url: str, *calls: Callable[[Any], Any], timeout_s: float = 10.0) -> Any:
        """Return what the last of the calls returns; all are made with one client."""
        ...


def plain(url: str, *calls: Callable[[Any], Any], timeout_s: float = 10.0) -> Any:
    """With the plain one."""
    with Client(url, timeout_s) as client:
        return [call(client) for call in calls][-1]


def asynchronous(url: str, *calls: Callable[[Any], Any], timeout_s: float = 10.0) -> Any:
    """With the asynchronous one."""

    async def main() -> Any:
        async with AsyncClient(url, timeout_s) as client:
            return [await call(client) for call in calls][-1]

    return asyncio.run(main())


@pytest.fixture(params=[plain, asynchronous], ids=["plain", "async"])
def asks(request: pytest.FixtureRequest) -> Asks:
    """Each of both."""
    chosen: Asks = request.param
    return chosen


def test_a_search_is_sent_as_json_and_read_into_types(asks: Asks) -> None:
    """With all of its options; the answer has names, not keys."""
    with canned((200, ANSWER, {})) as root:
        found = asks(root.url, lambda c: c.search("json", k=3, sort=["-year"]))
        assert root.asked == [("POST", "/search", {"q": "json", "k": 3, "sort": ["-year"]})]
    assert [hit.id for hit in found.hits] == ["json.dumps"]
    assert found.coverage.documents == 7711
    assert found.trace is msgspec.UNSET


def test_the_other_questions_have_their_addresses(asks: Asks) -> None:
    """Ids keep their slashes and percent signs, prefixes their spaces."""
    document = {"id": "a/b %", "fields": {}, "generation": "g"}
    suggested = {"suggestions": [], "generation": "g", "took_ms": 0.1}
    with canned((200, document, {}), (200, suggested, {}), (200, ANSWER, {})) as root:
        tree = {"type": "all"}
        asks(
            root.url,
            lambda c: c.document("a/b %"),
            lambda c: c.suggest("json pa", 5),
            lambda c: c.search(query=tree),
        )
        assert root.asked == [
            ("GET", "/documents/a%2Fb%20%25", None),
            ("GET", "/suggest?prefix=json+pa&k=5", None),
            ("POST", "/search", {"query": tree}),
        ]


def test_one_connection_serves_many_requests(asks: Asks) -> None:
    """It is kept open in between."""
    with canned(*[(200, ANSWER, {})] * 5) as root:
        asks(root.url, *[lambda c: c.search("a")] * 5)
        assert root.connections == 1


def test_a_connection_that_was_closed_meanwhile_is_replaced(asks: Asks) -> None:
    """The root may close what is idle; the next request does not fail for it."""
    with canned((200, ANSWER, {"connection": "close"}), (200, ANSWER, {})) as root:
        asks(root.url, lambda c: c.search("a"), lambda c: c.search("a"))
        assert root.connections == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((400, AtFault), (404, AtFault), (410, AtFault), (413, AtFault)),
        *((422, Busy), (429, Busy), (503, Unavailable), (504, Unavailable)),
    ],
)
def test_what_is_refused_is_raised_by_who_must_act(
    asks: Asks, status: int, kind: type[Refused]
) -> None:
    """With the members of the problem, and when to try again."""
    body = problem(status, "because", field="k")
    with (
        canned((status, body, {"retry-after": "7"})) as root,
        pytest.raises(kind, match="k: because") as raised,
    ):
        asks(root.url, lambda c: c.search("a"))
    error = raised.value
    assert (error.status, error.field, error.retry_after_s) == (status, "k", 7)
    assert error.partial is None


def test_what_there_is_of_an_answer_comes_with_the_error(asks: Asks) -> None:
    """The hits of the shards that did answer are not lost."""
    with canned((504, PARTIAL, {})) as root, pytest.raises(Unavailable) as raised:
        asks(root.url, lambda c: c.search("a"))
    error = raised.value
    assert (error.field, error.retry_after_s) == (None, None)
    assert error.partial is not None
    assert [hit.id for hit in error.partial.hits] == ["json.dumps"]


def test_several_searches_come_back_in_order(asks: Asks) -> None:
    """Answers, and of those that failed the errors, which are not raised."""
    failed = {
        "error": problem(504, "too late"),
        "status": 504,
        "partial": {name: PARTIAL[name] for name in ANSWER},
    }
    busy = {"error": problem(429, "later"), "status": 429, "retry_after_s": 3}
    wrong = {"error": problem(400, "is none", field="k"), "status": 400}
    with canned((200, {"answers": [ANSWER, failed, busy, wrong]}, {})) as root:
        found, late, later, at_fault = asks(root.url, lambda c: c.searches([{"q": "a"}] * 4))
        assert root.asked == [("POST", "/searches", {"searches": [{"q": "a"}] * 4})]
    assert [hit.id for hit in found.hits] == ["json.dumps"]
    assert isinstance(late, Unavailable)
    assert late.partial is not None
    assert late.partial.coverage.missing[0].shard == 3
    assert isinstance(later, Busy)
    assert (later.retry_after_s, later.partial) == (3, None)
    assert isinstance(at_fault, AtFault)
    assert at_fault.field == "k"


def test_a_client_may_be_of_one_collection() -> None:
    """All that it asks is asked there; of several searches those that name no other."""
    state: dict[str, Any] = {"collection": "a b", "generation": None, "documents": 0}
    topology = {
        **state,
        "collections": ["a b"],
        "fields": [],
        "shards": [],
        "generations": {},
        "leaves": [],
    }
    listed = {"collections": [{**state, "shards": 0, "uncovered": []}]}
    bodies: list[Any] = [ANSWER, {"answers": []}, topology, listed]
    with (
        canned(*[(200, body, {}) for body in bodies]) as root,
        Client(root.url, collection="a b") as one,
    ):
        one.search("json")
        one.searches([{"q": "a"}, {"q": "b", "collection": "docs"}])
        assert one.topology().collection == "a b"
        assert [each.collection for each in one.collections().collections] == ["a b"]
        both = [{"collection": "a b", "q": "a"}, {"collection": "docs", "q": "b"}]
        assert root.asked == [
            ("POST", "/collections/a%20b/search", {"q": "json"}),
            ("POST", "/searches", {"searches": both}),
            ("GET", "/collections/a%20b/topology", None),
            ("GET", "/collections", None),
        ]


@pytest.mark.parametrize("placed", [3, {}, {"error": {}, "status": 1}])
def test_what_is_no_answer_in_its_place_is_told_apart(asks: Asks, placed: Any) -> None:
    """As everywhere."""
    with canned((200, {"answers": [placed]}, {})) as root, pytest.raises(NoAnswer, match="no root"):
        asks(root.url, lambda c: c.searches([{"q": "a"}]))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff"])
@pytest.mark.parametrize("status", [200, 502])
def test_what_is_no_root_is_told_apart(asks: Asks, status: int, body: bytes) -> None:
    """Whatever else listens there."""
    with canned((status, body, {})) as root, pytest.raises(NoAnswer, match="is no root"):
        asks(root.url, lambda c: c.search("a"))


def test_nobody_there_is_no_answer(asks: Asks) -> None:
    """In words."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoAnswer, match="nothing listens there"):
        asks(f"http://127.0.0.1:{port}", lambda c: c.search("a"))


def test_silence_ends_after_the_timeout(asks: Asks) -> None:
    """A root that takes the request and says nothing holds nobody for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NoAnswer, match="no answer in time"):
            asks(url, lambda c: c.search("a"), timeout_s=0.05)


def test_one_that_hangs_up_is_no_answer(asks: Asks) -> None:
    """A new connection that is closed without a word is not tried for ever."""
    with canned(None, None, None) as root, pytest.raises(NoAnswer):
        asks(root.url, lambda c: c.search("a"))


@pytest.mark.parametrize("url", ["", "root", "ftp://a", "http://", "http://a:port", "http://a?b"])
def test_a_bad_address_is_refused_at_once(url: str) -> None:
    """Before anything is sent."""
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match=r"address|[Pp]ort"):
            kind(url)


def test_the_options_are_those_of_a_search() -> None:
    """All of them, and no other."""
    assert set(SearchOptions.__annotations__) | {"q", "query"} == set(
        SearchRequest.__struct_fields__
    )
