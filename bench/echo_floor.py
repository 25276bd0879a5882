"""The floor under the channel: the same frames over bare asyncio sockets, and nothing else.

A peer reads a frame of asks, decodes it with orjson, and writes one frame in which every leg
has its ten hits. No WebSocket, no queue, no thread, no race, no check. What this costs, any
design on these libraries costs; what Hedgerow costs on top is what it has to justify.

Frames are as in ``leaf.protocol``, behind a length of four bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, cast

import click
import orjson
import uvloop

LENGTH_BYTES: Final = 4
LIFETIME_S: Final = 600.0
"""A peer that nobody has ended is gone by then."""


class FrameProtocol(asyncio.Protocol):
    """Cuts what a socket gives into frames. Subclasses say what a frame is for."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport: of a TCP connection it can write."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes; pass on each whole frame."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(buffer[:LENGTH_BYTES])
            if len(buffer) < end:
                return
            frame = bytes(buffer[LENGTH_BYTES:end])
            del buffer[:end]
            self.frame_received(frame)

    def frame_received(self, frame: bytes) -> None:
        """Take one frame."""
        raise NotImplementedError

    def send(self, frame: bytes) -> None:
        """Write one frame."""
        self._transport.write(len(frame).to_bytes(LENGTH_BYTES) + frame)


class EchoPeer(FrameProtocol):
    """The leaf's side: ten hits for every leg asked for."""

    def __init__(self, hits: Sequence[Any]) -> None:
        super().__init__()
        self._hits = tuple(hits)

    def frame_received(self, frame: bytes) -> None:
        """Answer all legs in one frame."""
        ask = orjson.loads(frame)["asks"][0]
        first, hits = ask["first"], self._hits
        answers = [(first + i, *hits) for i in range(len(ask["shards"]))]
        self.send(orjson.dumps({"hits": answers}))


class EchoRoot(FrameProtocol):
    """The root's side of one connection: says how many legs have come back."""

    def __init__(self, floor: Floor) -> None:
        super().__init__()
        self._floor = floor

    def frame_received(self, frame: bytes) -> None:
        """Decode and count."""
        self._floor.arrived(len(orjson.loads(frame)["hits"]))


class Floor:
    """Bare connections to echo peers; one query at a time."""

    def __init__(self) -> None:
        self.roots: list[EchoRoot] = []
        self._missing = 0
        self._done: asyncio.Future[None] | None = None

    async def query(self, body: dict[str, Any], shards: Sequence[int]) -> None:
        """Ask for every shard, dealt over the peers, and wait until all have come back."""
        self._missing = len(shards)
        self._done = asyncio.get_running_loop().create_future()
        peers = len(self.roots)
        for i, root in enumerate(self.roots):
            ask = {**_ASK, "body": body, "shards": shards[i::peers]}
            root.send(orjson.dumps({"asks": [ask]}))
        await self._done

    def arrived(self, legs: int) -> None:
        """Take note of answered legs."""
        self._missing -= legs
        if self._missing == 0 and self._done is not None:
            self._done.set_result(None)


_ASK: Final = {
    "kind": "search",
    "generation": "canned",
    "budget_ms": 1999.5,
    "first": 0,
    "priority": "interactive",
}


@contextlib.asynccontextmanager
async def floor(peers: int, hits: Sequence[Any]) -> AsyncIterator[Floor]:
    """Start echo peers as processes, connect to each, and end them afterwards.

    ``hits`` is what follows the leg's number in its answer.
    """
    command = [sys.executable, "-m", "bench.echo_floor", orjson.dumps(hits).decode()]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(peers)
    ]
    try:
        loop = asyncio.get_running_loop()
        bare = Floor()
        for process in processes:
            assert process.stdout is not None  # noqa: S101 (it is a pipe)
            port = int(process.stdout.readline())
            _, root = await loop.create_connection(lambda: EchoRoot(bare), "127.0.0.1", port)
            bare.roots.append(root)
        yield bare
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@click.command(hidden=True)
@click.argument("hits")
def main(hits: str) -> None:
    """Be one echo peer on a free port, which is printed."""
    uvloop.run(_serve(orjson.loads(hits)))


async def _serve(hits: Sequence[Any]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: EchoPeer(hits), "127.0.0.1", 0)
    click.echo(server.sockets[0].getsockname()[1])
    await asyncio.sleep(LIFETIME_S)


if __name__ == "__main__":
    main()
