"""The leaf's end of one root's WebSocket.

Two tasks a connection: one reads frames and never waits for anything else, so that pings
are answered and cancels taken while every worker is busy; one writes. Between them and the
workers stand two bounded things: the admission queue (inwards) and the frames that wait to
be written (outwards). A root that does not read is dropped, not buffered for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from leaf.asks import Finished, Reply, Task, plain
from leaf.errors import BadFrame
from leaf.frames import (
    check_ask,
    check_hello,
    malformed,
    read_frame,
    write_pong,
    write_refused,
    write_replies,
)
from leaf.protocol import FRAME_BYTES_MAX, Ask, RootFrame
from leaf.service import BUDGET_MS_MAX, Leaf

log = logging.getLogger(__name__)

OUTGOING_BYTES_MAX: Final = 4 * FRAME_BYTES_MAX
"""How much may wait for a root to read: more than any query's answers, and bounded."""

CLOSE_S: Final = 1.0
"""How long a refused peer may take to read why."""


class Channel:
    """One connection: a sink for finished legs, and the reader of the root's frames."""

    def __init__(self, websocket: WebSocket, leaf: Leaf) -> None:
        self._websocket = websocket
        self._leaf = leaf
        self._loop = asyncio.get_running_loop()
        self._number = leaf.next_channel()
        self._next_leg = 0
        self._finished: deque[Finished] = deque()
        self._flush_due = False
        self._frames: deque[bytes] = deque()
        self._frames_bytes = 0
        self._frame_waits = asyncio.Event()
        self._close_code: int | None = None
        self._closed = False
        self._writer: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve the connection until either side ends it."""
        await self._websocket.accept()
        reader = asyncio.create_task(self._read())
        self._writer = writer = asyncio.create_task(self._write())
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if self._close_code is not None:
                await asyncio.wait({writer}, timeout=CLOSE_S)
        finally:
            self._end()
            reader.cancel()
            writer.cancel()
            for outcome in await asyncio.gather(reader, writer, return_exceptions=True):
                if isinstance(outcome, Exception):
                    log.error("a channel failed", exc_info=outcome)

    def _end(self) -> None:
        self._closed = True
        self._leaf.leave(self, self._number)
        self._flush()

    # --- outwards ------------------------------------------------------------------------

    def put(self, finished: Finished) -> None:
        """Take finished legs from any thread; they leave in one frame a tick."""
        self._finished.append(finished)
        # Set before the flush empties the deque and tested after the append: a leg can be
        # flushed by an earlier call, never left behind.
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon_threadsafe(self._flush)

    def announce(self, hello: bytes) -> None:
        """Tell the root who this leaf is and what it holds."""
        self._send(hello)

    def _flush(self) -> None:
        self._flush_due = False
        finished = self._finished
        hits: list[Reply] = []
        documents: list[Reply] = []
        refusals: list[Reply] = []
        ledger, heard = self._leaf.ledger, not self._closed
        while finished:
            kind, answers, refused = finished.popleft()
            if answers:
                (documents if kind == "fetch" else hits).extend(answers)
                ledger.answered(kind, answers, heard=heard)
            if refused:
                refusals.extend(refused)
                ledger.refused(kind, refused)
        if heard and (hits or documents or refusals):
            for frame in write_replies(hits, documents, refusals):
                self._send(frame)

    def _send(self, frame: bytes) -> None:
        # After a refusal nothing more is said.
        if self._closed or self._close_code is not None:
            return
        self._frames.append(frame)
        self._frames_bytes += len(frame)
        self._frame_waits.set()
        if self._frames_bytes > OUTGOING_BYTES_MAX:
            self._give_up()

    def _give_up(self) -> None:
        """Drop a root that does not read. Its writer waits for it, so that is ended."""
        self._closed = True
        self._leaf.ledger.dropped_channels += 1
        log.warning("a root does not read its answers; its connection is dropped")
        if self._writer is not None:
            self._writer.cancel()

    async def _write(self) -> None:
        frames, ledger = self._frames, self._leaf.ledger
        try:
            while self._close_code is None or frames:
                if not frames:
                    self._frame_waits.clear()
                    await self._frame_waits.wait()
                    continue
                frame = frames.popleft()
                await self._websocket.send_bytes(frame)
                self._frames_bytes -= len(frame)
                ledger.frame("out", len(frame))
            await self._websocket.close(self._close_code)
        except (WebSocketDisconnect, OSError):
            return

    # --- inwards -------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            frame = await self._next_frame()
            if frame is None:
                return
            root = check_hello(frame).root
            log.info("root %.100r is connected", root)
            self._leaf.join(self)
            while frame is not None:
                self._take(frame)
                frame = await self._next_frame()
                if frame is not None and frame.hello is not None:
                    raise malformed("a hello comes once")
        except BadFrame as error:
            log.warning("a root is refused: %s", error)
            self._send(write_refused(str(error)))
            self._close_code = error.close_code
            self._frame_waits.set()

    async def _next_frame(self) -> RootFrame | None:
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        data: bytes | None = message.get("bytes")
        self._leaf.ledger.frame("in", len(data or b""))
        return read_frame(data)

    def _take(self, frame: RootFrame) -> None:
        if frame.asks:
            now = self._leaf.clock()
            for ask in frame.asks:
                self._take_ask(ask, now)
        if frame.cancels:
            self._leaf.workers.cancel(self._number, frame.cancels)
        if frame.ping is not None:
            self._send(write_pong(frame.ping))

    def _take_ask(self, ask: Ask, now: float) -> None:
        check_ask(ask, self._next_leg)
        if not ask.shards:
            return
        self._next_leg = ask.first + len(ask.shards)
        generation = self._leaf.holdings.use(ask.generation, now)
        if generation is None:
            detail = plain(ask.generation)
            legs = range(ask.first, self._next_leg)
            refusals = [(leg, 0, 0, "unknown_generation", detail) for leg in legs]
            self.put(Finished(ask.kind, (), refusals))
            return
        self._leaf.offer(
            Task(
                sink=self,
                channel=self._number,
                kind=ask.kind,
                generation=generation,
                body=ask.body,
                first=ask.first,
                shards=ask.shards,
                arrived_s=now,
                budget_s=min(ask.budget_ms, BUDGET_MS_MAX) / 1e3,
                ordinals=ask.ordinals,
                priority=ask.priority,
            )
        )
