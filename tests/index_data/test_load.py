"""From what leaves count to what a rebalancing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from index_data import load
from index_data.load import BadLoadFile, LeafLoad, LoadFile, measured, read_load


def leaf(ordinal: int, by_shard: dict[int, float], /, **change: Any) -> LeafLoad:
    """What one of two leaves says."""
    said: dict[str, Any] = {
        "leaf": f"leaf{ordinal}",
        "pid": 10 + ordinal,
        "ordinal": ordinal,
        "leaves": 2,
        "replicas": 1,
        "domain": f"rack{ordinal}",
        "work_s": {"docs": {"g1": by_shard}},
    }
    return LeafLoad(**said | change)


def test_work_is_what_all_leaves_did_between_two_readings() -> None:
    """By shard, whichever leaf did it; the order of the leaves does not matter."""
    before = [leaf(0, {0: 1.0, 1: 5.0}), leaf(1, {1: 2.0})]
    after = [leaf(1, {1: 2.5, 2: 0.25}), leaf(0, {0: 1.0, 1: 6.0})]
    found = measured(before, after)
    assert found == LoadFile("g1", 2, 1, {0: 0.0, 1: 1.5, 2: 0.25}, ("rack0", "rack1"))


def test_a_leaf_that_was_started_again_counts_from_its_start() -> None:
    """Its process has another number; and without a first reading all count so."""
    before = [leaf(0, {0: 100.0}), leaf(1, {})]
    after = [leaf(0, {0: 3.0}, pid=99), leaf(1, {})]
    assert measured(before, after).work_s == {0: 3.0}
    assert measured([], after).work_s == {0: 3.0}


def test_the_newest_generation_of_all_is_measured() -> None:
    """One that some leaf has not opened is not searched yet."""
    a = leaf(0, {}, work_s={"docs": {"g1": {0: 1.0}, "g2": {0: 2.0}, "g3": {0: 9.0}}})
    b = leaf(1, {}, work_s={"docs": {"g1": {1: 1.0}, "g2": {1: 2.0}}})
    assert measured([], [a, b]) == LoadFile("g2", 2, 1, {0: 2.0, 1: 2.0}, ("rack0", "rack1"))
    with pytest.raises(BadLoadFile, match="no generation"):
        measured([], [a, leaf(1, {}, work_s={})])


def test_a_collection_is_measured_by_itself() -> None:
    """The first, or the one that is named, whichever has the newest generation."""
    both = {"docs": {"g1": {0: 1.0}}, "articles": {"g2": {0: 5.0}}}
    fleet = [leaf(0, {}, work_s=both), leaf(1, {}, work_s=both)]
    assert measured([], fleet).work_s == {0: 2.0}
    found = measured(fleet, fleet, "articles")
    assert (found.generation, found.work_s) == ("g2", {0: 0.0})
    with pytest.raises(BadLoadFile, match="no generation of 'nowhere'"):
        measured([], fleet, "nowhere")


@pytest.mark.parametrize(
    ("leaves", "words"),
    [
        ([leaf(0, {})], "each of the 2 leaves once; these are 0"),
        ([leaf(0, {}), leaf(0, {})], "these are 0, 0"),
        ([leaf(0, {}), leaf(1, {}, replicas=2)], "2 leaves x 1 and 2 leaves x 2"),
    ],
)
def test_what_is_not_the_whole_of_one_fleet_is_refused(leaves: list[LeafLoad], words: str) -> None:
    """A leaf left out would make its shards look cold."""
    with pytest.raises(BadLoadFile, match=words):
        measured([], leaves)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not a load"),
        (b"\xff", "not a load"),
        (b'{"generation": "g", "leaves": 2, "replicas": 1}', "work_s"),
        (b'{"generation": "g", "leaves": 2, "replicas": 1, "work_s": {"0": NaN}}', "not a load"),
        (b'{"generation": "g", "leaves": "2", "replicas": 1, "work_s": {}}', "leaves"),
        (b'{"generation": "g", "leaves": 2, "replicas": 1, "work_s": {}, "x": 1}', "x"),
    ],
)
def test_a_file_that_is_no_load_is_refused(raw: bytes, words: str, tmp_path: Path) -> None:
    """The sentence says which member is wrong."""
    path = tmp_path / "load.json"
    path.write_bytes(raw)
    with pytest.raises(BadLoadFile, match=words):
        read_load(path)


def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing, or far too large."""
    path = tmp_path / "load.json"
    with pytest.raises(BadLoadFile, match="cannot be read"):
        read_load(path)
    path.write_bytes(msgspec.json.encode(LoadFile("g", 2, 1, {})))
    assert read_load(path) == LoadFile("g", 2, 1, {})
    monkeypatch.setattr(load, "LOAD_BYTES_MAX", 1)
    with pytest.raises(BadLoadFile, match="too large"):
        read_load(path)
