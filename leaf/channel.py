"""The leaf's end of one root's channel: what is said, and what is done about it.

Plain synchronous code on the event loop, called for each message as it arrives, so that
pings are answered and cancels taken while every worker is busy. Asks go to the admission
queue; finished legs come back from worker threads, and all that a tick of the loop finds
finished leave in one frame.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Protocol

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
from leaf.protocol import DOCUMENT_KINDS, Ask, RootFrame
from leaf.service import BUDGET_MS_MAX, Leaf

log = logging.getLogger(__name__)


class Line(Protocol):
    """What a channel speaks through. Frames leave in order; none after a close."""

    def send(self, frame: bytes) -> None:
        """Send one frame; once the connection is closed, to nobody."""

    def close(self, code: int) -> None:
        """Close the connection after what was sent."""


class Channel:
    """One connection: a sink for finished legs, and the listener to the root's frames."""

    def __init__(self, line: Line, leaf: Leaf) -> None:
        self._line = line
        self._leaf = leaf
        self._loop = asyncio.get_running_loop()
        self._number = leaf.next_channel()
        self._greeted = False
        self._ended = False
        self._next_leg = 0
        self._finished: deque[Finished] = deque()
        self._flush_due = False

    def end(self) -> None:
        """Forget the root: the connection is lost, or about to be. Once is enough."""
        if not self._ended:
            self._ended = True
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
        ledger, heard = self._leaf.ledger, not self._ended
        while finished:
            kind, answers, refused = finished.popleft()
            if answers:
                (documents if kind in DOCUMENT_KINDS else hits).extend(answers)
                ledger.answered(kind, answers, heard=heard)
            if refused:
                refusals.extend(refused)
                ledger.refused(kind, refused, heard=heard)
        if heard and (hits or documents or refusals):
            for frame in write_replies(hits, documents, refusals):
                self._send(frame)

    def _send(self, frame: bytes) -> None:
        self._leaf.ledger.frame("out", len(frame))
        self._line.send(frame)

    # --- inwards -------------------------------------------------------------------------

    def hear(self, message: bytes | None) -> None:
        """Take one message of the root; None stands for one of text."""
        if self._ended:
            return
        self._leaf.ledger.frame("in", len(message or b""))
        try:
            self._take(read_frame(message))
        except BadFrame as error:
            self._refuse(error)

    def _refuse(self, error: BadFrame) -> None:
        """Say why, in words; after that nothing more is said or heard."""
        log.warning("a root is refused: %s", error)
        self._send(write_refused(str(error)))
        self.end()
        self._line.close(error.close_code)

    def _take(self, frame: RootFrame) -> None:
        if not self._greeted:
            self._greet(frame)
        elif frame.hello is not None:
            raise malformed("a hello comes once")
        if frame.asks:
            now = self._leaf.clock()
            for ask in frame.asks:
                self._take_ask(ask, now)
        if frame.cancels:
            self._leaf.workers.cancel(self._number, frame.cancels)
        if frame.begun:
            self._leaf.twins_began(frame.begun)
        if frame.ping is not None:
            self._send(write_pong(frame.ping))

    def _greet(self, frame: RootFrame) -> None:
        hello = check_hello(frame)
        log.info("%s %.100r is connected", "peer" if hello.peer else "root", hello.root)
        self._greeted = True
        if not hello.peer:
            self._leaf.join(self)

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
        self._leaf.holdings.asked(generation, ask.shards, now)
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
                query=ask.query,
                tie=ask.tie,
                trace=ask.trace,
            )
        )
