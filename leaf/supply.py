"""Where a leaf's generations come from: index folders on this machine, one a collection.

A leaf that starts opens the newest generations, not the newest alone: right after a build
other leaves may not have the new one yet, and where every leaf that is restarted came back with
nothing but the new, for a while neither would be whole. Later it opens what is newer than all
it has. Which shards of a generation are held, its placement says (``index_data.placement``),
and what has been chosen of it (``index_data.placement_file``), now and whenever that changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from index_data.manifest import IndexDataError, generations, latest_generation, read_manifest
from index_data.placement import BY_THE_RULE
from index_data.placement_file import PlacementFile, read_placement
from leaf.config import Place
from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration
from leaf.protocol import DEFAULT_COLLECTION
from leaf.shard import Generation

log = logging.getLogger(__name__)


class _Wanted(NamedTuple):
    """What a leaf is to hold of a generation by one placement, and how many leaves what shard."""

    placement: PlacementFile | None
    shards: frozenset[int]
    holders: tuple[int, ...]


class Supplies:
    """The supplies of several collections. A generation belongs to one of them: its name is what
    legs are about, so the same name a second time is not opened.
    """

    def __init__(self, supplies: Sequence[IndexSupply]) -> None:
        """Of the collections in their order."""
        self._supplies = supplies

    def check(self) -> None:
        """Find the newest generation of each without opening it. Raises BadSetting."""
        for supply in self._supplies:
            supply.check()

    def changes(self, held: Mapping[str, HeldGeneration], /) -> Iterator[Generation | BadSetting]:
        """Yield what is to be held, or to replace the one of its name, or why it cannot be."""
        known = {**held}
        for supply in self._supplies:
            for found in supply.changes(known.copy()):
                if isinstance(found, Generation):
                    known[found.card.generation] = found
                yield found


class IndexSupply:
    """Opens finished generations of an index folder, as far as placement gives them."""

    def __init__(
        self,
        directory: Path,
        place: Place,
        newest: int = 2,
        collection: str = DEFAULT_COLLECTION,
    ) -> None:
        """``newest``: so many generations are opened at the start."""
        self._directory = directory
        self._place = place
        self._newest = newest
        self._collection = collection
        self._wanted: dict[str, _Wanted] = {}

    def check(self) -> None:
        """Find the newest generation without opening it. Raises BadSetting."""
        try:
            folder = latest_generation(self._directory)
            self._wants(folder.name, len(read_manifest(folder).shards))
        except (IndexDataError, OSError) as error:
            raise BadSetting(str(error)) from error

    def changes(self, held: Mapping[str, HeldGeneration], /) -> Iterator[Generation | BadSetting]:
        """Yield what is to be held, or to replace the one of its name, or why it cannot be."""
        mine = {n: one for n, one in held.items() if one.collection == self._collection}
        self._wanted = {name: wanted for name, wanted in self._wanted.items() if name in mine}
        try:
            there = generations(self._directory)
            latest_generation(self._directory)
        except (IndexDataError, OSError) as error:
            yield BadSetting(str(error))
            return
        for name, generation in mine.items():
            if name in there and isinstance(generation, Generation):
                yield from self._adjusted(name, generation)
        new = there[-1:] if mine else there[-self._newest :]
        for name in new:
            if name in held and name not in mine:
                other = held[name].collection
                yield BadSetting(f"{name} of {self._collection} is one of {other} already")
            elif not mine or name > max(mine):
                yield self._opened(name)

    def _opened(self, name: str) -> Generation | BadSetting:
        folder = self._directory / name
        try:
            total = len(read_manifest(folder).shards)
            return Generation.open(folder, self._wants(name, total).shards, self._collection)
        except (IndexDataError, OSError, BadSetting) as error:
            return BadSetting(f"{name} cannot be opened: {error}")

    def _adjusted(self, name: str, generation: Generation) -> Iterator[Generation | BadSetting]:
        """Yield a generation that is held as its placement wants it now, if that has changed."""
        try:
            wanted = self._wants(name, len(generation.card.documents))
            open_now = generation.shards.keys()
            leaving = {s: wanted.holders[s] for s in sorted(open_now - wanted.shards)}
            missing = wanted.shards - open_now - generation.refused.keys()
            if missing or leaving != generation.leaving:
                yield generation.adjusted(self._directory / name, wanted.shards, leaving)
        except (IndexDataError, OSError, BadSetting) as error:
            yield BadSetting(str(error))

    def _wants(self, name: str, total: int) -> _Wanted:
        """Return what is wanted of a generation now. Raises BadPlacementFile and BadSetting."""
        placement = read_placement(self._directory / name, total)
        known = self._wanted.get(name)
        if known is None or known.placement != placement:
            known = self._wanted[name] = self._by(placement, total)
        return known

    def _by(self, placement: PlacementFile | None, total: int) -> _Wanted:
        place, chosen = self._place, BY_THE_RULE
        if placement is not None:
            chosen = placement.for_fleet(place.leaves, place.replicas)
            if placement.chosen and not chosen:
                log.warning(
                    "the placement of %s is for %d leaves x %d: this fleet goes by the rule",
                    placement.generation,
                    placement.leaves,
                    placement.replicas,
                )
        table = place.holders(total, chosen)
        mine = frozenset(shard for shard, held in enumerate(table) if place.ordinal in held)
        return _Wanted(placement, mine, tuple(map(len, table)))
