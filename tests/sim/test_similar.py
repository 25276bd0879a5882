"""What is like a document: the same on every replica, and as one index ranks it."""

from __future__ import annotations

from typing import Any

import pytest

from bench.simulation.scripted import fails
from bench.virtual_time import run
from leaf.suggestion import SuggestBody
from root.config import Settings
from tests.sim.real_index import Asking, RealIndex
from tests.sim.serving import PLENTY, Served, is_problem, served

SIZE = 200


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> RealIndex:
    """Two hundred documents in seven shards."""
    return RealIndex.of(tmp_path_factory.mktemp("similar"), SIZE, "similar")


def ids_of(index: RealIndex, k: int = SIZE) -> list[str]:
    """The first ids."""
    return [identity for identity, _ in index.oracle.search({"type": "all"}, SIZE)[1]][:k]


def tree_of(index: RealIndex, identity: str) -> dict[str, Any]:
    """The query that finds what is like a document, as its leaf's words make it."""
    (found,) = [
        document
        for shard in index.generation.shards.values()
        for document in index.generation.suggest(SuggestBody(like=identity), shard)
    ]
    assert found.fields["words"]
    return {
        "type": "bool",
        "should": [{"type": "word", "text": word} for word in found.fields["words"]],
    }


def wanted(index: RealIndex, identity: str, **asked: Any) -> list[tuple[str, float]]:
    """All that is like a document, and not itself, as one index has it."""
    found = index.oracle.select(tree_of(index, identity), {"k": SIZE, **asked})["hits"]
    return [(other, score) for other, score in found if other != identity]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"filter": [{"field": "year", "gte": 1996}]},
        {"sort": ["-year", "_id"]},
    ],
    ids=range(3),
)
def test_what_is_like_a_document_is_as_one_index_has_it(
    index: RealIndex, asked: dict[str, Any]
) -> None:
    """Without the document; on any replica, with filters and in any order."""

    async def main() -> None:
        for seed, identity in enumerate(ids_of(index, 20)):
            expected = wanted(index, identity, **asked)
            request = {"similar_to": identity, "k": 30, **asked}
            found = await Asking(index, seed).search(request)
            assert found["total"] == {"value": len(expected), "relation": "eq"}
            assert [hit["id"] for hit in found["hits"]] == [other for other, _ in expected[:30]]
            scores = [score for _, score in expected[:30]]
            assert [hit["score"] for hit in found["hits"]] == pytest.approx(scores, rel=1e-3)

    run(main)


def test_what_is_like_a_document_can_be_gone_through(index: RealIndex) -> None:
    """Page by page, on another root and other replicas each time; facets count it all."""

    async def main() -> None:
        identity = ids_of(index, 1)[0]
        expected = wanted(index, identity)
        facets = {"kinds": {"type": "terms", "field": "kind", "size": 1000}}
        asked: dict[str, Any] = {"similar_to": identity, "k": 17, "facets": facets}
        seen: list[str] = []
        for page in range(SIZE):
            found = await Asking(index, page).search(asked)
            seen += [hit["id"] for hit in found["hits"]]
            counts = sum(bucket["count"] for bucket in found["facets"]["kinds"]["buckets"])
            assert counts < len(expected)
            assert counts == sum(
                "kind" in one.fields for one in documents(index, [o for o, _ in expected])
            )
            if found["next"] is None:
                break
            asked["cursor"] = found["next"]
        assert seen == [other for other, _ in expected]

    run(main)


def documents(index: RealIndex, ids: list[str]) -> list[Any]:
    """Documents by their ids."""
    return [
        document
        for shard in index.generation.shards.values()
        for identity in ids
        for document in shard.fetch(None, shard.lookup(identity), None, ())
    ]


def test_words_that_are_alike_are_highlighted(index: RealIndex) -> None:
    """As those of any query."""

    async def main() -> None:
        found = await Asking(index).search({"similar_to": ids_of(index, 1)[0]})
        assert all("<em>" in hit["highlights"]["body"] for hit in found["hits"])

    run(main)


def test_a_document_that_does_not_exist_is_like_none(index: RealIndex) -> None:
    """404 with the parameter's name; and 400 for what is no id, or beside a query."""

    async def body(serving: Served) -> None:
        members = is_problem(await serving.client.get("/search?similar_to=nowhere"), 404)
        assert members["field"] == "similar_to"
        for target, field in (
            ("/search?similar_to=a&q=b", "q"),
            ("/search?similar_to=%00", "similar_to"),
            ("/search?similar_to=a&strict=1", "strict"),
        ):
            assert is_problem(await serving.client.get(target), 400)["field"] == field

    served(body, index=index)


def test_nobody_says_that_a_document_does_not_exist_while_a_shard_is_missing(
    index: RealIndex,
) -> None:
    """504: it may be there. Where the document is found, coverage is a search's as ever."""

    async def body(serving: Served) -> None:
        lost = [index.generation.shards[shard] for shard in (0, 4)]
        missing = next(i for i in ids_of(index) if any(shard.lookup(i) for shard in lost))
        there = next(i for i in ids_of(index) if not any(shard.lookup(i) for shard in lost))
        for number in (0, 1):
            serving.fleet.disconnect(number)
        detail = is_problem(await serving.client.get(f"/search?similar_to={missing}"), 504)
        assert "may hold the document" in detail["detail"]
        is_problem(await serving.client.get(f"/search?similar_to={there}"), 504)
        found = await serving.client.get(f"/search?similar_to={there}&min_coverage=0.3")
        assert found.status == 200
        assert [each["shard"] for each in found.json["coverage"]["missing"]] == [0, 4]
        for leaf in serving.fleet.leaves:
            leaf.script = fails("error")
        is_problem(await serving.client.get(f"/search?similar_to={there}"), 503)

    served(body, Settings(budget=PLENTY, canary=False), index=index)
