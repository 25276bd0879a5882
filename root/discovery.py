"""The leaves a root talks to: one channel each, and the topology they add up to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

import aiohttp

from leaf.protocol import DEFAULT_COLLECTION
from root.channel import Channel
from root.errors import UnknownCollection
from root.frames import ChannelLost
from root.race import Attempt
from root.ranking import UNKNOWN_LATENCY_S, Leaf
from root.scatter import Flight
from root.topology import View, newest_covered, views

log = logging.getLogger(__name__)

SHARDS_SHOWN: Final = 10
"""Of those that are lacking, in words."""

LEAVES_MAX: Final = 2000
"""More than one root's fan-out carries; a tree of roots goes further."""


class Fleet:
    """The leaves at a fixed list of addresses. It is the live ``LeafTransport``."""

    def __init__(self, urls: Iterable[str], root_name: str) -> None:
        """``urls`` are like ``http://127.0.0.1:8081``. Nothing connects before ``run``."""
        now = asyncio.get_running_loop().time()
        self.channels: dict[str, Channel] = {}
        for url in urls:
            leaf = Leaf(url, now)
            leaf.connected = False
            self.channels[url] = Channel(url, root_name, leaf, self._changed)
        self.views: dict[str, dict[str, View]] = {}
        """By collection, in the order in which leaves are given them, and by generation."""
        self.in_use: dict[str, View] = {}
        """The generation of each collection that is searched now."""
        self.replicas: tuple[tuple[Leaf, ...], ...] = ()
        """Those of every shard that is searched now, of all collections."""
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Keep every channel connected until cancelled."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(channel.run(session) for channel in self.channels.values()))

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Send a leg on its leaf's channel."""
        self.channels[attempt.leaf.name].send(attempt, flight)

    def cancel(self, attempt: Attempt) -> None:
        """Cancel a leg on its leaf's channel."""
        self.channels[attempt.leaf.name].cancel(attempt)

    def heard_s(self, leaf: Leaf) -> float:
        """When anything last came from a leaf; pings see to it that something does."""
        return self.channels[leaf.name].heard_s

    def leave(self) -> None:
        """Take it that this process ends, and mostly its leaves with it: their loss is no news."""
        for channel in self.channels.values():
            channel.leaving = True

    def answers(self) -> dict[str, int]:
        """Return how many legs each leaf has answered so far, by its URL."""
        return {url: channel.answered for url, channel in self.channels.items()}

    @property
    def default(self) -> str:
        """The collection that is meant where none is named: the first."""
        return next(iter(self.views), DEFAULT_COLLECTION)

    def named(self, collection: str | None) -> str:
        """Return the name of the collection that a request means. Raises UnknownCollection, once
        any leaf has said what there is.
        """
        if collection is None or not self.views:
            return self.default
        if collection not in self.views:
            known = ", ".join(self.views)
            detail = f"there is no collection {collection!r:.60}; there are: {known}"
            raise UnknownCollection("collection", detail)
        return collection

    def view(self, collection: str | None = None) -> View | None:
        """Return the view of the generation of a collection, or of the first, to search now; None
        before any leaf has one.
        """
        return self.in_use.get(self.default if collection is None else collection)

    @property
    def uncovered(self) -> dict[str, list[int] | None]:
        """The collections that lack something, each with its shards that have no live replica; None
        where no generation is known at all.
        """
        lacking: dict[str, list[int] | None] = {}
        for name in self.views:
            view = self.in_use.get(name)
            if view is None or view.uncovered:
                lacking[name] = None if view is None else view.uncovered
        return lacking

    @property
    def lacking(self) -> str:
        """What keeps a search from being complete, in a sentence."""
        if not self.in_use:
            return "no leaf that holds anything is connected"
        return "; ".join(self._lacks(*each) for each in self.uncovered.items())

    def _lacks(self, name: str, shards: list[int] | None) -> str:
        of = f" of {name}" if len(self.views) > 1 else ""
        if shards is None:
            return f"no connected leaf holds anything{of}"
        return f"no connected leaf serves shards {', '.join(map(str, shards[:SHARDS_SHOWN]))}{of}"

    def _changed(self, channel: Channel) -> None:
        """Learn that a leaf has come, gone, or holds something else.

        One that comes back without anything is still loading it: queries under way, for which it
        is a replica by what it held before, would only be refused.
        """
        if channel.hello is not None and channel.held and not channel.leaf.connected:
            channel.leaf.domain = channel.hello.domain or channel.url
            channel.leaf.rejoin(asyncio.get_running_loop().time(), self._typical_latency_s())
        for held in channel.held:
            name = held.card.generation
            known = [known[name] for known in self.views.values() if name in known]
            if any(view.card != held.card for view in known):
                raise ChannelLost(f"the leaf holds another generation by the name of {name}")
        self._learn()
        if self.in_use and not self.uncovered:
            self.ready.set()

    def _learn(self) -> None:
        """Add up what all leaves have said last."""
        channels = self.channels.values()
        held = [held for channel in channels for held in channel.held]
        names = dict.fromkeys(name for channel in channels for name in channel.collections)
        self.views = {name: views(h for h in held if h.collection == name) for name in names}
        newest = {name: newest_covered(known) for name, known in self.views.items()}
        self.in_use = {name: view for name, view in newest.items() if view is not None}
        self.replicas = tuple(leaves for view in self.in_use.values() for leaves in view.replicas)

    def _typical_latency_s(self) -> float:
        known = [c.leaf.latency_s for c in self.channels.values() if c.leaf.preferred]
        return sum(known) / len(known) if known else UNKNOWN_LATENCY_S
