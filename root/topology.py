"""Who holds what: built from what the leaves say in their hellos, and from nothing else.

A fleet serves collections, each with generations of its own. Generations have names that no two
builds share, so legs are about a generation and need not say of which collection.

A ``View`` is immutable: a query that has one keeps it, and with it its generation, whatever
happens to the fleet meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from index_data.manifest import GenerationCard
from leaf.protocol import DEFAULT_COLLECTION
from root.ranking import Leaf


@dataclass(frozen=True, slots=True)
class Held:
    """One generation of a collection as one leaf holds it, or last did.

    ``leaving``: shards that it is to give up, and how many others are to hold them instead.
    """

    leaf: Leaf
    card: GenerationCard
    shards: Sequence[int]
    leaving: Mapping[int, int] = field(default_factory=dict)
    collection: str = DEFAULT_COLLECTION


@dataclass(frozen=True, slots=True)
class View:
    """One generation and, per shard, the leaves that hold it, as far as is known.

    Leaves whose connection is lost stay: what they come back with is most likely what they
    had, and a query that started without them may need them before it ends.
    """

    card: GenerationCard
    replicas: tuple[tuple[Leaf, ...], ...]
    collection: str = DEFAULT_COLLECTION

    @property
    def documents(self) -> int:
        """Documents in all shards, whether or not anybody holds them now."""
        return sum(self.card.documents)

    @property
    def uncovered(self) -> list[int]:
        """Shards that no connected leaf holds."""
        return [
            shard
            for shard, leaves in enumerate(self.replicas)
            if not any(leaf.connected for leaf in leaves)
        ]

    def shard_replicas(self) -> list[tuple[int, tuple[Leaf, ...]]]:
        """Return every shard with its replicas, as a gather takes them."""
        return list(enumerate(self.replicas))


def views(held: Iterable[Held]) -> dict[str, View]:
    """Return a view of each generation that is held of one collection, oldest first."""
    by_generation: dict[str, list[Held]] = {}
    for holding in held:
        by_generation.setdefault(holding.card.generation, []).append(holding)
    return {name: _view(by_generation[name]) for name in sorted(by_generation)}


def newest_covered(all_views: Mapping[str, View]) -> View | None:
    """Return a collection's newest generation whose every shard is held; else the one held best.

    A generation that is still being loaded by some leaves must not replace one that is
    whole; but where nothing is whole, part of the answer beats none.
    """
    best = None
    for view in all_views.values():
        if best is None or len(view.uncovered) <= len(best.uncovered):
            best = view
    return best


def _view(holdings: list[Held]) -> View:
    card = holdings[0].card
    replicas: list[list[Leaf]] = [[] for _ in card.documents]
    for holding in holdings:
        for shard in holding.shards:
            if not _is_replaced(shard, holding, holdings):
                replicas[shard].append(holding.leaf)
    return View(card, tuple(tuple(leaves) for leaves in replicas), holdings[0].collection)


def _is_replaced(shard: int, holding: Held, holdings: list[Held]) -> bool:
    """Whether a leaf is to give a shard up, and as many others have it as are to have it.

    Until then it stays a replica: a shard never has fewer than before while it moves.
    """
    wanted = holding.leaving.get(shard)
    if wanted is None:
        return False
    staying = sum(
        shard in other.shards and shard not in other.leaving and other.leaf.connected
        for other in holdings
    )
    return staying >= wanted
