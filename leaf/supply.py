"""Where a leaf's generations come from: an index folder on this machine."""

from __future__ import annotations

from pathlib import Path

from index_data.manifest import IndexDataError, latest_generation, read_manifest
from leaf.config import Place
from leaf.errors import BadSetting
from leaf.shard import Generation


class IndexSupply:
    """Opens the newest finished generation of an index folder, as far as placement gives it."""

    def __init__(self, directory: Path, place: Place) -> None:
        self._directory = directory
        self._place = place

    def check(self) -> None:
        """Find the newest generation without opening it. Raises BadSetting."""
        self._find()

    def newer(self, than: str | None, /) -> Generation | None:
        """Open the newest generation if its name sorts after this one. Raises BadSetting."""
        path, shards = self._find()
        if than is not None and path.name <= than:
            return None
        try:
            return Generation.open(path, shards)
        except (IndexDataError, OSError) as error:
            raise BadSetting(f"{path.name} cannot be opened: {error}") from error

    def _find(self) -> tuple[Path, tuple[int, ...]]:
        try:
            path = latest_generation(self._directory)
            manifest = read_manifest(path)
        except (IndexDataError, OSError) as error:
            raise BadSetting(str(error)) from error
        return path, self._place.shards(len(manifest.shards))
