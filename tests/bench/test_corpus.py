"""What scripted leaves find: known without searching."""

from __future__ import annotations

import pytest

from bench.simulation.corpus import LENGTH_DEVIATION, Corpus
from bench.simulation.scripted import takes
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run, running_loop
from leaf.protocol import All, Query, Word
from root.config import Settings
from root.requests import SearchRequest
from root.search import Searches


def near_tie(ordinal: int) -> float:
    """So near that being off by what the card allows changes every place."""
    return 1.0 + (ordinal * 7 % 10) * LENGTH_DEVIATION / 10


def test_words_find_every_so_manieth_document_best_first() -> None:
    """Equal scores in the order of ids; ``*`` finds all, each as good as the other."""
    corpus = Corpus(7, 2, lambda i: 1.0 + i % 2)
    assert corpus.ranked(Word("every-3")) == [
        ("doc-00003", 2.0),
        ("doc-00000", 1.0),
        ("doc-00006", 1.0),
    ]
    assert [name for name, _ in corpus.ranked(Word("anything"))] == corpus.ids(0, 7)
    assert corpus.ranked(All()) == [(f"doc-0000{i}", 1.0) for i in range(7)]
    assert corpus.card.documents == (4, 3)
    assert corpus.shard_of("doc-00003") == 1


@pytest.mark.parametrize("query", [Word("every-2"), All()], ids=["word", "all"])
def test_a_root_finds_what_the_corpus_says_however_blurred(query: Query) -> None:
    """Phase one is off by as much as the card allows, elsewhere on each shard; the page is not."""

    async def main() -> None:
        corpus = Corpus(60, 4, near_tie, blurred=True)
        holdings = dealt(4, leaves=2, replicas=1)
        fleet = ScriptedFleet(corpus.card, holdings, takes(0.001), answer=corpus.answer)
        searches = Searches(fleet, Settings(), running_loop().time())
        body = await searches.search(
            SearchRequest(query=query, k=10, offset=5), running_loop().time()
        )
        hits = [(hit["id"], hit["score"]) for hit in body["hits"]]
        assert hits == corpus.ranked(query)[5:15]

    run(main)
