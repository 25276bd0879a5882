"""Which shards to copy or move so that no leaf has much more to do than the others.

The model: what a shard costs is spread evenly over the leaves that hold it, as roots choose
among replicas by how busy they are, and leaves are alike. A leaf's load is then the sum of its
parts, and the mean over leaves is the same for every placement.

While some leaf carries more than ``ratio`` times the mean, the step is taken that removes most
of what leaves carry above that; of equal ones the one with fewer bytes, and a move before a
copy. A hot shard is copied, as moving it would move the trouble; of many lukewarm ones some are
moved. Then copies beyond the usual replicas are given up as long as all leaves stay below
halfway between the mean and the limit: a copy that was made for a load does not come and go
with its noise. With the same load a second run finds nothing to do.

Replicas of a shard sit on different leaves, and no step lets a shard be in fewer failure
domains than before, or puts a copy into a domain that has one while another has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

RATIO: Final = 1.25
"""A leaf may carry a quarter more than the mean: at 70 % utilisation it still has room."""

RATIO_MAX: Final = 100.0

DIGITS: Final = 9
"""Gains are compared to so many digits of the whole load: below that floating point decides."""

ROUNDING: Final = 1.0 + 1e-9
"""What is above the limit by less than this factor is so by floating point alone."""

STEPS_MAX: Final = 10_000
"""More would be another placement, not a change of this one."""

Table = tuple[tuple[int, ...], ...]
"""The leaves that hold each shard."""


class BadLoad(ValueError):
    """A load that cannot be balanced; the message names the member that is wrong."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be balanced. Raises BadLoad, naming the member.

    ``work_s[shard]`` is any measure of work, ``size_bytes[shard]`` what a copy takes,
    ``domains[leaf]`` what fails together; empty where that is not known.
    """

    work_s: Sequence[float]
    size_bytes: Sequence[int]
    leaves: int
    domains: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that no leaf measures."""
        for shard, work_s in enumerate(self.work_s):
            if not 0.0 <= work_s < math.inf:
                raise BadLoad(f"work_s of shard {shard} must be 0 or more, not {work_s}")
        if len(self.size_bytes) != len(self.work_s):
            raise BadLoad(f"{len(self.size_bytes)} sizes for {len(self.work_s)} shards")
        if self.domains and len(self.domains) != self.leaves:
            raise BadLoad(f"domains: {len(self.domains)} for {self.leaves} leaves")

    def of_leaves(self, table: Table) -> list[float]:
        """Return what each leaf carries under a placement."""
        carried = [0.0] * self.leaves
        for work_s, held in zip(self.work_s, table, strict=True):
            for leaf in held:
                carried[leaf] += work_s / len(held)
        return carried

    def ratio(self, table: Table) -> float:
        """Return the greatest load of a leaf over the mean; 1 where there is none."""
        carried = self.of_leaves(table)
        mean = math.fsum(carried) / self.leaves
        return max(carried) / mean if mean else 1.0

    def spread(self, held: Sequence[int]) -> int:
        """Return in how many failure domains leaves are."""
        return len({self.domains[leaf] for leaf in held} if self.domains else set(held))


class Step(NamedTuple):
    """One change: ``source`` gives the shard up, except in a copy; ``target`` takes it, except
    in a drop.
    """

    kind: Literal["move", "copy", "drop"]
    shard: int
    source: int | None
    target: int | None

    def applied(self, table: Table) -> Table:
        """Return the placement after this step."""
        held = [leaf for leaf in table[self.shard] if leaf != self.source]
        if self.target is not None:
            held.append(self.target)
        return (*table[: self.shard], tuple(held), *table[self.shard + 1 :])


class Change(NamedTuple):
    """What becomes of one shard: the leaves that take it and those that give it up."""

    shard: int
    added: tuple[int, ...]
    removed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement and what it comes to. ``reached``: no leaf carries more than was allowed."""

    before: Table
    after: Table
    reached: bool

    @property
    def changes(self) -> list[Change]:
        """What has to be done, by shard."""
        return [
            Change(
                shard,
                tuple(leaf for leaf in new if leaf not in old),
                tuple(leaf for leaf in old if leaf not in new),
            )
            for shard, (old, new) in enumerate(zip(self.before, self.after, strict=True))
            if set(old) != set(new)
        ]


def propose(load: Load, table: Table, *, replicas: int, ratio: float = RATIO) -> Proposal:
    """Propose a placement in which no leaf carries more than ``ratio`` times the mean.

    ``replicas``: on how many leaves each shard stays at least. Raises BadLoad.
    """
    if not 1.0 < ratio <= RATIO_MAX:
        raise BadLoad(f"ratio must be above 1 and at most {RATIO_MAX:g}, not {ratio}")
    mean = math.fsum(load.work_s) / load.leaves
    limit, calm = mean * ratio, mean * (1.0 + ratio) / 2.0
    now = table
    for _ in range(STEPS_MAX):
        step = _relief(load, now, limit) or _surplus(load, now, replicas, calm)
        if step is None:
            break
        now = step.applied(now)
    return Proposal(table, now, load.ratio(now) <= ratio * ROUNDING)


def _relief(load: Load, table: Table, limit: float) -> Step | None:
    """Return the best step that relieves the fullest leaf above the limit that can be relieved."""
    carried = load.of_leaves(table)
    total = math.fsum(carried)
    for leaf in sorted(range(load.leaves), key=lambda leaf: (-carried[leaf], leaf)):
        if carried[leaf] <= limit * ROUNDING:
            return None
        best = None
        for step in _steps_from(load, table, leaf):
            gain = round(_gain(load, table, carried, limit, step) / total, DIGITS)
            rank = (-gain, load.size_bytes[step.shard], step.kind == "copy")
            if gain > 0 and (best is None or rank < best[0]):
                best = (rank, step)
        if best is not None:
            return best[1]
    return None


def _steps_from(load: Load, table: Table, leaf: int) -> Iterator[Step]:
    """Yield every copy and every move of a shard of this leaf that is allowed."""
    for shard, held in enumerate(table):
        if leaf not in held or not load.work_s[shard]:
            continue
        others = [other for other in range(load.leaves) if other not in held]
        spread = load.spread(held)
        widest = max((load.spread((*held, other)) for other in others), default=0)
        left = [other for other in held if other != leaf]
        for other in others:
            if load.spread((*held, other)) == widest:
                yield Step("copy", shard, None, other)
            if load.spread((*left, other)) >= spread:
                yield Step("move", shard, leaf, other)


def _gain(load: Load, table: Table, carried: Sequence[float], limit: float, step: Step) -> float:
    """Return by how much a step lowers what leaves carry above the limit, all together."""
    held = table[step.shard]
    after = step.applied(table)[step.shard]
    share = load.work_s[step.shard] / len(held)
    share_after = load.work_s[step.shard] / len(after)
    gain = 0.0
    for leaf in dict.fromkeys((*held, *after)):
        new = carried[leaf] - share * (leaf in held) + share_after * (leaf in after)
        gain += max(0.0, carried[leaf] - limit) - max(0.0, new - limit)
    return gain


def _surplus(load: Load, table: Table, replicas: int, limit: float) -> Step | None:
    """Return a copy that can be given up with every leaf below the limit; coldest shard first."""
    extra = [shard for shard, held in enumerate(table) if len(held) > replicas]
    for shard in sorted(extra, key=lambda shard: (load.work_s[shard], shard)):
        carried = load.of_leaves(table)
        spread = load.spread(table[shard])
        for leaf in sorted(table[shard], key=lambda leaf: (-carried[leaf], leaf)):
            step = Step("drop", shard, leaf, None)
            after = step.applied(table)
            if load.spread(after[shard]) < min(spread, replicas):
                continue
            if max(load.of_leaves(after)) <= limit:
                return step
    return None


def chosen_of(table: Table, by_the_rule: Table) -> Mapping[int, tuple[int, ...]]:
    """Return the leaves of the shards that do not go by the rule."""
    pairs = enumerate(zip(table, by_the_rule, strict=True))
    return {shard: held for shard, (held, rule) in pairs if set(held) != set(rule)}
