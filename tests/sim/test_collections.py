"""Several collections in one fleet: answers never mix, and trouble of one is not the other's."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.simulation.scripted import Deed, Leg, Script, fails, takes, takes_about
from root.config import Settings
from tests.sim.serving import PLENTY, WORK_S, is_problem
from tests.sim.shelves import (
    ARTICLES,
    DOCS,
    LEAVES,
    NEWER,
    Serving,
    Shelf,
    on_all_leaves,
    serving,
)

PATHS: Final = {"": DOCS, "/collections/docs": DOCS, "/collections/articles": ARTICLES}
REQUESTS: Final = 40
HEDGES: Final = ("off", "together", "adaptive", "tied")
HURRIED: Final = Settings(budget=PLENTY, canary=False, hedge="together", timeout_ms=5000.0)


def check_page(answer: Any, shelf: Shelf, k: int) -> None:
    """Assert that a page is the one that its collection alone would have given."""
    assert answer["generation"] == shelf.generation
    assert [hit["id"] for hit in answer["hits"]] == shelf.ids(0, k)
    assert all(shelf.is_of(hit) for hit in answer["hits"])
    assert answer["total"] == {"value": shelf.size, "relation": "eq"}
    assert answer["coverage"]["shards"] == shelf.shards


def check_what_there_is(answer: Any, shelf: Shelf, k: int) -> bool:
    """Assert that what there is of an answer is of its collection; return whether it is whole."""
    if "error" in answer or "status" in answer:
        partial = answer.get("partial", answer)
        assert all(shelf.is_of(hit) for hit in partial.get("hits", []))
        return False
    check_page(answer, shelf, k)
    return True


async def ask(on: Serving, random: Random) -> int:
    """Send one request of some kind to one of the collections, check what comes back, and return
    how many whole answers that was: leaves may be lost faster than their legs are moved.
    """
    path, shelf = random.choice([*PATHS.items()])
    k = random.randint(1, 20)
    match random.choice(["search", "document", "searches"]):
        case "search":
            body = {"q": "word", "k": k, "hedge": random.choice(HEDGES)}
            answer = (await on.client.post(f"{path}/search", body)).json
            return check_what_there_is(answer, shelf, k)
        case "document":
            identity = random.choice(shelf.ids(0, shelf.size))
            answer = (await on.client.get(f"{path}/documents/{identity}")).json
            if "status" in answer:
                return 0
            assert answer["generation"] == shelf.generation
            assert shelf.is_of(answer)
            return 1
        case _:
            asked = [random.choice([DOCS, ARTICLES]) for _ in range(3)]
            searches = [{"q": "word", "k": k, "collection": one.name} for one in asked]
            answers = (await on.client.post("/searches", {"searches": searches})).json["answers"]
            pairs = zip(answers, asked, strict=True)
            return sum(check_what_there_is(answer, one, k) for answer, one in pairs)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_answers_never_mix(seed: int) -> None:
    """Same ids, other documents: with legs of both on the same leaves at the same time, hedged,
    and moved from leaves that are lost, every answer is of the collection that was asked.
    """
    random = Random(seed)

    async def flap(on: Serving) -> None:
        while True:
            await asyncio.sleep(random.expovariate(1 / 0.01))
            number = random.randrange(LEAVES)
            on.fleet.disconnect(number)
            await asyncio.sleep(random.expovariate(1 / 0.005))
            on.fleet.come_back(number)

    async def asking(on: Serving) -> int:
        await asyncio.sleep(random.random() * 0.2)
        return await ask(on, random)

    async def body(on: Serving) -> None:
        flapping = asyncio.create_task(flap(on))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asking(on)) for _ in range(REQUESTS)]
        flapping.cancel()
        await asyncio.gather(flapping, return_exceptions=True)
        assert sum(task.result() for task in tasks) > REQUESTS / 2

    serving(body, None, HURRIED, takes_about(0.004, 1.0, random))


def test_the_first_collection_is_asked_where_none_is_named() -> None:
    """``/collections`` lists all, that one first, and ``/topology`` is of one."""

    async def body(on: Serving) -> None:
        listed = (await on.client.get("/collections")).json["collections"]
        assert listed == [
            {
                "collection": shelf.name,
                "generation": shelf.generation,
                "documents": shelf.size,
                "shards": shelf.shards,
                "uncovered": [],
            }
            for shelf in (DOCS, ARTICLES)
        ]
        for path, shelf in PATHS.items():
            told = (await on.client.get(f"{path}/topology")).json
            assert (told["collection"], told["documents"]) == (shelf.name, shelf.size)
            assert [field["name"] for field in told["fields"]] == [
                shelf.field,
                f"{shelf.field}_tag",
            ]
            assert [*told["generations"]] == [shelf.generation]
            assert len(told["leaves"]) == LEAVES

    serving(body)


def test_each_collection_has_its_own_schema() -> None:
    """A field of the other one is not known, in filters, orders and highlights."""

    async def body(on: Serving) -> None:
        for path, shelf in PATHS.items():
            other = ARTICLES if shelf is DOCS else DOCS
            right = {"q": "a", "highlight": [shelf.field]}
            assert (await on.client.post(f"{path}/search", right)).status == 200
            for name, value in {
                "sort": [f"{other.field}_tag"],
                "highlight": [other.field],
                "filter": [{"field": f"{other.field}_tag", "equals": "x"}],
            }.items():
                answer = await on.client.post(f"{path}/search", {"q": "a", name: value})
                assert is_problem(answer, 400)["field"].startswith(name)

    serving(body)


def test_an_unknown_collection_is_named_with_those_there_are() -> None:
    """404 on every path, and no leaf is asked."""

    async def body(on: Serving) -> None:
        within = "/collections/nowhere"
        answers = [
            await on.client.get(f"{within}/search?q=a"),
            await on.client.post(f"{within}/search", {"q": "a"}),
            await on.client.post(f"{within}/export", {"q": "a"}),
            await on.client.get(f"{within}/suggest?prefix=a"),
            await on.client.get(f"{within}/documents/doc-00001"),
            await on.client.get(f"{within}/topology"),
        ]
        for answer in answers:
            members = is_problem(answer, 404)
            assert members["field"] == "collection"
            assert "'nowhere'" in members["detail"]
            assert "docs, articles" in members["detail"]
        searches = [{"q": "a", "collection": name} for name in ("nowhere", "articles")]
        failed, found = (await on.client.post("/searches", {"searches": searches})).json["answers"]
        assert (failed["status"], failed["error"]["field"]) == (404, "collection")
        check_page(found, ARTICLES, 10)
        assert on.fleet.received == ARTICLES.shards + len(found["hits"][:0]) + sum(
            leg.flight.ask.kind == "fetch" for leaf in on.fleet.leaves for leg in leaf.received
        )

    serving(body, None, HURRIED)


def test_a_collection_whose_leaves_are_gone_does_not_hurt_the_other() -> None:
    """The one is a 503, ``/readyz`` and ``/collections`` say which, and the other is whole."""
    apart = [[(DOCS, range(4))], [(DOCS, range(4))], [(ARTICLES, range(3))], [(ARTICLES, range(3))]]

    async def body(on: Serving) -> None:
        on.fleet.disconnect(2)
        on.fleet.disconnect(3)
        is_problem(await on.client.get("/collections/articles/search?q=a"), 503)
        found = await on.client.get("/collections/docs/search?q=a")
        assert found.status == 200
        check_page(found.json, DOCS, 10)
        ready = await on.client.get("/readyz")
        assert (ready.status, ready.json["uncovered"]) == (503, {"articles": [0, 1, 2]})
        assert ready.json["detail"] == "no connected leaf serves shards 0, 1, 2 of articles"
        listed = (await on.client.get("/collections")).json["collections"]
        assert [each["uncovered"] for each in listed] == [[], [0, 1, 2]]
        on.fleet.come_back(2)
        assert (await on.client.get("/readyz")).status == 200
        assert (await on.client.get("/collections/articles/search?q=a")).status == 200

    serving(body, apart)


def dies_of(shelf: Shelf) -> Script:
    """A leaf that ends on every search of one collection."""
    gone, well = fails("gone"), takes(WORK_S)

    def script(leg: Leg) -> Deed:
        return (gone if leg.flight.ask.generation == shelf.generation else well)(leg)

    return script


def test_a_query_that_does_harm_in_one_collection_is_let_in_to_the_other() -> None:
    """The same words and the same structure: what is refused is a query of a collection."""

    async def body(on: Serving) -> None:
        asked = {"q": "word"}
        for _ in range(2):
            is_problem(await on.client.post("/collections/docs/search", asked), 422)
        found = await on.client.post("/collections/articles/search", asked)
        check_page(found.json, ARTICLES, 10)
        is_problem(await on.client.post("/collections/docs/search", asked), 422)

    serving(body, script=dies_of(DOCS))


def test_a_query_that_is_proven_in_one_collection_is_tried_in_the_other() -> None:
    """One shard goes first there, too."""

    async def body(on: Serving) -> None:
        for path in ("/collections/docs", "/collections/articles"):
            for phases in (["canary", "search", "fetch"], ["search", "fetch"]):
                answer = (await on.client.post(f"{path}/search", {"q": "a", "trace": True})).json
                assert [phase["phase"] for phase in answer["trace"]] == phases

    serving(body)


def test_what_is_usual_in_one_collection_says_nothing_of_the_other() -> None:
    """Times are learned for each apart, and shown so."""

    async def body(on: Serving) -> None:
        for _ in range(30):
            await on.client.get("/collections/docs/search?q=a")
        histories = on.root.searches.fan_out.histories
        assert {collection for collection, _ in histories} == {"docs"}
        await on.client.get("/collections/articles/search?q=a")
        assert histories["articles", "search-short"].samples == ARTICLES.shards
        assert histories["docs", "search-short"].samples == 30 * DOCS.shards
        text = (await on.client.get("/metrics")).body.decode()
        assert 'hedgerow_root_shards_uncovered{collection="articles"} 0.0' in text
        shown = 'hedgerow_hedge_trigger_seconds{collection="docs",query_class="search-short"}'
        assert shown in text

    serving(body, None, Settings(budget=PLENTY, canary=False))


def test_a_cursor_goes_on_in_its_collection_only() -> None:
    """In the other it is a 400 that says where it belongs."""

    async def body(on: Serving) -> None:
        path, asked = "/collections/articles/search", {"q": "word", "k": 20}
        cursor = (await on.client.post(path, asked)).json["next"]
        again = (await on.client.post(path, {**asked, "cursor": cursor})).json
        assert again["generation"] == ARTICLES.generation
        assert all(ARTICLES.is_of(hit) for hit in again["hits"])
        for other in ("/search", "/collections/docs/search"):
            answer = await on.client.post(other, {**asked, "cursor": cursor})
            members = is_problem(answer, 400)
            assert members["field"] == "cursor"
            assert "'articles'" in members["detail"]

    serving(body)


def test_a_new_generation_of_one_collection_leaves_the_other_as_it_was() -> None:
    """As soon as all of it is held, searches of that collection use it; a cursor goes on in the
    old one as long as that is held, and is told 410 then.
    """

    async def body(on: Serving) -> None:
        asked = {"q": "word", "k": 20}
        page = (await on.client.post("/collections/articles/search", asked)).json
        goes_on = {**asked, "cursor": page["next"]}
        for held, number in zip(on_all_leaves(DOCS, ARTICLES, NEWER), range(LEAVES), strict=True):
            on.fleet.shelves[number] = held
            on.fleet.come_back(number)
        found = (await on.client.post("/collections/articles/search", asked)).json
        check_page(found, NEWER, 20)
        again = (await on.client.post("/collections/articles/search", goes_on)).json
        assert again["generation"] == ARTICLES.generation
        assert all(ARTICLES.is_of(hit) for hit in again["hits"])
        for path in ("", "/collections/docs"):
            check_page((await on.client.post(f"{path}/search", asked)).json, DOCS, 20)
        for held, number in zip(on_all_leaves(DOCS, NEWER), range(LEAVES), strict=True):
            on.fleet.shelves[number] = held
            on.fleet.come_back(number)
        answer = await on.client.post("/collections/articles/search", goes_on)
        assert is_problem(answer, 410)["field"] == "cursor"

    serving(body)


def test_an_export_is_of_one_collection() -> None:
    """From the first line to the last."""

    async def body(on: Serving) -> None:
        answer = await on.client.post(
            "/collections/articles/export", {"q": "*", "sort": ["_score"]}
        )
        assert answer.status == 200
        assert f'"generation":"{ARTICLES.generation}"'.encode() in answer.body.splitlines()[-1]
        assert answer.body.count(b" of articles in ") == ARTICLES.size
        assert b" of docs in " not in answer.body

    serving(body)


def test_a_leaf_that_holds_the_same_name_as_something_else_is_turned_away() -> None:
    """A generation's name is what legs are about: two of one name would mix, whatever collections
    they are in.
    """
    impostor = Shelf("articles", DOCS.generation, 30, 4, "body")

    async def body(on: Serving) -> None:
        on.fleet.shelves[3] = [(impostor, range(4))]
        with pytest.raises(Exception, match="another generation by the name of"):
            on.fleet.come_back(3)

    serving(body)


def test_a_collection_can_be_renamed_leaf_by_leaf() -> None:
    """Until all leaves have been told, both names are served by those that have them."""
    renamed = Shelf("manuals", DOCS.generation, DOCS.size, DOCS.shards, DOCS.field)

    async def body(on: Serving) -> None:
        for number in range(LEAVES):
            assert (await on.client.get("/collections/docs/search?q=a")).status == 200
            shards = dict(on.fleet.shelves[number])[DOCS]
            on.fleet.disconnect(number)
            on.fleet.shelves[number] = [(renamed, shards)]
            on.fleet.come_back(number)
            if number == 1:
                break
        listed = (await on.client.get("/collections")).json["collections"]
        assert [each["collection"] for each in listed] == ["manuals", "docs"]

    serving(body, [[(DOCS, range(4))]] * LEAVES)
