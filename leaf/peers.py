"""Leaf to leaf: a leaf that begins a tied leg tells the leaf that has the other copy.

All that the workers begin between two turns of the loop goes out at once, one frame for each
peer. A connection is made when there is something to say for the first time, and kept. What
cannot be said is not said: the other leaf then does the work too, and one answer is merged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

import aiohttp
import orjson

from leaf.asks import Task
from leaf.lines import Bite
from leaf.protocol import CHANNEL_PATH, PEERS_MAX, PROTOCOL_VERSION
from leaf.telemetry import Ledger

log = logging.getLogger(__name__)

CONNECT_S: Final = 1.0
"""A peer that takes longer to reach is of no help: most queues are shorter."""

CLOSE_S: Final = 0.2
"""How long a peer may take to say goodbye."""

RETRY_S: Final = 1.0
"""How long a peer that could not be reached, or hung up, is left alone."""

UNSAID_MAX: Final = 1000
"""Notices that may wait for a connection or for a peer that does not read: a moment's worth."""


Notice = tuple[str, list[int]]
"""A `leaf.protocol.Begun` as an encoder takes it."""


class _Peer:
    """What is to be said to one leaf, and who says it."""

    def __init__(self) -> None:
        self.unsaid: list[Notice] = []
        self.wanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Peers:
    """Everyone this leaf has something to tell. Lives on the loop that runs when it is made."""

    def __init__(self, leaf_name: str, ledger: Ledger) -> None:
        self._hello = orjson.dumps(
            {"hello": {"protocol": PROTOCOL_VERSION, "root": leaf_name, "peer": True}}
        )
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._session: aiohttp.ClientSession | None = None
        self._begun: deque[Bite[Task]] = deque()
        self._flush_due = False
        self._closed = False
        self._peers: dict[str, _Peer] = {}

    def began(self, bite: Bite[Task]) -> None:
        """Take tied legs that a worker begins, on any thread; the twins hear of it at once."""
        self._begun.append(bite)
        # As in `leaf.channel`: set before the deque is emptied, tested after the append.
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon_threadsafe(self._flush)

    async def close(self) -> None:
        """End every connection, and say nothing more."""
        self._closed = True
        tasks = [peer.task for peer in self._peers.values() if peer.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    def _flush(self) -> None:
        self._flush_due = False
        told: dict[str, dict[str, list[int]]] = {}
        while self._begun:
            task, legs = self._begun.popleft()
            tie = task.tie
            for leg in legs if tie is not None else ():
                assert tie is not None  # noqa: S101 - for the type checker alone
                twin = tie.twins[leg]
                if twin is not None:
                    of_peer = told.setdefault(tie.peers[twin], {})
                    of_peer.setdefault(tie.key, []).append(task.shards[leg])
        for url, notices in told.items():
            self._tell(url, list(notices.items()))

    def _tell(self, url: str, notices: list[Notice]) -> None:
        peer = self._peers.get(url)
        if peer is None and len(self._peers) < PEERS_MAX and not self._closed:
            peer = self._peers[url] = _Peer()
            peer.task = self._loop.create_task(self._keep(url, peer))
        if peer is None or len(peer.unsaid) + len(notices) > UNSAID_MAX:
            self._ledger.begun["unsaid"] += len(notices)
            return
        peer.unsaid += notices
        peer.wanted.set()

    async def _keep(self, url: str, peer: _Peer) -> None:
        """Be connected to a peer until it hangs up or cannot be reached; then leave it alone."""
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        try:
            async with asyncio.timeout(CONNECT_S):
                timeout = aiohttp.ClientWSTimeout(ws_close=CLOSE_S)
                socket = await self._session.ws_connect(url + CHANNEL_PATH, timeout=timeout)
            async with socket:
                await socket.send_bytes(self._hello)
                await self._speak(peer, socket)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            log.info("peer %.256s cannot be told what has begun: %s", url, error or "no answer")
        await asyncio.sleep(RETRY_S)
        self._ledger.begun["unsaid"] += len(peer.unsaid)
        del self._peers[url]

    async def _speak(self, peer: _Peer, socket: aiohttp.ClientWebSocketResponse) -> None:
        # A peer says nothing; it is listened to for pings, and to hear it hang up.
        hears = asyncio.create_task(socket.receive())
        hears.add_done_callback(lambda _: peer.wanted.set())
        try:
            while True:
                await peer.wanted.wait()
                peer.wanted.clear()
                if hears.done():
                    return
                notices, peer.unsaid = peer.unsaid, []
                self._ledger.begun["told"] += len(notices)
                await socket.send_bytes(orjson.dumps({"begun": notices}))
        finally:
            hears.cancel()
