"""What is chosen of a generation's placement: a file beside its manifest, replaced as a whole.

    DIR/20261130-104500-3f2a/placement.json

Without the file the rule decides (``index_data.placement``). The file is no part of what was
built and no checksum covers it: it says where copies are, not what is in them. It belongs to
one generation, for shards are dealt anew with each; and to fleets of its number of leaves and
replicas, for any other goes by the rule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from index_data.manifest import IndexDataError, replace_whole
from index_data.placement import (
    BY_THE_RULE,
    BadPlacement,
    Chosen,
    check_chosen,
    check_fleet,
)

PLACEMENT_FILE: Final = "placement.json"
FORMAT_VERSION: Final = 1

PLACEMENT_BYTES_MAX: Final = 64 * 1024 * 1024
"""A hundred thousand shards with ten leaves each need about 8 MiB."""


class BadPlacementFile(IndexDataError):
    """A placement that cannot be read, or does not fit its generation."""


class PlacementFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. ``chosen`` are the leaves of each shard that does not go by the rule."""

    format: int
    generation: str
    leaves: int
    replicas: int
    chosen: dict[int, tuple[int, ...]]

    def for_fleet(self, leaves: int, replicas: int) -> Chosen:
        """Return what is chosen for a fleet: nothing, if the file was made for another."""
        made_for_it = (self.leaves, self.replicas) == (leaves, replicas)
        return self.chosen if made_for_it else BY_THE_RULE


def read_placement(generation: Path, shards: int) -> PlacementFile | None:
    """Read the placement of a generation of so many shards; None where nothing is chosen.

    Raises BadPlacementFile, naming the member that is wrong.
    """
    path = generation / PLACEMENT_FILE
    try:
        if path.stat().st_size > PLACEMENT_BYTES_MAX:
            raise BadPlacementFile(f"{path} is too large to be a placement.")
        placement = msgspec.json.decode(path.read_bytes(), type=PlacementFile)
        _check(placement, generation.name, shards)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadPlacementFile(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, BadPlacement) as error:
        raise BadPlacementFile(f"{path} is not valid: {error}.") from error
    return placement


def _check(placement: PlacementFile, generation: str, shards: int) -> None:
    if placement.format != FORMAT_VERSION:
        raise BadPlacement(f"format {placement.format}, and this version reads {FORMAT_VERSION}")
    if placement.generation != generation:
        raise BadPlacement(f"generation: it belongs to {placement.generation[:100]}")
    leaves, replicas = placement.leaves, placement.replicas
    check_fleet(leaves, replicas)
    check_chosen(placement.chosen, shards=shards, leaves=leaves, replicas=replicas)


def write_placement(generation: Path, placement: PlacementFile) -> None:
    """Replace the file: leaves see the old one or the new one."""
    data = msgspec.json.format(msgspec.json.encode(placement), indent=1)
    replace_whole(generation / PLACEMENT_FILE, data + b"\n")
