"""A leaf that does what a test dictates.

    leaf.script = takes(0.100)      from now on every leg takes 100 ms
    leaf.stop()                     as SIGSTOP: nothing is answered, nothing is lost yet
    leaf.resume()
    leaf.disconnect()               its connection closes: what it owes fails as gone
    leaf.deaf = True                it heeds no cancel: its answers come late
    leaf.empty_handed = True        it holds nothing, and refuses whatever it is asked

It has a queue and workers. A script says of each leg how long it is worked on and how
it ends. Cancels take legs out of the queue; what is being worked on is finished and its
answer dropped; both are acknowledged. A leaf that begins a tied leg tells the other one, which
drops its copy if that waits. Messages travel for ``TRAVEL_S`` each way, in order.
The leaf counts what it received, finished, refused and dropped, and for how long it worked.

Times are seconds of the loop that runs when the fleet is made, virtual or not.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, NamedTuple

from bench.simulation.answers import hits
from leaf.protocol import Documents, Hits, Refusal
from leaf.ties import Ties, Waiting
from root.conduct import FailureReason
from root.race import Attempt
from root.ranking import Leaf
from root.scatter import Flight

TRAVEL_S: Final = 0.0001
"""One way on one machine, send to receive."""

WORKERS: Final = 1000
"""So many that no leg waits for another, where a test is not about queues."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a leaf does with a leg: works for ``work_s`` seconds, then ends it so.

    No work at all needs no worker and is done on arrival; infinite work is never done. What the
    leaf says of it is held back for ``transit_s`` more, which occupies nobody.
    """

    work_s: float
    ends: Literal["answer"] | FailureReason = "answer"
    detail: str = ""
    transit_s: float = 0.0


@dataclass(slots=True, eq=False)
class Leg:
    """One attempt as the leaf sees it. ``deadline_s`` is on the leaf's own clock."""

    attempt: Attempt
    flight: Flight
    budget_s: float
    deed: Deed = Deed(0.0)
    arrived_s: float = math.nan
    deadline_s: float = math.nan
    started_s: float = math.nan
    cancelled: bool = False

    @property
    def shard(self) -> int:
        """Which shard it is about."""
        return self.attempt.shard


EXPIRED: Final = Deed(0.0, "expired")
NOT_HELD: Final = Deed(0.0, "unknown_generation")
HANGS: Final = Deed(math.inf)
TWIN_BEGAN: Final = Deed(0.0, "twin_began")

Script = Callable[[Leg], Deed]
Answer = Callable[[Leg, int, int], Hits | Documents | Refusal]
"""Makes the reply to a leg, given its queue_us and service_us."""


class Counts(NamedTuple):
    """What a leaf has done so far; ``worked_s`` includes work that was not wanted any more."""

    received: int
    finished: int
    refused: int
    dropped: int
    worked_s: float


# --- scripts -----------------------------------------------------------------------------


def takes(work_s: float) -> Script:
    """Every leg takes this long."""
    deed = Deed(work_s)
    return lambda _: deed


def takes_about(median_s: float, sigma: float, random: Random) -> Script:
    """Every leg takes a log-normal time of its own."""
    mu = math.log(median_s)
    return lambda _: Deed(random.lognormvariate(mu, sigma))


def fails(reason: FailureReason, after_s: float = 0.0, detail: str = "") -> Script:
    """Every leg ends so, after this long."""
    deed = Deed(after_s, reason, detail)
    return lambda _: deed


def hangs() -> Script:
    """No leg is ever done; a cancel of one is not acknowledged either."""
    return lambda _: HANGS


def by_shard(scripts: dict[int, Script], otherwise: Script) -> Script:
    """Another script for some shards."""
    return lambda leg: scripts.get(leg.shard, otherwise)(leg)


def one_hit(leg: Leg, queue_us: int, service_us: int) -> Hits:
    """The default answer: one document a shard, of the shard's number."""
    return hits(leg.attempt.leg, [1.0], [leg.shard], queue_us=queue_us, service_us=service_us)


# --- one leaf ----------------------------------------------------------------------------


class ScriptedLeaf:
    """See the module's text. ``skew_s`` is how far the leaf's clock is ahead of the root's."""

    def __init__(self, leaf: Leaf, script: Script, answer: Answer, workers: int) -> None:
        """``leaf`` is how the root sees it."""
        self.leaf = leaf
        self.script = script
        self.answer = answer
        self.workers = workers
        self.skew_s = 0.0
        self.deaf = False
        self.empty_handed = False
        self.received: list[Leg] = []
        self.quiet_from_s = math.inf
        self.peers: Mapping[str, ScriptedLeaf] = {}
        self.tells_peers = True
        self.answered: Callable[[Attempt], None] = lambda _: None
        self._loop = asyncio.get_running_loop()
        self._finished = self._refused = self._dropped = 0
        self._worked_s = 0.0
        self._life = 0
        self._forget()

    def _forget(self) -> None:
        """Begin a life: nothing of the one before reaches into it."""
        self._life += 1
        self._owed: dict[int, Leg] = {}
        self._queue: deque[Leg] = deque()
        self._working = 0
        self._inbox: deque[Callable[[], None]] = deque()
        self._outbox: deque[Callable[[], None]] = deque()
        self._asleep: list[Callable[[], None]] | None = None
        self._ties = Ties()

    @property
    def counts(self) -> Counts:
        """What it has done."""
        return Counts(
            len(self.received), self._finished, self._refused, self._dropped, self._worked_s
        )

    @property
    def owed(self) -> int:
        """Legs sent to it that have not ended."""
        return len(self._owed)

    # --- what a test dictates ---

    def stop(self) -> None:
        """Freeze: neither work nor messages get on. What is on its way to the root arrives."""
        self._asleep = self._asleep or []
        self._fall_silent()

    def resume(self) -> None:
        """Get on with everything that has come meanwhile."""
        waiting, self._asleep = self._asleep or [], None
        self.quiet_from_s = math.inf
        for step in waiting:
            step()

    def disconnect(self, reason: FailureReason = "gone") -> None:
        """Lose the connection: all that is owed fails for that reason, and is forgotten here."""
        self.leaf.connected = False
        self._fall_silent()
        owed = list(self._owed.values())
        self._forget()
        for leg in owed:
            leg.flight.failed(leg.attempt, reason, "the connection was closed")
        for leg in owed:
            leg.flight.settle()

    def _fall_silent(self) -> None:
        self.quiet_from_s = min(self.quiet_from_s, self._loop.time())

    # --- messages: each travels, in order, and reaches nobody who has died meanwhile ---

    def send(self, attempt: Attempt, flight: Flight, number: int) -> None:
        """Take a leg from the root."""
        attempt.leg = number
        leg = Leg(attempt, flight, max(0.0, flight.ask.deadline_s - self._loop.time()))
        self._owed[number] = leg
        self._post(self._inbox, lambda: self._awake(lambda: self._take(leg)))

    def cancel(self, attempt: Attempt) -> None:
        """Take a cancel from the root, of a leg that is still owed."""
        leg = self._owed.get(attempt.leg)
        if leg is not None:
            self._post(self._inbox, lambda: self._awake(lambda: self._take_cancel(leg)))

    def _post(self, box: deque[Callable[[], None]], message: Callable[[], None]) -> None:
        box.append(message)
        self._loop.call_later(TRAVEL_S, self._arrive, box, self._life)

    def _arrive(self, box: deque[Callable[[], None]], life: int) -> None:
        """Timers that are due at once ring in any order: what was posted first arrives first."""
        if life == self._life:
            box.popleft()()

    def _awake(self, step: Callable[[], None]) -> None:
        if self._asleep is None:
            step()
        else:
            self._asleep.append(step)

    # --- work ---

    def _take(self, leg: Leg) -> None:
        leg.arrived_s = self._loop.time()
        leg.deadline_s = leg.arrived_s + self.skew_s + leg.budget_s
        self.received.append(leg)
        leg.deed = NOT_HELD if self.empty_handed else self.script(leg)
        if leg.deed.work_s == 0.0:
            self._end(leg, leg.deed)
            return
        self._queue.append(leg)
        if leg.attempt.twin is not None:
            here = (leg.shard, Waiting(0, leg.attempt.leg))
            self._drop(self._ties.arrived(leg.flight.ask.tie, [here], leg.arrived_s))
        self._start_next()

    def _start_next(self) -> None:
        while self._queue and self._working < self.workers:
            leg = self._queue.popleft()
            now = self._loop.time()
            if now + self.skew_s > leg.deadline_s:
                self._end(leg, EXPIRED)
                continue
            leg.started_s = now
            self._working += 1
            self._tell_twin(leg)
            if leg.deed.work_s < math.inf:
                self._loop.call_later(leg.deed.work_s, self._worked, leg, self._life)

    def _tell_twin(self, leg: Leg) -> None:
        if leg.attempt.twin is not None and self.tells_peers:
            self.peers[leg.attempt.twin.name].hear_begun(leg.flight.ask.tie, leg.shard)

    def hear_begun(self, key: str, shard: int) -> None:
        """Hear from another leaf that it has begun a tied leg."""

        def hear() -> None:
            self._drop(self._ties.begun(key, [shard], self._loop.time()))

        self._post(self._inbox, lambda: self._awake(hear))

    def _drop(self, waiting: Sequence[Waiting]) -> None:
        for _, number in waiting:
            leg = self._owed.get(number)
            if leg in self._queue:
                assert leg is not None  # noqa: S101 (what is queued is a leg)
                self._queue.remove(leg)
                self._end(leg, TWIN_BEGAN)

    def _worked(self, leg: Leg, life: int) -> None:
        if life == self._life:
            self._awake(lambda: self._stop_working(leg))

    def _stop_working(self, leg: Leg) -> None:
        self._working -= 1
        self._worked_s += leg.deed.work_s
        self._end(leg, leg.deed)
        self._start_next()

    def _take_cancel(self, leg: Leg) -> None:
        if self.deaf:
            return
        leg.cancelled = True
        if leg in self._queue:
            self._queue.remove(leg)
            self._end(leg, leg.deed)

    def _end(self, leg: Leg, deed: Deed) -> None:
        now = self._loop.time()
        started_s = now if math.isnan(leg.started_s) else leg.started_s
        queue_us = round((started_s - leg.arrived_s) * 1e6)
        service_us = round((now - started_s) * 1e6)
        if leg.cancelled:
            self._dropped += 1
            self._refuse(leg, "cancelled", "", queue_us, service_us)
        elif deed.ends == "answer":
            self._finished += 1
            reply = self.answer(leg, queue_us, service_us)
            if isinstance(reply, Refusal):
                self._refuse(leg, reply.reason, reply.detail, queue_us, service_us)
            else:
                self._hold(deed.transit_s, lambda: self._replied(leg, reply))
        else:
            self._refused += 1
            self._refuse(leg, deed.ends, deed.detail, queue_us, service_us)

    def _hold(self, transit_s: float, message: Callable[[], None]) -> None:
        if transit_s == 0.0:
            self._post(self._outbox, message)
            return
        life = self._life

        def let_go() -> None:
            if life == self._life:
                self._post(self._outbox, message)

        self._loop.call_later(transit_s, let_go)

    def _replied(self, leg: Leg, reply: Hits | Documents) -> None:
        del self._owed[leg.attempt.leg]
        leg.attempt.queue_us = reply.queue_us
        leg.attempt.service_us = reply.service_us
        self.answered(leg.attempt)
        leg.flight.replied(leg.attempt, reply)
        leg.flight.settle()

    def _refuse(
        self, leg: Leg, reason: FailureReason, detail: str, queue_us: int, service_us: int
    ) -> None:
        def arrive() -> None:
            del self._owed[leg.attempt.leg]
            leg.attempt.queue_us = queue_us
            leg.attempt.service_us = service_us
            leg.flight.failed(leg.attempt, reason, detail)
            leg.flight.settle()

        self._post(self._outbox, arrive)
