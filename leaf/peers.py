"""Leaf to leaf: a leaf that begins a tied leg tells the leaf that has the other copy.

How many legs are done twice is decided by how long this takes, for two leaves may come to their
copies within that time. So the worker that begins writes the notice itself, before it works: the
event loop would first have to be woken, and to wait until the worker gives the interpreter away.
That alone is several times as long as the message takes.

The loop makes a connection when there is something to say for the first time, keeps it, and hears
when the peer hangs up. What cannot be said at once is not said: the other leaf then does the work
too, and one answer is merged.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Final, Literal

import orjson
from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.protocol import State
from websockets.uri import parse_uri

from leaf.asks import Task
from leaf.lines import Bite
from leaf.protocol import CHANNEL_PATH, FRAME_BYTES_MAX, PEERS_MAX, PROTOCOL_VERSION
from leaf.telemetry import Ledger

log = logging.getLogger(__name__)

CONNECT_S: Final = 1.0
"""A peer that takes longer to reach is of no help: most queues are shorter."""

RETRY_S: Final = 1.0
"""How long a peer that could not be reached, or hung up, is left alone."""

UNSAID_MAX: Final = 1000
"""Notices that may wait for a connection: a moment's worth."""

READ_BYTES: Final = 4096
"""A peer says nothing but pings."""

Notice = tuple[str, list[int]]
"""A `leaf.protocol.Begun` as an encoder takes it."""


class _PeerLost(Exception):
    """A peer that hung up, or does not read what it is told."""


class _Link:
    """One connection: a WebSocket without I/O of its own, and the socket below.

    Any thread may speak. Whole frames or nothing: of a socket that takes a part of one no more
    can be made, and it is given up.
    """

    def __init__(self, url: str, raw: socket.socket) -> None:
        self._websocket = ClientProtocol(
            parse_uri("ws" + url.removeprefix("http") + CHANNEL_PATH), max_size=FRAME_BYTES_MAX
        )
        self._raw = raw
        self._lock = threading.Lock()
        self._websocket.send_request(self._websocket.connect())
        self._flush()

    @property
    def is_open(self) -> bool:
        """Whether the peer has agreed to talk."""
        return self._websocket.state is State.OPEN

    def say(self, frame: bytes) -> None:
        """Send one frame now. Raises OSError, _PeerLost or WebSocketException."""
        with self._lock:
            self._websocket.send_binary(frame)
            self._flush()

    def hear(self, data: bytes) -> None:
        """Take what has come: consent, pings, farewells. Raises as ``say``."""
        with self._lock:
            if data:
                self._websocket.receive_data(data)
            else:
                self._websocket.receive_eof()
            self._websocket.events_received()
            self._flush()
        if self._websocket.handshake_exc is not None:
            raise self._websocket.handshake_exc
        if not data or self._websocket.state in {State.CLOSING, State.CLOSED}:
            raise _PeerLost("it hung up")

    def _flush(self) -> None:
        for data in self._websocket.data_to_send():
            if data and self._raw.send(data) < len(data):
                raise _PeerLost("it does not read what it is told")


class _Peer:
    """One leaf: the link to it, once there is one, and what waits until then."""

    def __init__(self) -> None:
        self.unsaid: list[Notice] = []
        self.link: _Link | None = None
        self.task: asyncio.Task[None] | None = None


class Peers:
    """Everyone this leaf has something to tell. Lives on the loop that runs when it is made."""

    def __init__(self, leaf_name: str, ledger: Ledger) -> None:
        self._hello = orjson.dumps(
            {"hello": {"protocol": PROTOCOL_VERSION, "root": leaf_name, "peer": True}}
        )
        self._ledger = ledger
        self._counting = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._peers: dict[str, _Peer] = {}

    def began(self, bite: Bite[Task]) -> None:
        """Tell the twins of tied legs that a worker begins. Called on its thread."""
        task, legs = bite
        tie = task.tie
        if tie is None:
            return
        told: dict[str, list[int]] = {}
        for leg in legs:
            twin = tie.twins[leg]
            if twin is not None:
                told.setdefault(tie.peers[twin], []).append(task.shards[leg])
        for url, shards in told.items():
            peer = self._peers.get(url)
            notices: list[Notice] = [(tie.key, shards)]
            if peer is None or peer.link is None:
                self._loop.call_soon_threadsafe(self._tell, url, notices)
            else:
                self._say(url, peer.link, notices)

    async def close(self) -> None:
        """End every connection, and say nothing more."""
        self._closed = True
        tasks = [peer.task for peer in self._peers.values() if peer.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _say(self, url: str, link: _Link, notices: list[Notice]) -> None:
        """Say it now or never; whoever keeps the link sees for himself when it has ended."""
        try:
            link.say(orjson.dumps({"begun": notices}))
        except (OSError, _PeerLost, WebSocketException) as error:
            log.info("peer %.256s was not told what has begun: %s", url, error)
            self._count("unsaid", len(notices))
        else:
            self._count("told", len(notices))

    def _count(self, way: Literal["told", "unsaid"], notices: int) -> None:
        with self._counting:  # workers count, and so does the loop
            self._ledger.begun[way] += notices

    def _tell(self, url: str, notices: list[Notice]) -> None:
        """Say it to a peer there may be no link to yet. Called on the loop."""
        peer = self._peers.get(url)
        if peer is None and len(self._peers) < PEERS_MAX and not self._closed:
            peer = self._peers[url] = _Peer()
            peer.task = self._loop.create_task(self._keep(url, peer))
        if peer is not None and peer.link is not None:
            self._say(url, peer.link, notices)
        elif peer is None or len(peer.unsaid) + len(notices) > UNSAID_MAX:
            self._count("unsaid", len(notices))
        else:
            peer.unsaid += notices

    async def _keep(self, url: str, peer: _Peer) -> None:
        """Be connected to a peer until it hangs up or cannot be reached; then leave it alone."""
        try:
            await self._connected(url, peer)
        except (OSError, TimeoutError, ValueError, _PeerLost, WebSocketException) as error:
            log.info("peer %.256s cannot be told what has begun: %s", url, error or "no answer")
        await asyncio.sleep(RETRY_S)
        self._count("unsaid", len(peer.unsaid))
        del self._peers[url]

    async def _connected(self, url: str, peer: _Peer) -> None:
        """Connect, say what has waited, and listen. Ends by an exception, always."""
        async with asyncio.timeout(CONNECT_S):
            raw = await self._reach(url)
        with raw:
            try:
                link = _Link(url, raw)
                async with asyncio.timeout(CONNECT_S):
                    while not link.is_open:
                        link.hear(await self._loop.sock_recv(raw, READ_BYTES))
                link.say(self._hello)
                waited, peer.unsaid = peer.unsaid, []
                peer.link = link
                self._say(url, link, waited)
                while True:
                    link.hear(await self._loop.sock_recv(raw, READ_BYTES))
            finally:
                peer.link = None

    async def _reach(self, url: str) -> socket.socket:
        """A connected socket that nobody waits for. Raises OSError or ValueError."""
        target = parse_uri("ws" + url.removeprefix("http"))
        if target.secure:
            raise ValueError("leaves talk to each other over plain HTTP")
        found = await self._loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        raw = socket.socket(family, kind, protocol)
        try:
            raw.setblocking(False)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(raw, address)
        except BaseException:
            raw.close()
            raise
        return raw
