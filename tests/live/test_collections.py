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


def searched(root_url: str, docs: str, first: str, stop_s: float) -> tuple[bool, set[str]]:
    """Search both until there is another generation of articles than the first, or it is too late.

    Return whether every answer was whole, that of the others from their one generation, and the
    generations of articles that were seen.
    """
    unharmed, seen = True, {first}
    with Client(root_url) as one, Client(root_url, collection="articles") as two:
        while seen == {first} and time.monotonic() < stop_s:
            unharmed = unharmed and is_whole(one.search("*", k=1), docs)
            answer = two.search("headline", k=1)
            unharmed = unharmed and answer.coverage.complete
            seen.add(answer.generation)
            time.sleep(POLL_S)
    return unharmed, seen


def test_both_collections_are_searched(both: tuple[Fleet, Path]) -> None:
    """Each answers with its own documents, and one that there is not is told so."""
    fleet, _ = both
    url = fleet.root_url
    with Client(url) as docs, Client(url, collection="articles") as articles:
        listed = docs.collections().collections
        assert [each.collection for each in listed] == ["default", "articles"]
        assert [each.documents for each in listed] == [2000, ARTICLES]
        assert docs.document("d00007").fields.keys() >= {"title", "body"}
        assert articles.document("d00007").fields["headline"] == "headline 7 first"
        assert docs.search("first").total.value == 0
        searches: list[dict[str, Any]] = [
            {"q": "first", "k": 1},
            {"q": "*", "collection": "default"},
        ]
        found, others = articles.searches(searches)
        assert isinstance(found, SearchAnswer)
        assert isinstance(others, SearchAnswer)
        assert (found.total.value, others.total.value) == (ARTICLES, 2000)
    with Client(url, collection="nowhere") as nowhere, pytest.raises(AtFault) as raised:
        nowhere.search("first")
    assert "default, articles" in raised.value.detail


def test_one_is_built_anew_and_the_other_is_unaffected(both: tuple[Fleet, Path]) -> None:
    """While a new generation is taken up, everybody who searches is answered."""
    fleet, folder = both
    (first,) = generations(folder)
    with Client(fleet.root_url) as docs, Client(fleet.root_url, collection="articles") as articles:
        generation = docs.topology().generation
        assert generation is not None
        with ThreadPoolExecutor() as pool:
            stop_s = time.monotonic() + FOLLOWED_S
            asking = pool.submit(searched, fleet.root_url, generation, first, stop_s)
            build(folder, LATER, "second")
            unharmed, seen = asking.result()
        assert unharmed
        assert seen == {*generations(folder)}
        assert articles.search("second").total.value == LATER
        assert is_whole(docs.search("*", k=1), generation)
