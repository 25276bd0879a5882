"""The one driver: it performs what a gather orders and tells it what happened.

Reads the loop's clock, sends and cancels through a ``LeafTransport``, feeds the events back.
One timer per query and one future per query; nothing at all per attempt. The same driver
runs against WebSocket channels on a real loop and against simulated leaves in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from leaf.protocol import DOCUMENT_KINDS, Documents, Hits, Priority
from root.conduct import FailureReason
from root.gather import (
    Action,
    AlarmRang,
    AttemptFailed,
    AttemptsReplied,
    CallerLeft,
    CancelAttempt,
    Event,
    Gather,
    Outcome,
    SendAttempt,
)
from root.race import Attempt


class Ask(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What all legs of a gather say: one per phase of a query.

    ``body`` is the JSON of the protocol's body for this kind, encoded once.
    ``ordinals`` (fetch only) names the documents wanted of each shard. ``query`` is this root's
    number of the request, the same in all of its phases. ``trace`` is the trace it belongs to, as
    a ``traceparent`` header has it, where its caller brought one. ``tie`` is what tied copies know
    each other by: random, and nobody else's.
    """

    kind: str
    generation: str
    body: bytes
    deadline_s: float
    priority: Priority = "interactive"
    ordinals: Mapping[int, Sequence[int]] | None = None
    query: int | None = None
    tie: str = ""
    trace: str = ""

    @property
    def reply_type(self) -> type[Hits | Documents]:
        """What an honest leaf answers with."""
        return Documents if self.kind in DOCUMENT_KINDS else Hits

    def answered_by(self, attempt: Attempt, reply: Hits | Documents) -> bool:
        """Whether ``reply`` has the documents that were asked for, if any were."""
        if self.ordinals is None or isinstance(reply, Hits):
            return self.ordinals is None
        wanted = self.ordinals[attempt.shard]
        return [document.ordinal for document in reply.documents] == list(wanted)


class LeafTransport(Protocol):
    """Carries legs to leaves. Every leg sent is later ended by exactly one call on its flight.

    Never calls the flight from within ``send`` or ``cancel``.
    """

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Send the leg ``attempt`` of ``flight.ask`` to ``attempt.leaf``."""
        ...

    def cancel(self, attempt: Attempt) -> None:
        """Tell the leaf that the leg is not wanted. It still ends, later, by an event."""
        ...


class Flight:
    """A gather on its way. Transports call ``replied``, ``failed`` and then ``settle``."""

    __slots__ = (
        "_done",
        "_loop",
        "_replies",
        "_timer",
        "_timer_at_s",
        "_transport",
        "ask",
        "gather",
        "reply_type",
    )

    def __init__(self, gather: Gather, ask: Ask, transport: LeafTransport) -> None:
        """Nothing is sent before ``land``."""
        self.gather = gather
        self.ask = ask
        self.reply_type = ask.reply_type
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = self._loop.create_future()
        self._replies: list[tuple[Attempt, Any]] = []
        self._timer: asyncio.Handle | None = None
        self._timer_at_s = 0.0

    async def land(self) -> Outcome:
        """Send everything and wait for the outcome; cancelled, it cancels what is in flight."""
        done = self._done
        assert done is not None  # noqa: S101 (a flight lands once)
        self._perform(self.gather.start(self._loop.time()))
        self.settle()
        try:
            await done
        except asyncio.CancelledError:
            self._happened(CallerLeft())
            raise
        finally:
            self._done = None
            self._disarm()
        outcome = self.gather.outcome
        assert outcome is not None  # noqa: S101 (settle has seen it)
        return outcome

    def replied(self, attempt: Attempt, reply: Any) -> None:
        """Take a leaf's answer; what follows from it, and from others, comes with ``settle``."""
        self._replies.append((attempt, reply))

    def failed(self, attempt: Attempt, reason: FailureReason, detail: str) -> None:
        """Take a refusal, a failure or the loss of a leaf."""
        self._take_replies()
        self._happened(AttemptFailed(attempt, reason, detail))

    def settle(self) -> None:
        """Act on what has come, and look whether the gather is decided: once after a frame."""
        self._take_replies()
        done = self._done
        if done is None or done.done():
            return
        wakeup_s = self.gather.wakeup
        if wakeup_s is None:
            done.set_result(None)
        elif self._timer is None or wakeup_s < self._timer_at_s:
            self._disarm()
            self._timer = self._loop.call_at(wakeup_s, self._ring)
            self._timer_at_s = wakeup_s

    def _take_replies(self) -> None:
        if self._replies:
            replies, self._replies = self._replies, []
            actions = self.gather.handle(AttemptsReplied(replies), self._loop.time())
            if actions:  # mostly nothing follows from an answer, and there are many
                self._perform(actions)

    def _ring(self) -> None:
        self._timer = None
        self._happened(AlarmRang())
        self.settle()

    def _happened(self, event: Event) -> None:
        self._perform(self.gather.handle(event, self._loop.time()))

    def _perform(self, actions: Sequence[Action]) -> None:
        transport = self._transport
        for action in actions:
            match action:
                case SendAttempt():
                    transport.send(action.attempt, self)
                case CancelAttempt():
                    transport.cancel(action.attempt)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def scatter(gather: Gather, ask: Ask, transport: LeafTransport) -> Outcome:
    """Run ``gather`` to its outcome. Ends by the gather's deadline, whatever leaves do."""
    return await Flight(gather, ask, transport).land()
