"""The HTTP face of a root: every status, what is counted, and who may leave when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.simulation.scripted import Deed, Script, by_shard, fails, hangs, takes
from root.asking import BODY_S_MAX
from root.config import Settings
from root.requests import BODY_BYTES_MAX
from tests.sim.serving import SHARDS, WORK_S, Exchange, Served, is_problem, served

ALL_AT_ONCE = Settings(canary=False)
"""Where a test counts legs or times them, and is not about queries of unknown shape."""


def test_a_search_is_answered_with_its_page() -> None:
    """GET and POST of the same request give the same answer, which says what it covers."""

    async def body(serving: Served) -> None:
        got = await serving.client.get("/search?q=anything&k=5&offset=2")
        posted = await serving.client.post("/search", {"q": "anything", "k": 5, "offset": 2})
        assert (got.status, got.headers["content-type"]) == (200, "application/json")
        assert got.json == posted.json
        assert [hit["id"] for hit in got.json["hits"]] == serving.corpus.ids(2, 5)
        assert got.json["total"] == {"value": 100, "relation": "eq"}
        assert got.json["coverage"] == {
            "complete": True,
            "shards": SHARDS,
            "answered": SHARDS,
            "documents": 100,
            "searched": 100,
            "missing": [],
        }
        assert got.json["generation"] == serving.corpus.card.generation
        assert got.json["took_ms"] == pytest.approx(2 * (WORK_S * 1000 + 0.2), abs=0.01)
        assert got.json["facets"] == {}
        assert got.json["next"] is None

    served(body, ALL_AT_ONCE)


def test_a_trace_has_every_attempt_of_both_phases() -> None:
    """With ``trace=1`` an answer says which leaf did what when, and how each attempt ended."""

    async def body(serving: Served) -> None:
        assert "trace" not in (await serving.client.get("/search?q=a")).json
        answer = (await serving.client.get("/search?q=a&trace=1")).json
        assert [phase["phase"] for phase in answer["trace"]] == ["search", "fetch"]
        attempts = [a for phase in answer["trace"] for a in phase["attempts"]]
        assert len(attempts) == answer["attempts"]["sent"]
        assert {(a["kind"], a["fate"]) for a in attempts} == {("primary", "won")}
        assert all(0 <= a["sent_ms"] < a["ended_ms"] <= answer["took_ms"] for a in attempts)
        assert all(a["service_ms"] == WORK_S * 1000 for a in attempts)

    served(body)


def test_a_body_over_the_limit_is_not_read_to_its_end() -> None:
    """413 as soon as the limit is passed; at the limit a body is read."""

    async def body(serving: Served) -> None:
        exchange = Exchange([b" " * 16_384] * 1000)
        await serving.client.run("POST", "/search", exchange)
        assert is_problem(exchange.answer(), 413)["field"] == "body"
        assert exchange.received < 10
        request = b'{"q": "a"}'
        padded = request + b" " * (BODY_BYTES_MAX - len(request))
        assert (await serving.client.post("/search", padded)).status == 200
        assert (await serving.client.post("/search", [padded, b" "])).status == 413

    served(body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("POST", "/trouble", 404),
        ("GET", "/nowhere", 404),
        ("PUT", "/search", 405),
        ("DELETE", "/documents/a", 405),
        ("POST", "/topology", 405),
    ],
)
def test_other_paths_and_methods_are_problems_too(method: str, path: str, status: int) -> None:
    """404 and 405 have the same form as every error; 405 says what is allowed."""

    async def body(serving: Served) -> None:
        answer = await serving.client.request(method, path)
        is_problem(answer, status)
        assert ("allow" in answer.headers) == (status == 405)
        assert serving.fleet.received == 0

    served(body)


def test_push_back_is_429_with_a_time() -> None:
    """When every leaf is busy, the client is told when to try again."""

    async def body(serving: Served) -> None:
        answer = await serving.client.get("/search?q=a")
        is_problem(answer, 429)
        assert int(answer.headers["retry-after"]) >= 1

    served(body, script=fails("busy"))


@pytest.mark.parametrize("field", ["q", "query"])
def test_a_query_that_does_harm_is_422_with_a_time(field: str) -> None:
    """The field, one clear sentence, and when one like it is tried again; what comes after that
    is answered.
    """

    async def body(serving: Served) -> None:
        asked = {"q": "a", "query": {"type": "word", "text": "a"}}
        for leaf in serving.fleet.leaves:
            leaf.script = fails("gone")
        for _ in range(2):
            answer = await serving.client.post("/search", {field: asked[field]})
            members = is_problem(answer, 422)
            assert members["field"] == field
            assert members["title"] == "Dangerous query"
            assert members["detail"] == (
                "queries of this structure are refused for 2 s, "
                "since a leaf was lost while it worked on one of them"
            )
            assert answer.headers["retry-after"] == "2"
        assert serving.fleet.received == 1
        for leaf in serving.fleet.leaves:
            leaf.script = takes(WORK_S)
        assert (await serving.client.get("/search?q=a+b")).status == 200
        await asyncio.sleep(2.0)
        assert (await serving.client.get("/search?q=a")).status == 200

    served(body)


def test_too_many_requests_at_once_are_429_at_once() -> None:
    """Over the limit a request is turned away and costs no leaf anything; then there is room."""

    async def body(serving: Served) -> None:
        answers = await asyncio.gather(*(serving.client.get("/search?q=a") for _ in range(5)))
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        assert all("retry-after" in answer.headers for answer in answers[3:])
        assert (await serving.client.get("/search?q=a")).status == 200

    served(body, Settings(in_flight_max=3))


def test_a_fault_of_the_root_is_500_and_says_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What went wrong is in the log, not in the answer."""

    async def body(serving: Served) -> None:
        async def broken(*_: object) -> dict[str, Any]:
            raise RuntimeError("a secret")

        monkeypatch.setattr(serving.root.searches, "search", broken)
        answer = await serving.client.get("/search?q=a")
        is_problem(answer, 500)
        assert b"secret" not in answer.body

    served(body)


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [(fails("error", after_s=0.001), 503, "error"), (hangs(), 504, "timeout")],
)
def test_no_answer_from_any_shard_is_never_an_empty_page(
    script: Script, status: int, reason: str
) -> None:
    """503 when all failed, 504 when time ran out; both say what was not searched."""

    async def body(serving: Served) -> None:
        for extra in ("", "&min_coverage=0"):
            answer = await serving.client.get(f"/search?q=a&timeout_ms=50{extra}")
            coverage = is_problem(answer, status)["coverage"]
            assert (coverage["answered"], coverage["searched"]) == (0, 0)
            assert {missing["reason"] for missing in coverage["missing"]} == {reason}

    served(body, script=script)


def test_no_leaf_at_all_is_503() -> None:
    """Before any leaf has said what it holds, and after the last one is lost."""

    async def body(serving: Served) -> None:
        for number in range(4):
            serving.fleet.disconnect(number)
        is_problem(await serving.client.get("/search?q=a"), 503)
        is_problem(await serving.client.get("/documents/doc-00001"), 503)

    served(body)


def test_too_little_in_time_is_504_with_what_there_is() -> None:
    """The body has the hits found, what was covered, and what is missing; asked for less,
    the same is 200.
    """

    async def body(serving: Served) -> None:
        partial = await serving.client.get("/search?q=a&timeout_ms=50")
        members = is_problem(partial, 504)
        assert members["coverage"]["missing"] == [{"shard": 2, "reason": "timeout"}]
        assert members["coverage"]["searched"] == 75
        assert members["total"] == {"value": 75, "relation": "gte"}
        assert len(members["hits"]) == 10
        enough = await serving.client.get("/search?q=a&timeout_ms=50&min_coverage=0.7")
        assert enough.status == 200
        assert enough.json["coverage"] == members["coverage"]
        assert await serving.metric("hedgerow_root_partial_answers_total") >= 1

    served(body, ALL_AT_ONCE, by_shard({2: hangs()}, takes(WORK_S)))


def test_a_document_is_found_by_its_id_or_not() -> None:
    """200 with its fields, or 404 that names the id."""

    async def body(serving: Served) -> None:
        found = await serving.client.get("/documents/doc-00042")
        assert (found.status, found.json["id"]) == (200, "doc-00042")
        assert found.json["fields"] == {"title": "doc-00042"}
        missing = await serving.client.get("/documents/a/b/c")
        assert is_problem(missing, 404)["field"] == "id"
        assert "a/b/c" in missing.json["detail"]
        assert is_problem(await serving.client.get("/documents/a\x01"), 400)["field"] == "id"

    served(body)


@pytest.mark.parametrize(("method", "path"), [("POST", "/search"), ("GET", "/documents/doc-00042")])
def test_a_query_string_that_nobody_reads_is_refused(method: str, path: str) -> None:
    """What it asks for would be ignored, and nobody told."""

    async def body(serving: Served) -> None:
        answer = await serving.client.request(method, f"{path}?trace=1")
        assert is_problem(answer, 400)["field"] == "trace"
        assert serving.fleet.received == 0

    served(body)


@pytest.mark.parametrize("target", ["/search?q=a", "/documents/doc-00001"])
def test_a_client_that_leaves_takes_its_query_along(target: str) -> None:
    """Its legs are cancelled, everything is accounted for, and the root stays calm."""

    async def body(serving: Served) -> None:
        exchange = Exchange([b""])
        request = asyncio.create_task(serving.client.run("GET", target, exchange))
        await asyncio.sleep(0.1)
        assert await serving.metric("hedgerow_root_requests_in_flight") == 1
        exchange.leaves.set()
        await request
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0
        assert await serving.metric("hedgerow_root_requests_total", status="499") == 1
        await asyncio.sleep(1.0)
        assert await serving.metric("hedgerow_attempts_ended_total", fate="cancelled") == SHARDS
        assert await serving.metric("hedgerow_attempts_in_flight") == 0

    served(body, ALL_AT_ONCE, takes(0.5))


def test_readiness_is_a_live_replica_of_every_shard() -> None:
    """``/readyz`` names the shards without one; ``/healthz`` only says that the root lives."""

    async def body(serving: Served) -> None:
        async def ready() -> tuple[int, Any]:
            answer = await serving.client.get("/readyz")
            return answer.status, answer.json.get("uncovered")

        await asyncio.sleep(0)
        assert serving.announced == [serving.fleet]
        assert await ready() == (200, None)
        serving.fleet.disconnect(1)
        assert await ready() == (200, None)
        serving.fleet.disconnect(2)
        assert await ready() == (503, {"default": [1]})
        serving.fleet.disconnect(0)
        serving.fleet.disconnect(3)
        assert await ready() == (503, {"default": [0, 1, 2, 3]})
        assert (await serving.client.get("/healthz")).status == 200
        for number in range(4):
            serving.fleet.come_back(number)
        assert await ready() == (200, None)
        assert serving.announced == [serving.fleet]

    served(body)


def test_the_topology_is_what_leaves_say_they_hold() -> None:
    """``/topology`` has generations, shards with their leaves, and what is wrong with a leaf."""

    async def body(serving: Served) -> None:
        serving.fleet.disconnect(3)
        serving.fleet[1].leaf.put_on_probation(0.0)
        topology = (await serving.client.get("/topology")).json
        assert topology["generation"] == serving.corpus.card.generation
        assert [shard["leaves"] for shard in topology["shards"]] == [
            ["leaf-0", "leaf-1"],
            ["leaf-1", "leaf-2"],
            ["leaf-2"],
            ["leaf-0"],
        ]
        leaves = topology["leaves"]
        assert [leaf["connected"] for leaf in leaves] == [True, True, True, False]
        assert [leaf["probation"] for leaf in leaves] == [False, True, False, False]
        assert [leaf["domain"] for leaf in leaves] == ["leaf-0", "leaf-1", "leaf-2", None]
        assert leaves[3]["problem"] == "the connection was closed"
        assert leaves[0]["problem"] is None

    served(body)


def test_every_attempt_is_accounted_for_in_the_metrics() -> None:
    """After a run of all sorts of trouble: sent is won, lost, cancelled and failed."""

    async def body(serving: Served) -> None:
        for _ in range(60):
            assert (await serving.client.get("/search?q=a")).status == 200
        serving.fleet[0].script = takes(0.02)
        serving.fleet[1].script = fails("error", after_s=0.001)
        serving.fleet[2].script = lambda leg: Deed(0.001 * (leg.attempt.number % 50))
        statuses = [
            (await serving.client.get("/search?q=a&timeout_ms=60&hedge=fixed")).status
            for _ in range(100)
        ]
        assert 200 in statuses
        serving.fleet.disconnect(3)
        await asyncio.sleep(5.0)
        sent = await serving.metric("hedgerow_attempts_sent_total")
        assert sent == await serving.metric("hedgerow_attempts_ended_total")
        for fate in ("won", "cancelled", "failed"):
            assert await serving.metric("hedgerow_attempts_ended_total", fate=fate) > 0
        assert await serving.metric("hedgerow_attempts_sent_total", kind="hedge") > 0
        assert await serving.metric("hedgerow_attempts_in_flight") == 0
        assert await serving.metric("hedgerow_root_requests_total", route="search") == 160

    served(body)


def test_a_client_that_leaves_before_it_has_asked_costs_nothing() -> None:
    """A body that never comes to its end is no request."""

    async def body(serving: Served) -> None:
        exchange = Exchange([])
        exchange.leaves.set()
        await serving.client.run("POST", "/search", exchange)
        assert serving.fleet.received == 0
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0

    served(body)


def test_a_server_that_ends_takes_its_queries_along() -> None:
    """A request that is cancelled cancels its legs, and is counted as given up."""

    async def body(serving: Served) -> None:
        request = asyncio.create_task(serving.client.get("/search?q=a"))
        await asyncio.sleep(0.1)
        request.cancel()
        await asyncio.wait([request])
        assert request.cancelled()
        await asyncio.sleep(1.0)
        assert await serving.metric("hedgerow_attempts_ended_total", fate="cancelled") == SHARDS
        assert await serving.metric("hedgerow_root_requests_total", status="499") == 1
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0

    served(body, ALL_AT_ONCE, takes(0.5))


def test_a_body_that_does_not_come_holds_no_place() -> None:
    """It is given up in the end; until then others are answered as if it were not there."""

    async def body(serving: Served) -> None:
        started_s = asyncio.get_running_loop().time()
        slow = [Exchange([b"{"], stalls=True) for _ in range(5)]
        waiting = [asyncio.create_task(serving.client.run("POST", "/search", e)) for e in slow]
        assert (await serving.client.get("/search?q=a")).status == 200
        await asyncio.gather(*waiting)
        assert asyncio.get_running_loop().time() - started_s == pytest.approx(BODY_S_MAX)
        for exchange in slow:
            assert is_problem(exchange.answer(), 408)["field"] == "body"
        assert (await serving.client.get("/search?q=a")).status == 200

    served(body, settings=Settings(in_flight_max=2))
