"""One fleet of real processes that serves two collections, of which one gets a new generation."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from bench import corpus
from bench.fleet import POLL_S, Fleet, Shape, running
from index_data.manifest import generations
from root.bodies import SearchAnswer
from root.client import AtFault, Client

pytestmark = pytest.mark.live

FOLLOWED_S: Final = 20.0
"""Leaves follow within two seconds; after this they never will."""

SHARDS: Final = 5
ARTICLES: Final = 300
LATER: Final = 500


def build(out: Path, documents: int, edition: str) -> None:
    """Build articles: of the same ids as the other collection's documents, with other fields."""
    source = out.parent / "articles.jsonl"
    lines = (
        json.dumps(
            {"id": f"d{n:05d}", "headline": f"headline {n} {edition}", "year": 1900 + n % 100}
        )
        for n in range(documents)
    )
    source.write_text("\n".join(lines), encoding="utf-8")
    corpus.build(out, str(source), SHARDS, "--id-field", "id", "--text-fields", "headline")


@pytest.fixture(name="both")
def both_fixture(index: Path, tmp_path: Path) -> Iterator[tuple[Fleet, Path]]:
    """A fleet of both, the other one being the first, and the folder of the articles."""
    articles = tmp_path / "articles"
    build(articles, ARTICLES, "first")
    docs = shutil.copytree(index, tmp_path / "docs")
    with running(Shape(docs, leaf_options=("--index", f"articles={articles}"))) as fleet:
        yield fleet, articles


def is_whole(answer: SearchAnswer, generation: str) -> bool:
    """Whether an answer is complete, and of this generation."""
    return answer.coverage.complete and answer.generation == generation


def test_two_collections_are_searched_and_one_is_built_anew(both: tuple[Fleet, Path]) -> None:
    """Each answers with its own documents; while a new generation of one is taken up, everybody
    who searches is answered, and the other does not change.
    """
    fleet, articles = both
    (first,) = generations(articles)
    docs = Client(fleet.root_url)
    named = Client(fleet.root_url, collection="articles")
    listed = docs.collections().collections
    assert [each.collection for each in listed] == ["default", "articles"]
    assert [each.documents for each in listed] == [2000, ARTICLES]
    generation = listed[0].generation
    assert generation is not None
    assert docs.document("d00007").fields.keys() == {"title", "body"}
    assert named.document("d00007").fields["headline"] == "headline 7 first"
    with pytest.raises(AtFault, match="default, articles"):
        Client(fleet.root_url, collection="nowhere").search("first")
    assert docs.search("first").total.value == 0
    found, other = named.searches([{"q": "first", "k": 1}, {"q": "*", "collection": "default"}])
    assert isinstance(found, SearchAnswer)
    assert isinstance(other, SearchAnswer)
    assert (found.total.value, other.total.value) == (ARTICLES, 2000)

    def searching(stop_s: float) -> tuple[bool, set[str]]:
        """Search both until the new one is there, or it is too late."""
        unharmed, seen = True, {first}
        with Client(fleet.root_url) as one, Client(fleet.root_url, collection="articles") as two:
            while seen == {first} and time.monotonic() < stop_s:
                unharmed = unharmed and is_whole(one.search("*", k=1), generation)
                answer = two.search("headline", k=1)
                unharmed = unharmed and answer.coverage.complete
                seen.add(answer.generation)
                time.sleep(POLL_S)
        return unharmed, seen

    with ThreadPoolExecutor() as pool:
        asking = pool.submit(searching, time.monotonic() + FOLLOWED_S)
        build(articles, LATER, "second")
        unharmed, seen = asking.result()
    assert unharmed
    assert seen == {*generations(articles)}
    assert named.search("second").total.value == LATER
    assert is_whole(docs.search("*", k=1), generation)
    topology: Any = docs.topology()
    assert topology.generation == generation
    docs.close()
    named.close()
