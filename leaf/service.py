"""One leaf: what it holds, who works for it, who is connected, and what it counts.

`Leaf` lives on the event loop. What is opened and when, is up to `leaf.background`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from index_data.load import LeafLoad
from leaf.admission import Depth
from leaf.asks import Task
from leaf.config import ALONE, Place
from leaf.frames import write_hello
from leaf.holdings import HeldGeneration, Holdings
from leaf.protocol import (
    DEFAULT_COLLECTION,
    PROTOCOL_VERSION,
    Begun,
    Holding,
    LeafHello,
    Tie,
)
from leaf.pulse import BLOCKED_MS, Pulse
from leaf.telemetry import Ledger, Uncounted
from leaf.ties import Ties, Waiting
from leaf.workers import Clock, Workers

log = logging.getLogger(__name__)

BUDGET_MS_MAX: Final = 600_000.0
"""No query waits ten minutes; a longer budget is a mistake and would only hold its place."""

WARN_S: Final = 60.0
"""How often the log repeats that trouble is injected: nobody should look at it for longer and
not know."""

BEAT_S: Final = 0.05
"""How often the loop measures its own lateness and answers what expired in the queue."""


class Root(Protocol):
    """A connection, as the leaf sees it."""

    def announce(self, hello: bytes) -> None:
        """Pass on who this leaf is and what it holds."""


class Leaf:
    """The state of one leaf. Every method is called on the event loop."""

    def __init__(
        self,
        *,
        name: str,
        domain: str,
        workers: Workers,
        clock: Clock,
        notice: str = "",
        blocked_ms: float = BLOCKED_MS,
        watch: bool = True,
        place: Place = ALONE,
        collections: Sequence[str] = (DEFAULT_COLLECTION,),
    ) -> None:
        """``collections`` are the names of those it serves, the first being that of requests which
        name none.
        """
        self.name = name
        self.domain = domain
        self.workers = workers
        self.clock = clock
        self.place = place
        self.collections = collections
        self.holdings = Holdings()
        self.pulse = Pulse(blocked_ms, clock)
        self.watched = watch
        self.ledger = (Ledger if watch else Uncounted)(self.pulse)
        self.ties = Ties()
        self._notice = notice
        self._trouble = ""
        self._warning_due_s = 0.0
        self._roots: dict[Root, None] = {}
        self._channels = itertools.count(1)
        self._ring_due = False

    @property
    def notice(self) -> str:
        """What everybody must know who believes what this leaf says; mostly nothing."""
        return "; ".join(part for part in (self._notice, self._trouble) if part)

    def warn_of(self, trouble: str) -> None:
        """Tell every root, and the log again and again, what trouble is injected.

        An empty text says that there is none any more.
        """
        log.warning("%s", trouble or "no trouble is injected any more")
        self._trouble = trouble
        self._warning_due_s = self.clock() + WARN_S
        self._announce()

    # --- connections ---------------------------------------------------------------------

    def next_channel(self) -> int:
        """Return a number for one more connection, or for one request over HTTP."""
        return next(self._channels)

    def join(self, root: Root) -> None:
        """Tell a root who this leaf is, now and whenever that changes."""
        self._roots[root] = None
        root.announce(self.hello())

    def leave(self, root: Root, channel: int) -> None:
        """Forget a connection that is gone, and what waits in the queue for it."""
        self._roots.pop(root, None)
        for task, legs in self.workers.drop_channel(channel):
            self.ledger.abandoned(task.kind, len(legs))

    def offer(self, task: Task) -> None:
        """Queue a task's legs. Nobody is woken for them before `ring`.

        Raises ValueError when they are not numbered above the channel's earlier ones.
        """
        self.workers.offer(task)
        self._ring_due = True
        if task.tie is not None:
            self._tie(task, task.tie)

    def _tie(self, task: Task, tie: Tie) -> None:
        """Note a task's tied legs; a worker that is awake may begin one before it is dropped."""
        numbered = enumerate(zip(task.shards, tie.twins, strict=True), task.first)
        legs = [
            (shard, Waiting(task.channel, leg))
            for leg, (shard, twin) in numbered
            if twin is not None
        ]
        self._drop(self.ties.arrived(tie.key, legs, self.clock()))

    def twins_began(self, begun: Iterable[Begun]) -> None:
        """Drop what other leaves have begun, where it still waits."""
        for notice in begun:
            self.ledger.begun["heard"] += 1
            self._drop(self.ties.begun(notice.key, notice.shards, self.clock()))

    def _drop(self, legs: Iterable[Waiting]) -> None:
        by_channel: dict[int, list[int]] = {}
        for channel, leg in legs:
            by_channel.setdefault(channel, []).append(leg)
        for channel, numbers in by_channel.items():
            self.workers.drop(channel, numbers)

    def ring(self) -> None:
        """Wake workers for what was offered since the last time."""
        if self._ring_due:
            self._ring_due = False
            self.workers.ring()

    def hello(self) -> bytes:
        """Return the frame that says who this leaf is and what it holds."""
        held_of: dict[str, list[Holding]] = {name: [] for name in self.collections}
        for held in self.holdings:
            card = msgspec.Raw(msgspec.json.encode(held.card))
            holding = Holding(card, tuple(sorted(held.shards)), dict(held.leaving))
            held_of[held.collection].append(holding)
        hello = LeafHello(
            protocol=PROTOCOL_VERSION,
            leaf=self.name,
            domain=self.domain,
            pid=os.getpid(),
            collections={name: tuple(holdings) for name, holdings in held_of.items()},
            workers=self.workers.count,
            notice=self.notice,
        )
        return write_hello(hello)

    # --- generations ---------------------------------------------------------------------

    def hold(self, generation: HeldGeneration) -> None:
        """Serve one more generation, or one that is served as it is now, and tell every root."""
        self.holdings.add(generation, self.clock())
        card = generation.card
        of = f" of {generation.collection}" if len(self.collections) > 1 else ""
        log.info("serving %s%s: shards %s", card.generation, of, sorted(generation.shards))
        if generation.leaving:
            log.info("to give up of %s: shards %s", card.generation, sorted(generation.leaving))
        for shard, why in generation.refused.items():
            log.error("shard %d of %s is refused: %s", shard, card.generation, why)
        self._announce()

    def let_go(self) -> None:
        """Let go of generations and shards that nobody needs here, and tell every root."""
        retired = self.holdings.retire(self.clock())
        if retired:
            log.info("no longer serving %s", ", ".join(retired))
        for name in retired:
            self.workers.forget(name)
        given_up = self.holdings.give_up()
        for name, shards in given_up.items():
            log.info("no longer serving shards %s of %s", sorted(shards), name)
        if retired or given_up:
            self._announce()

    def _announce(self) -> None:
        hello = self.hello()
        for root in self._roots:
            root.announce(hello)

    # --- upkeep --------------------------------------------------------------------------

    async def beat(self) -> None:
        """Keep time until cancelled: measure the loop's lateness, expire."""
        while True:
            self.pulse.expect(BEAT_S)
            await asyncio.sleep(BEAT_S)
            self.pulse.beat()
            self.workers.expire()
            self.warn_again()

    def warn_again(self) -> None:
        """Repeat in the log that trouble is injected, when it is time."""
        if self._trouble and self.clock() >= self._warning_due_s:
            log.warning("still: %s", self._trouble)
            self._warning_due_s = self.clock() + WARN_S

    # --- what is exported ----------------------------------------------------------------

    def depth(self) -> Depth:
        """Return how full the queue is."""
        return self.workers.depth()

    def connections(self) -> int:
        """Return how many roots are connected."""
        return len(self._roots)

    def troubled(self) -> bool:
        """Return whether trouble is injected."""
        return bool(self._trouble)

    def load(self) -> LeafLoad:
        """Return what its shards have cost."""
        return LeafLoad(
            leaf=self.name,
            pid=os.getpid(),
            ordinal=self.place.ordinal,
            leaves=self.place.leaves,
            replicas=self.place.replicas,
            domain=self.domain,
            work_s={
                collection: {
                    held.card.generation: self.workers.work_s(held.card.generation)
                    for held in self.holdings
                    if held.collection == collection
                }
                for collection in self.collections
            },
        )

    def held(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Yield (collection, generation, shards, refused shards, documents) of what is held."""
        for held in self.holdings:
            documents = sum(shard.documents for shard in held.shards.values())
            shards, refused = len(held.shards), len(held.refused)
            yield held.collection, held.card.generation, shards, refused, documents
