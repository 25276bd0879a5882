"""Several searches in one request: each ends as it would alone, and none hurts another."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from bench.simulation.scripted import hangs, takes
from root.config import Settings
from root.requests import SEARCHES_BYTES_MAX, SEARCHES_MAX
from tests.sim.contract import Contract
from tests.sim.serving import PLENTY, WORK_S, Exchange, Served, is_problem, served

ALL_AT_ONCE: Final = Settings(canary=False)
"""Where answers are timed, and no query waits for another of its shape."""


def several(*searches: Any) -> dict[str, Any]:
    """A body with these searches."""
    return {"searches": [*searches]}


def untimed(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what it took."""
    return {name: value for name, value in answer.items() if name != "took_ms"}


def test_answers_come_in_the_order_of_the_searches() -> None:
    """Each is that of the search alone, whatever the others ask for."""
    searches = [{"q": "a", "k": k, "offset": 10 - k} for k in (7, 1, 4)]

    async def body(serving: Served) -> None:
        alone = [(await serving.client.post("/search", one)).json for one in searches]
        together = await serving.client.post("/searches", several(*searches))
        assert together.status == 200
        assert [untimed(each) for each in together.json["answers"]] == list(map(untimed, alone))

    served(body, ALL_AT_ONCE)


def test_they_run_at_once() -> None:
    """The whole takes what its slowest search takes, and each says what it took itself."""

    async def body(serving: Served) -> None:
        alone = (await serving.client.post("/search", {"q": "a"})).json["took_ms"]
        began_s = serving.now_s
        answers = (await serving.client.post("/searches", several(*[{"q": "a"}] * 3))).json
        assert (serving.now_s - began_s) * 1000 < 2 * alone
        assert all(each["took_ms"] >= alone for each in answers["answers"])

    served(body, ALL_AT_ONCE)


@pytest.mark.parametrize(
    ("bad", "status", "field"),
    [
        ({"q": "a", "k": 0}, 400, "k"),
        ({"q": "a", "nonsense": 1}, 400, "nonsense"),
        ({"k": 3}, 400, "q"),
        ({"q": "a", "sort": ["nowhere"]}, 400, "sort[0]"),
        (3, 400, "body"),
        (None, 400, "body"),
    ],
)
def test_one_that_is_at_fault_fails_alone(bad: Any, status: int, field: str) -> None:
    """Its place says what is wrong with it; the others are answered."""

    async def body(serving: Served) -> None:
        contract = Contract((await serving.client.get("/openapi.json")).json)
        answer = await serving.client.post("/searches", several({"q": "a"}, bad, {"q": "b"}))
        contract.check("post", "/searches", answer)
        first, failed, last = answer.json["answers"]
        assert first["hits"]
        assert last["hits"]
        assert (failed["status"], failed["error"]["status"]) == (status, status)
        assert failed["error"]["field"] == field

    served(body, ALL_AT_ONCE)


def test_each_has_its_own_deadline() -> None:
    """One in a hurry ends with what there is of its answer in time, and the other later."""

    async def body(serving: Served) -> None:
        contract = Contract((await serving.client.get("/openapi.json")).json)
        serving.fleet.leaves[0].script = serving.fleet.leaves[1].script = hangs()
        searches = [{"q": "a", "timeout_ms": 500}, {"q": "a", "timeout_ms": 20}]
        answer = await serving.client.post("/searches", several(*searches))
        contract.check("post", "/searches", answer)
        patient, hurried = answer.json["answers"]
        assert (patient["status"], hurried["status"]) == (504, 504)
        assert hurried["partial"]["coverage"]["missing"]
        assert hurried["partial"]["took_ms"] <= 20
        assert 400 <= patient["partial"]["took_ms"] <= 500

    served(body, Settings(canary=False, hedge="off"), takes(WORK_S))


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (b"[]", "body"),
        (b"{", "body"),
        (b'{"searches": [}', "body"),
        (b"{}", "body"),
        (b'{"searches": []}', "searches"),
        (b'{"searches": {}}', "searches"),
        (b'{"searches": [{"q": "a"}], "k": 3}', "k"),
        (b'{"searches": [{"q": "a", "q": "b"}]}', "q"),
    ],
)
def test_a_body_that_holds_no_searches_is_refused_whole(sent: bytes, field: str) -> None:
    """400, and nothing is sent to any leaf."""

    async def body(serving: Served) -> None:
        answer = await serving.client.post("/searches", sent)
        assert is_problem(answer, 400)["field"] == field
        assert serving.fleet.received == 0

    served(body)


def test_there_are_not_too_many_and_not_too_large_ones() -> None:
    """At the limits a request is answered; beyond, it is refused whole."""

    async def body(serving: Served) -> None:
        most = several(*[{"q": "a", "k": 1}] * SEARCHES_MAX)
        assert len((await serving.client.post("/searches", most)).json["answers"]) == SEARCHES_MAX
        more = several(*[{"q": "a", "k": 1}] * (SEARCHES_MAX + 1))
        assert is_problem(await serving.client.post("/searches", more), 400)["field"] == "searches"
        large = b" " * (SEARCHES_BYTES_MAX + 1)
        is_problem(await serving.client.post("/searches", large), 413)
        is_problem(await serving.client.post("/searches?k=3", several({"q": "a"})), 400)

    served(body)


def test_each_holds_a_place_among_the_requests_in_work() -> None:
    """Those that find none are told so in their places; without any place the whole is."""

    async def body(serving: Served) -> None:
        answers = (await serving.client.post("/searches", several(*[{"q": "a"}] * 4))).json
        refused = [each for each in answers["answers"] if "error" in each]
        assert [(each["status"], each["retry_after_s"]) for each in refused] == [(429, 1)] * 2
        others = [asyncio.create_task(serving.client.get("/search?q=a")) for _ in range(3)]
        await asyncio.sleep(WORK_S / 2)
        whole = await serving.client.post("/searches", several({"q": "a"}))
        is_problem(whole, 429)
        assert whole.headers["retry-after"] == "1"
        assert [(await other).status for other in others] == [200] * 3
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0

    served(body, Settings(canary=False, in_flight_max=3))


def test_a_client_that_leaves_takes_all_of_them_along() -> None:
    """Nothing is owed and nothing is in work any more, and each is counted."""

    async def body(serving: Served) -> None:
        sent = b'{"searches": [{"q": "a"}, {"q": "b"}]}'
        exchange = Exchange([sent])
        asking = asyncio.create_task(serving.client.run("POST", "/searches", exchange))
        await asyncio.sleep(WORK_S / 2)
        assert await serving.metric("hedgerow_root_requests_in_flight") == 3
        exchange.leaves.set()
        await asking
        await asyncio.sleep(2 * WORK_S)
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0
        assert await serving.metric("hedgerow_attempts_in_flight") == 0
        counted = {
            route: await serving.metric("hedgerow_root_requests_total", route=route, status="499")
            for route in ("search", "searches")
        }
        assert counted == {"search": 2, "searches": 1}

    served(body, Settings(canary=False, budget=PLENTY))
