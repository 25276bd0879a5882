"""The file that says where copies are: whole or absent, and refused by the member that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from index_data import manifest, placement_file
from index_data.placement_file import (
    PLACEMENT_FILE,
    BadPlacementFile,
    PlacementFile,
    read_placement,
    write_placement,
)

GOOD: dict[str, Any] = {
    "format": 1,
    "generation": "g",
    "leaves": 4,
    "replicas": 2,
    "chosen": {"3": [0, 1, 2]},
}


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    """A generation's folder."""
    folder = tmp_path / "g"
    folder.mkdir()
    return folder


def test_what_is_written_is_read(folder: Path) -> None:
    """Without a file nothing is chosen; a second write replaces the first and leaves no rest."""
    assert read_placement(folder, 16) is None
    choices: tuple[dict[int, tuple[int, ...]], ...] = ({3: (0, 1, 2)}, {})
    for chosen in choices:
        placement = PlacementFile(1, "g", 4, 2, chosen)
        write_placement(folder, placement)
        assert read_placement(folder, 16) == placement
    assert [path.name for path in folder.iterdir()] == [PLACEMENT_FILE]


def test_a_write_that_fails_leaves_the_old_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk changes nothing."""
    old = PlacementFile(1, "g", 4, 2, {3: (0, 1, 2)})
    write_placement(folder, old)

    def full(path: Path, data: bytes) -> None:
        path.write_bytes(data[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest, "write_through", full)
    with pytest.raises(OSError, match="No space"):
        write_placement(folder, PlacementFile(1, "g", 4, 2, {}))
    assert read_placement(folder, 16) == old
    assert [path.name for path in folder.iterdir()] == [PLACEMENT_FILE]


def test_a_placement_is_for_fleets_of_its_numbers() -> None:
    """Any other goes by the rule."""
    placement = PlacementFile(1, "g", 4, 2, {3: (0, 1, 2)})
    assert placement.for_fleet(4, 2) == {3: (0, 1, 2)}
    assert placement.for_fleet(5, 2) == placement.for_fleet(4, 1) == {}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": 2}, "format 2"),
        ({"generation": "h"}, "generation"),
        ({"leaves": 0}, "leaves"),
        ({"replicas": 5}, "replicas"),
        ({"chosen": {"16": [0, 1]}}, "no shard 16"),
        ({"chosen": {"x": [0, 1]}}, "chosen"),
        ({"chosen": {"3": [0, 9]}}, "shard 3"),
        ({"more": 1}, "more"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused_by_name(
    folder: Path, change: dict[str, Any], named: str
) -> None:
    """Whatever is wrong, one sentence names it."""
    (folder / PLACEMENT_FILE).write_text(json.dumps(GOOD | change))
    with pytest.raises(BadPlacementFile, match=named):
        read_placement(folder, 16)


def test_what_is_no_placement_at_all_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not JSON, not text, a folder, far too large."""
    path = folder / PLACEMENT_FILE
    for raw in (b"{", b"\xff\xfe"):
        path.write_bytes(raw)
        with pytest.raises(BadPlacementFile, match="is not valid"):
            read_placement(folder, 16)
    monkeypatch.setattr(placement_file, "PLACEMENT_BYTES_MAX", 1)
    with pytest.raises(BadPlacementFile, match="too large"):
        read_placement(folder, 16)
    path.unlink()
    path.mkdir()
    monkeypatch.undo()
    with pytest.raises(BadPlacementFile, match="cannot be read"):
        read_placement(folder, 16)
