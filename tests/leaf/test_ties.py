"""Ties: a leg that has begun elsewhere is dropped here, however the messages cross."""

from __future__ import annotations

import pytest

from leaf import ties as ties_module
from leaf.ties import KEEP_S, Ties, Waiting


def legs(*shards: int) -> list[tuple[int, Waiting]]:
    """Legs of those shards, numbered as their shards are, on channel 1."""
    return [(shard, Waiting(1, shard)) for shard in shards]


def test_what_has_begun_elsewhere_is_dropped_here() -> None:
    """The legs of those shards, of that tie, and each once."""
    ties = Ties()
    assert ties.arrived("a", legs(1, 2, 3), 0.0) == []
    assert ties.arrived("b", legs(4), 0.0) == []
    assert ties.begun("a", [2, 4, 9], 0.1) == [Waiting(1, 2)]
    assert ties.begun("a", [2], 0.1) == []


def test_a_notice_may_come_before_the_leg() -> None:
    """It is remembered, and the leg dropped as it arrives."""
    ties = Ties()
    assert ties.begun("a", [1], 0.0) == []
    assert ties.arrived("a", legs(1, 2), KEEP_S / 2) == [Waiting(1, 1)]
    assert ties.begun("a", [1, 2], KEEP_S / 2) == [Waiting(1, 2)]


def test_a_key_that_is_not_known_drops_nothing() -> None:
    """Whoever does not know it has no say."""
    ties = Ties()
    ties.arrived("secret", legs(1), 0.0)
    assert ties.begun("guess", [1], 0.0) == []
    assert ties.begun("secret", [1], 0.0) == [Waiting(1, 1)]


def test_ties_are_forgotten_with_time() -> None:
    """Of both kinds; the notice is then lost, and nothing else."""
    ties = Ties()
    ties.begun("a", [1], 0.0)
    ties.arrived("b", legs(2), 0.0)
    assert ties.arrived("a", legs(1), KEEP_S) == []
    assert ties.begun("b", [2], KEEP_S) == []
    assert len(ties) == 2


@pytest.mark.parametrize("limit", ["TIES_MAX", "BEGUN_MAX"])
def test_the_oldest_are_forgotten_where_there_are_too_many(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in ties, and in legs begun elsewhere."""
    monkeypatch.setattr(ties_module, limit, 10)
    ties = Ties()
    for number in range(1000):
        ties.begun(f"tie {number}", [1], 0.0)
        assert len(ties) <= 11
    assert ties.arrived("tie 0", legs(1), 0.0) == []
    assert ties.arrived("tie 999", legs(1), 0.0) == [Waiting(1, 1)]


def test_a_notice_that_is_too_large_on_its_own_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it drops now it drops."""
    monkeypatch.setattr(ties_module, "BEGUN_MAX", 10)
    ties = Ties()
    ties.arrived("a", legs(5), 0.0)
    assert ties.begun("a", range(11), 0.0) == [Waiting(1, 5)]
    assert len(ties) == 0
