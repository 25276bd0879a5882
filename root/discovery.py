"""The leaves a root talks to: one channel each, and the topology they add up to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

import aiohttp

from root.channel import Channel
from root.frames import ChannelLost
from root.race import Attempt
from root.ranking import UNKNOWN_LATENCY_S, Leaf
from root.scatter import Flight
from root.topology import View, newest_covered, views

log = logging.getLogger(__name__)

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
        self.views: dict[str, View] = {}
        self.current: View | None = None
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

    def view(self) -> View | None:
        """Return the view of the generation to search now; None before any leaf has one."""
        return self.current

    @property
    def uncovered(self) -> Sequence[int] | None:
        """Shards without a live replica; None where no generation is known at all."""
        return None if self.current is None else self.current.uncovered

    def _changed(self, channel: Channel) -> None:
        """Learn that a leaf has come, gone, or holds something else.

        One that comes back without anything is still loading it: queries under way, for which it
        is a replica by what it held before, would only be refused.
        """
        if channel.hello is not None and channel.held and not channel.leaf.connected:
            channel.leaf.domain = channel.hello.domain or channel.url
            channel.leaf.rejoin(asyncio.get_running_loop().time(), self._typical_latency_s())
        for held in channel.held:
            known = self.views.get(held.card.generation)
            if known is not None and known.card != held.card:
                name = held.card.generation
                raise ChannelLost(f"the leaf holds another generation by the name of {name}")
        self.views = views(held for c in self.channels.values() for held in c.held)
        self.current = newest_covered(self.views)
        if self.current is not None and not self.current.uncovered:
            self.ready.set()

    def _typical_latency_s(self) -> float:
        known = [c.leaf.latency_s for c in self.channels.values() if c.leaf.preferred]
        return sum(known) / len(known) if known else UNKNOWN_LATENCY_S
