"""Old generations go, and none that anybody needs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from index_data.build import build
from index_data.manifest import BUILDING_PREFIX, NoIndex, generations
from index_data.pruning import PruneRefused, prune
from index_data.sources import Collection


def test_all_but_the_newest_go(collection: Collection, tmp_path: Path) -> None:
    """So many stay as are asked for; a second time there is nothing to do."""
    names = [build(collection, tmp_path, 1).folder.name for _ in range(4)]
    assert prune(tmp_path, 3) == names[:1]
    assert prune(tmp_path, 2) == names[1:2]
    assert prune(tmp_path, 2) == []
    assert [entry.name for entry in sorted(tmp_path.iterdir())] == names[2:]


@pytest.mark.parametrize("keep", [1, 0, -1])
def test_what_leaves_open_cannot_be_removed(
    collection: Collection, tmp_path: Path, keep: int
) -> None:
    """A leaf that starts opens two."""
    names = [build(collection, tmp_path, 1).folder.name for _ in range(2)]
    with pytest.raises(PruneRefused, match=f"--keep must be 2 or more, not {keep}"):
        prune(tmp_path, keep)
    assert generations(tmp_path) == names


def test_where_nothing_was_built_nothing_is_made(tmp_path: Path) -> None:
    """A slip of the pen is told."""
    with pytest.raises(NoIndex):
        prune(tmp_path / "nowhere", 2)
    assert not (tmp_path / "nowhere").exists()


def test_what_is_half_removed_is_no_generation(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever removes may be killed: the next one goes on, and nobody opens half of it."""
    names = [build(collection, tmp_path, 1).folder.name for _ in range(4)]
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_args, **_named: None)
        prune(tmp_path, 3)
    assert generations(tmp_path) == names[1:]
    assert any(entry.name.startswith(BUILDING_PREFIX) for entry in tmp_path.iterdir())
    assert prune(tmp_path, 3) == []
    assert [entry.name for entry in sorted(tmp_path.iterdir())] == names[1:]
