"""Filters, orders and facets of many shards are those of one index that is looked through."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from bench.virtual_time import run
from index_data.sources import Document
from root import paging
from root.errors import BadRequest, Gone
from tests.sim.real_index import KINDS, WORDS, Asking, RealIndex, collection

QUERIES = 120
SORTABLE = ("kind", "year", "big", "price", "at", "ok", "_id")


@pytest.fixture(scope="module", params=[("small", 60), ("larger", 300)], ids=lambda p: p[0])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RealIndex:
    """Two corpora: one in which shards have a handful of documents, and one five times larger."""
    name, size = request.param
    return RealIndex.of(tmp_path_factory.mktemp(name), size, name)


# --- generated requests ------------------------------------------------------------------


def tree(rng: Random) -> dict[str, Any]:
    """A query: all, a word, several."""
    match rng.randrange(3):
        case 0:
            return {"type": "all"}
        case 1:
            return {"type": "word", "text": rng.choice(WORDS)}
        case _:
            words = [{"type": "word", "text": text} for text in rng.sample(WORDS, 2)]
            return {"type": "bool", "must": words[:1], "should": words[1:]}


VALUES: dict[str, Callable[[Random], Any]] = {
    "kind": lambda rng: rng.choice(KINDS),
    "tags": lambda rng: rng.choice(["a", "b", 2**63, "nowhere"]),
    "year": lambda rng: rng.randint(1989, 2006),
    "big": lambda rng: 2**63 - 1 - rng.randint(0, 3),
    "price": lambda rng: rng.choice([0.0, 0.1, -0.5, 10, 1e300]),
    "sizes": lambda rng: rng.randint(-3, 3),
    "at": lambda rng: f"{rng.randint(1960, 1975)}-0{rng.randint(1, 9)}-01",
    "ok": lambda rng: rng.random() < 0.5,
}
RANGED = ("year", "big", "price", "sizes", "at")


def condition(rng: Random) -> dict[str, Any]:
    """A condition of any kind on any field."""
    kind = rng.randrange(4)
    field = rng.choice(RANGED if kind == 2 else tuple(VALUES))
    value = VALUES[field]
    asked: dict[str, Any] = {"field": field}
    match kind:
        case 0:
            asked["equals"] = value(rng)
        case 1:
            asked["one_of"] = [value(rng) for _ in range(rng.randint(1, 3))]
        case 2:
            bounds = rng.sample([("gt", "gte"), ("lt", "lte")], rng.randint(1, 2))
            asked |= {rng.choice(names): value(rng) for names in bounds}
        case _:
            asked["exists"] = rng.random() < 0.5
    return asked | ({"not": True} if rng.random() < 0.3 else {})


def facet(rng: Random) -> dict[str, Any]:
    """A facet of any kind on any field that has it."""
    match rng.randrange(5):
        case 0:
            size = rng.choice([1, 3, 1000])
            return {"type": "terms", "field": rng.choice(tuple(VALUES)), "size": size}
        case 1:
            interval, offset = rng.choice([(1, 0), (5, 2), (0.5, 0.25), (3, -7)])
            field = rng.choice(("year", "sizes"))
            return {"type": "histogram", "field": field, "interval": interval, "offset": offset}
        case 2:
            units = ("day", "12h", "30d", "week", "month", "quarter", "year")
            return {"type": "date_histogram", "field": "at", "interval": rng.choice(units)}
        case 3:
            return {"type": "stats", "field": rng.choice(RANGED)}
        case _:
            return {"type": "distinct", "field": rng.choice(tuple(VALUES))}


def request(rng: Random) -> dict[str, Any]:
    """A whole request with some of everything."""
    asked: dict[str, Any] = {"query": tree(rng), "k": rng.choice([1, 10, 40])}
    asked["offset"] = rng.choice([0, 0, 7])
    asked["filter"] = [condition(rng) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.6:
        keys = rng.sample(SORTABLE, rng.randint(1, 4))
        asked["sort"] = [rng.choice(("", "-")) + key for key in keys]
    asked["facets"] = {f"f{i}": facet(rng) for i in range(rng.randint(0, 3))}
    return asked


def close(found: Any, wanted: Any) -> bool:
    """Equal, but for the last digits of what is computed with doubles."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[n], wanted[n]) for n in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(wanted, float):
        return bool(found == pytest.approx(wanted, rel=1e-9, abs=1e-9))
    return bool(found == wanted)


def loosened(facets: dict[str, Any]) -> dict[str, Any]:
    """Facets without what is not exact: sums of integers that no double holds."""
    return {
        name: {
            n: float(v) if isinstance(v, int) and abs(v) >= 2**53 and n in {"sum", "avg"} else v
            for n, v in facet.items()
        }
        for name, facet in facets.items()
    }


def test_generated_requests_are_answered_as_by_one_index(index: RealIndex) -> None:
    """Total, ids, order, scores and facets, of every kind of request."""

    async def main() -> None:
        asking, rng = Asking(index), Random("requests")
        for _ in range(QUERIES):
            asked = request(rng)
            wanted = index.oracle.select(asked["query"], asked)
            found = await asking.search(asked)
            assert found["total"] == {"value": wanted["total"], "relation": "eq"}, asked
            ids = [hit["id"] for hit in found["hits"]]
            assert ids == [identity for identity, _ in wanted["hits"]], asked
            scores = [hit["score"] for hit in found["hits"]]
            assert scores == pytest.approx([score for _, score in wanted["hits"]], rel=1e-3)
            assert found["facets"].keys() == wanted["facets"].keys()
            for name, one in loosened(found["facets"]).items():
                other = loosened(wanted["facets"])[name]
                assert close(one, other), (asked["filter"], asked["facets"][name], one, other)

    run(main)


def test_a_filter_changes_no_score(index: RealIndex) -> None:
    """What passes has the score that it has without the filter, to the last bit."""

    async def main() -> None:
        asking = Asking(index)
        query = {"type": "word", "text": "alpha"}
        plain = await asking.search({"query": query, "k": 1000})
        scores = {hit["id"]: hit["score"] for hit in plain["hits"]}
        condition = [
            {"field": "year", "gte": 1995},
            {"field": "kind", "equals": "book", "not": True},
        ]
        filtered = await asking.search({"query": query, "k": 1000, "filter": condition})
        assert 0 < len(filtered["hits"]) < len(plain["hits"])
        assert {hit["id"]: hit["score"] for hit in filtered["hits"]}.items() <= scores.items()

    run(main)


def test_no_digit_of_an_integer_is_lost_anywhere(index: RealIndex) -> None:
    """Filtering, sorting and counting tell 2**63 - 1 from its neighbours."""

    async def main() -> None:
        asking = Asking(index)
        most = 2**63 - 1
        found = await asking.search(
            {
                "query": {"type": "all"},
                "filter": [{"field": "big", "gt": most - 2}],
                "sort": ["-big"],
                "facets": {
                    "values": {"type": "terms", "field": "big"},
                    "stats": {"type": "stats", "field": "big"},
                },
                "k": 1000,
            }
        )
        values = [hit["fields"]["big"] for hit in found["hits"]]
        assert values == sorted(values, reverse=True)
        assert set(values) == {most, most - 1}
        assert {b["value"]: b["count"] for b in found["facets"]["values"]["buckets"]} == {
            most: values.count(most),
            most - 1: values.count(most - 1),
        }
        assert found["facets"]["stats"]["min"] == most - 1
        assert found["facets"]["stats"]["max"] == most

    run(main)


@pytest.mark.parametrize("sort", [["_score"], ["year"], ["-kind", "price"], ["ok"], ["-_id"]])
def test_pages_through_everything_repeat_nothing_and_skip_nothing(
    index: RealIndex, sort: list[str]
) -> None:
    """Whichever replicas answer, and however many documents share a place."""

    async def main() -> None:
        seen: list[str] = []
        for page in range(1000):
            asking = Asking(index, seed=page)
            asked = {"query": {"type": "all"}, "sort": sort, "offset": page * 23, "k": 23}
            hits = (await asking.search(asked))["hits"]
            seen += [hit["id"] for hit in hits]
            if not hits:
                break
        wanted = index.oracle.select({"type": "all"}, {"sort": sort, "k": 10_000})
        assert seen == [identity for identity, _ in wanted["hits"]]

    run(main)


def test_facets_of_no_match_are_empty(index: RealIndex) -> None:
    """Every kind has its answer for nothing."""

    async def main() -> None:
        kinds: list[dict[str, Any]] = [
            {"type": "terms", "field": "kind"},
            {"type": "histogram", "field": "year", "interval": 1},
            {"type": "date_histogram", "field": "at", "interval": "month"},
            {"type": "stats", "field": "price"},
            {"type": "stats", "field": "at"},
            {"type": "distinct", "field": "tags"},
        ]
        asked: dict[str, Any] = {"query": {"type": "word", "text": "nowhere"}}
        asked["facets"] = {str(i): one for i, one in enumerate(kinds)}
        found = await Asking(index).search(asked)
        wanted = index.oracle.select(asked["query"], asked)
        assert close(found["facets"], wanted["facets"])

    run(main)


def test_the_corpus_has_what_is_tested() -> None:
    """Every field is missing somewhere, and every value drawn occurs."""
    documents = [d for d in collection(300, "larger").read() if isinstance(d, Document)]
    for field in VALUES:
        present = [d.source.get(field) is not None for d in documents]
        assert any(present)
        assert not all(present)
    assert len({d.id for d in documents}) == len(documents)


# --- cursors -----------------------------------------------------------------------------

ASKED: tuple[dict[str, Any], ...] = (
    {"query": {"type": "all"}},
    {"query": {"type": "word", "text": "alpha"}},
    {
        "query": {"type": "bool", "should": [{"type": "word", "text": w} for w in WORDS]},
        "filter": [{"field": "year", "exists": True}],
    },
    {"query": {"type": "all"}, "sort": ["year"]},
    {"query": {"type": "all"}, "sort": ["-kind", "price"]},
    {"query": {"type": "word", "text": "beta"}, "sort": ["ok", "-at", "kind"]},
    {"query": {"type": "all"}, "sort": ["-_id"]},
    {"query": {"type": "all"}, "sort": ["-big", "-_id"]},
)


@pytest.mark.parametrize("asked", ASKED, ids=range(len(ASKED)))
@pytest.mark.parametrize("k", [3, 41])
def test_cursors_lead_through_everything_without_repeat_or_gap(
    index: RealIndex, asked: dict[str, Any], k: int
) -> None:
    """On other roots and replicas each time, in the order of one index."""

    async def main() -> None:
        seen: list[str] = []
        cursor: dict[str, Any] = {}
        for page in range(2000):
            found = await Asking(index, seed=page).search(asked | {"k": k} | cursor)
            seen += [hit["id"] for hit in found["hits"]]
            if found["next"] is None:
                break
            assert len(found["hits"]) == k
            cursor = {"cursor": found["next"]}
        wanted = index.oracle.select(asked["query"], asked | {"k": 10_000})
        assert found["total"]["value"] == wanted["total"]
        assert len(set(seen)) == len(seen)
        assert seen == [identity for identity, _ in wanted["hits"]]

    run(main)


def test_plateaus_of_near_scores_have_no_repeat_and_no_gap(
    index: RealIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where too many are too near to be scored again, the order is another, and still total."""
    monkeypatch.setattr(paging, "FINALISTS_MAX", 2)

    async def main() -> None:
        asked: dict[str, Any] = {"query": {"type": "word", "text": "alpha"}, "k": 9}
        seen: list[str] = []
        for page in range(2000):
            found = await Asking(index, seed=page).search(asked)
            seen += [hit["id"] for hit in found["hits"]]
            if found["next"] is None:
                break
            asked["cursor"] = found["next"]
        wanted = index.oracle.select(asked["query"], {"k": 10_000})
        assert len(set(seen)) == len(seen)
        assert set(seen) == {identity for identity, _ in wanted["hits"]}

    run(main)


def test_a_cursor_is_for_one_query_and_one_generation(index: RealIndex) -> None:
    """Anything else is refused with its reason: 400, and 410 where the generation is gone."""

    async def main() -> None:
        asking = Asking(index)
        asked: dict[str, Any] = {"query": {"type": "all"}, "sort": ["year"], "k": 5}
        cursor = (await asking.search(asked))["next"]
        facets = {"x": {"type": "terms", "field": "kind"}}
        again = await asking.search(asked | {"cursor": cursor, "facets": facets, "k": 3})
        assert len(again["hits"]) == 3
        for other in ({"sort": ["-year"]}, {"query": {"type": "word", "text": "alpha"}}):
            with pytest.raises(BadRequest, match="belongs to another"):
                await asking.search(asked | other | {"cursor": cursor})
        with pytest.raises(BadRequest, match="offset"):
            await asking.search(asked | {"cursor": cursor, "offset": 5})
        for garbage in ("", "garbage", cursor[:-2], "é" + cursor, "A" + cursor):
            with pytest.raises(BadRequest, match="none that an answer has given"):
                await asking.search(asked | {"cursor": garbage})
        asking.searches.fleet.views.clear()
        with pytest.raises(Gone, match="held no more"):
            await asking.search(asked | {"cursor": cursor})

    run(main)


def test_pages_at_an_offset_have_no_cursor(index: RealIndex) -> None:
    """A list is gone through in one way or in the other."""

    async def main() -> None:
        asking = Asking(index)
        found = await asking.search({"query": {"type": "all"}, "offset": 5})
        assert found["next"] is None

    run(main)
