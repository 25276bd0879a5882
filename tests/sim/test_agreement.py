"""A root over shards answers as one big index would, whatever is asked in its language.

Hypothesis: for queries of every kind, with filters, orders and facets, of one page or several,
the hits have the same ids in the same order and the same scores, and totals, facets and
suggestions are the same as of one index over all documents, in its own words.

Model: the real root and real shards of two collections, one of English prose about code, one
of texts in ten scripts with fields of every type, after an update that has deleted and replaced
documents; leaves answer in virtual time.
"""

from __future__ import annotations

import asyncio
import random
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench import corpus, many_scripts
from bench.client import Answer, answer_of
from bench.experiments.agree import SHARE_WANTED, counts_equal, difference, whole
from bench.queries import Asked, begun, every_kind
from bench.reference import Reference
from bench.simulation.scripted import takes
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run
from index_data.build import build
from index_data.files import file_collection
from index_data.manifest import latest_generation
from index_data.pydocs import pydocs
from index_data.schema_file import read_schema
from index_data.sources import Collection
from index_data.update import read_ids, update
from leaf.shard import Generation
from root.config import Settings
from root.requests import SearchRequest, SuggestRequest, search_from_json
from root.search import Searches
from tests.sim.shards import Shards

SHARDS = 8
QUERIES = 300
BEGUN = 30
DOCUMENTS = 1200


def in_many_scripts(folder: Path) -> Collection:
    """Twelve hundred texts of one or two scripts each."""
    source, schema = many_scripts.write(folder, DOCUMENTS)
    said = read_schema(schema)
    return file_collection(source, said.id_field, said.fields)


def docstrings(folder: Path) -> Collection:
    """The docstrings of a few packages of the standard library."""
    for package in ("json", "email", "http", "logging", "urllib", "xml", "argparse.py"):
        (folder / package).symlink_to(Path(sysconfig.get_paths()["stdlib"]) / package)
    return pydocs((folder,))


def changed(index: Path, folder: Path) -> None:
    """Delete and replace documents of an index."""
    documents = Reference(index).documents()
    replaced, deleted = corpus.changes(documents, random.Random("changes"))
    source, gone = corpus.write_changes(folder, replaced, deleted)
    done = update(
        index, lambda manifest: file_collection(source, "id", manifest.fields), read_ids(gone)
    )
    assert done.replaced == done.deleted == round(corpus.CHANGED * len(documents))


def answers(
    generation: Generation, queries: Sequence[Asked], texts: Sequence[str]
) -> tuple[list[Answer], list[list[int]]]:
    """What a root over leaves with this generation answers, and the counts that it suggests."""

    async def main() -> tuple[list[Answer], list[list[int]]]:
        searches = searches_of(generation)
        loop = asyncio.get_running_loop()

        async def ask(body: Any) -> Answer:
            asked = search_from_json(orjson.dumps(body))
            return answer_of(await searches.search(asked, loop.time()))

        async def suggested(text: str) -> list[int]:
            found = await searches.suggest(SuggestRequest(prefix=text), loop.time())
            return [one["documents"] for one in found["suggestions"]]

        found = [await whole(ask, asked) for asked in queries]
        return found, [await suggested(text) for text in texts]

    return run(main)


def searches_of(generation: Generation) -> Searches:
    """A root over four leaves with a generation, two replicas a shard. On a running loop."""
    fleet = ScriptedFleet(
        generation.card,
        dealt(len(generation.shards), leaves=4, replicas=2),
        takes(0.002),
        answer=Shards(generation).answer,
    )
    return Searches(fleet, Settings(timeout_ms=5000.0), asyncio.get_running_loop().time())


@pytest.mark.parametrize("name", corpus.SOURCES)
def test_queries_of_every_kind_are_answered_as_by_one_index(name: str, tmp_path: Path) -> None:
    """In 99.5 of 100 the same hits, and the same totals, facets and suggestions in all."""
    (tmp_path / "packages").mkdir()
    pydocs_wanted = name == "pydocs"
    collection = docstrings(tmp_path / "packages") if pydocs_wanted else in_many_scripts(tmp_path)
    index = tmp_path / "index"
    build(collection, index, SHARDS)
    changed(index, tmp_path)
    generation = Generation.open(latest_generation(index), range(SHARDS))
    reference, rng = Reference(index), random.Random(f"{name} queries")
    words = corpus.words_of(reference.manifest, reference.documents())
    queries, texts = every_kind(words, rng, QUERIES), begun(words, rng, BEGUN)
    found, suggested = answers(generation, queries, texts)
    right = [reference.answer(asked) for asked in queries]
    pairs = list(zip(queries, found, right, strict=True))
    differences = {str(a): how for a, one, other in pairs if (how := difference(one, other))}
    assert all(counts_equal(one, other) for _, one, other in pairs), differences
    assert suggested == [reference.suggested(text) for text in texts]
    assert len(differences) <= (1 - SHARE_WANTED) * QUERIES, differences
    assert sum(bool(one.hits) for one in right) > QUERIES // 3
    assert sum(bool(counts) for counts in suggested) > BEGUN // 2


def test_what_finds_nothing_may_have_been_meant_otherwise(tmp_path: Path) -> None:
    """A query that finds nothing is answered with one that does; words are suggested by count."""
    build(in_many_scripts(tmp_path), tmp_path / "index", SHARDS)
    generation = Generation.open(latest_generation(tmp_path / "index"), range(SHARDS))

    async def main() -> None:
        searches = searches_of(generation)
        loop = asyncio.get_running_loop()

        async def asked(q: str) -> dict[str, Any]:
            return await searches.search(SearchRequest(q=q, trace=True), loop.time())

        found = await asked("+serach AND engien -поикс")
        assert found["total"]["value"] == 0
        assert found["did_you_mean"] == "(+search +engine) -поикс"
        assert [phase["phase"] for phase in found["trace"]][-1] == "suggest"
        assert found["attempts"]["sent"] == sum(len(p["attempts"]) for p in found["trace"])
        assert (await asked(found["did_you_mean"]))["total"]["value"] > 0
        assert (await asked("*serach"))["did_you_mean"] == "search"
        for q in ("search", "zzzzzz", "...", "+search +script:nowhere", "sxyz*"):
            assert (await asked(q))["did_you_mean"] is None
        going_on = await searches.suggest(SuggestRequest(prefix="quick sea"), loop.time())
        assert going_on["suggestions"][0]["text"] == "quick search"
        total = (await asked("search"))["total"]["value"]
        assert going_on["suggestions"][0]["documents"] <= total

    run(main)
