"""What shards cost: what leaves report, what is measured from that, and the file between.

A leaf counts for each shard the time that its workers spent on it, since it started
(``GET /load``, a ``LeafLoad``). ``measured`` adds up the leaves' counts between two readings;
the result is the file that a rebalancing reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from index_data.manifest import IndexDataError

LOAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""A hundred thousand shards need about 2 MiB."""


class BadLoadFile(IndexDataError):
    """A load that cannot be read, or that leaves do not agree on."""


class LeafLoad(msgspec.Struct, frozen=True):
    """What one leaf says: its place in the fleet, and seconds of work by collection, in their
    order, by generation and by shard.

    ``pid`` tells a leaf that was started again, and counts from 0, from one that was not.
    """

    leaf: str
    pid: int
    ordinal: int
    leaves: int
    replicas: int
    domain: str
    work_s: dict[str, dict[str, dict[int, float]]]


class LoadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The work that each shard of a generation was, on a fleet of so many leaves.

    A shard that is not named had nothing to do. ``domains`` by ordinal, if they are known.
    """

    generation: str
    leaves: int
    replicas: int
    work_s: dict[int, float]
    domains: tuple[str, ...] = ()


def read_load(path: Path) -> LoadFile:
    """Read a load. Raises BadLoadFile, naming the member that is wrong."""
    try:
        if path.stat().st_size > LOAD_BYTES_MAX:
            raise BadLoadFile(f"{path} is too large to be a load.")
        return msgspec.json.decode(path.read_bytes(), type=LoadFile)
    except OSError as error:
        raise BadLoadFile(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLoadFile(f"{path} is not a load: {error}.") from error


def measured(
    before: Sequence[LeafLoad], after: Sequence[LeafLoad], collection: str | None = None
) -> LoadFile:
    """Return what all leaves of a fleet did between two readings, of the newest generation of a
    collection, or of the first one, that all of them hold. Without a reading before, since they
    started.

    Raises BadLoadFile where a leaf is missing, named twice, or of another fleet.
    """
    fleet = sorted(after, key=lambda load: load.ordinal)
    leaves, replicas = _fleet_of(fleet)
    name = next(iter(fleet[0].work_s), "default") if collection is None else collection
    generation = _newest(fleet, name)
    earlier = {(load.ordinal, load.pid): load for load in before}
    work_s: dict[int, float] = {}
    for load in fleet:
        old = earlier.get((load.ordinal, load.pid))
        spent_s = old.work_s.get(name, {}).get(generation, {}) if old else {}
        for shard, until_now_s in load.work_s[name][generation].items():
            new_s = until_now_s - spent_s.get(shard, 0.0)
            work_s[shard] = work_s.get(shard, 0.0) + new_s
    by_shard = {shard: round(work_s[shard], 6) for shard in sorted(work_s)}
    domains = tuple(load.domain for load in fleet)
    return LoadFile(generation, leaves, replicas, by_shard, domains)


def _fleet_of(fleet: Sequence[LeafLoad]) -> tuple[int, int]:
    sizes = sorted({(load.leaves, load.replicas) for load in fleet})
    if len(sizes) > 1:
        said = " and ".join(f"{leaves} leaves x {replicas}" for leaves, replicas in sizes)
        raise BadLoadFile(f"These leaves are not of one fleet: they are of {said}.")
    leaves, replicas = sizes[0]
    ordinals = [load.ordinal for load in fleet]
    if ordinals != list(range(leaves)):
        named = ", ".join(map(str, ordinals))
        raise BadLoadFile(f"Name each of the {leaves} leaves once; these are {named}.")
    return leaves, replicas


def _newest(fleet: Sequence[LeafLoad], collection: str) -> str:
    common = set.intersection(*(set(load.work_s.get(collection, ())) for load in fleet))
    if not common:
        raise BadLoadFile(f"There is no generation of {collection!r:.60} that all leaves hold.")
    return max(common)
