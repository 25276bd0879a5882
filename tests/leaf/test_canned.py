"""Canned shards: constant answers through the real path."""

from __future__ import annotations

from leaf.canned import HITS, CannedGeneration, CannedSupply
from leaf.config import Place


def test_hits_of_all_shards_are_distinct() -> None:
    """No document is in two shards, so a merged page has no repeats."""
    generation = CannedGeneration(7, range(7))
    found = [o for shard in generation.shards.values() for o in shard.search(None, 10)[2]]
    assert sorted(found) == list(range(7 * HITS))


def test_fewer_hits_when_fewer_are_asked_for() -> None:
    """The best k, best first."""
    shard = CannedGeneration(3, [1]).shards[1]
    total, scores, ordinals = shard.search(None, 2)
    assert (total, ordinals) == (10, [1, 4])
    assert scores == sorted(scores, reverse=True)[:2] == shard.search(None, 10)[1][:2]


def test_no_two_shards_score_alike() -> None:
    """Merging has to compare: there are no ties to decide it by."""
    generation = CannedGeneration(100, range(100))
    scores = [score for shard in generation.shards.values() for score in shard.search(None, 10)[1]]
    assert len(set(scores)) == len(scores)


def test_hits_can_be_fetched_and_looked_up() -> None:
    """Both phases find the same documents with the same scores."""
    shard = CannedGeneration(3, [1]).shards[1]
    _, scores, ordinals = shard.search(None, 10)
    documents = shard.fetch(None, ordinals, None, ())
    assert [document.score for document in documents] == scores
    assert [shard.lookup(document.id) for document in documents] == [[o] for o in ordinals]
    assert shard.lookup("canned-0000000") == shard.lookup("x") == []


def test_placement_decides_what_is_held() -> None:
    """A canned leaf holds what a real one in its place would, and gives it once."""
    place = Place(ordinal=1, leaves=4, replicas=2)
    supply = CannedSupply(16, place)
    generation = next(supply.changes({}))
    assert generation is not None
    assert tuple(generation.shards) == place.shards(16)
    assert len(generation.card.documents) == 16
    assert generation.without([3]) is generation
    assert not list(supply.changes({"canned": generation}))
