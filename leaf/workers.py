"""The threads that search, and the queue they share with the event loop.

One hop a frame: the loop offers an ask's legs under one lock and wakes as many idle
workers as can find something to do; a worker takes a few legs under the same lock, does
them without it, and goes on until the queue is empty. Nobody waits for a single leg.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from leaf.admission import AdmissionQueue, Depth
from leaf.asks import Finished, Performer, Sink, Task, refuse
from leaf.lines import Bite
from leaf.protocol import RefusalReason

log = logging.getLogger(__name__)

WORKERS_MAX: Final = 256
"""More threads than any machine has cores for is a slip of the keyboard."""

Clock = Callable[[], float]
Tell = Callable[[Bite[Task]], None]


class Workers:
    """Worker threads around one admission queue. Every method may be called on the loop."""

    def __init__(self, queue: AdmissionQueue[Task], clock: Clock = time.monotonic) -> None:
        self._queue = queue
        self._clock = clock
        self._lock = threading.Lock()
        # Idle workers, each by the lock that it sleeps on: a bare lock is the cheapest thing
        # that a thread can sleep on, and one of its own wakes nobody else. The last to fall
        # asleep is woken first, for its caches are warm.
        self._asleep: list[threading.Lock] = []
        self._stopping = False
        self._tell: Tell | None = None
        self._performers: list[Performer] = []
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{number}", daemon=True)
            for number in range(queue.workers)
        ]

    @property
    def count(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def tell(self, tell: Tell) -> None:
        """Have ``tell`` called, on a worker's thread, for tied legs that are being begun."""
        self._tell = tell

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float) -> bool:
        """End the threads; False when one is still at work after this time."""
        with self._lock:
            self._stopping = True
            asleep, self._asleep = self._asleep, []
        for bell in asleep:
            bell.release()
        end_s = time.monotonic() + patience_s
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, end_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    # --- called by the loop --------------------------------------------------------------

    def offer(self, task: Task) -> None:
        """Queue a task's legs; those there is no room for are refused at once.

        Raises ValueError when they are not numbered above the channel's earlier ones.
        """
        legs, now = task.legs, self._clock()
        with self._lock:
            admitted, retry_s, expired = self._queue.offer(task, now)
        if admitted < legs:
            self._refuse_busy(task, range(admitted, legs), retry_s)
        self._deliver(expired, "expired", now)

    def ring(self) -> None:
        """Wake as many workers as can find something to do: once, after offering.

        A worker that is woken needs the interpreter lock at once. So the loop rings as the
        last thing before it returns to the system, which is when it gives the lock away.
        """
        with self._lock:
            asleep = self._asleep
            woken = [asleep.pop() for _ in range(min(len(asleep), self._queue.bites()))]
        for bell in woken:
            bell.release()

    def cancel(self, channel: int, legs: Iterable[int]) -> None:
        """Cancel legs of a channel; those still in the queue are answered at once."""
        with self._lock:
            withdrawn = self._queue.cancel(channel, legs)
        self._deliver(withdrawn, "cancelled", self._clock())

    def drop(self, channel: int, legs: Iterable[int]) -> None:
        """Drop legs of a channel that still wait, as their twins have begun."""
        with self._lock:
            dropped = self._queue.cancel(channel, legs, taken_too=False)
        self._deliver(dropped, "twin_began", self._clock())

    def drop_channel(self, channel: int) -> Sequence[Bite[Task]]:
        """Remove everything that waits for a lost connection, and return it unanswered."""
        with self._lock:
            return self._queue.drop_channel(channel)

    def expire(self) -> None:
        """Answer what has waited past its deadline, even when no worker comes by."""
        now = self._clock()
        with self._lock:
            expired = self._queue.expire(now)
        self._deliver(expired, "expired", now)

    def depth(self) -> Depth:
        """Return how full the queue is."""
        with self._lock:
            return self._queue.depth()

    def work_s(self, generation: str) -> dict[int, float]:
        """Return the seconds that were spent on each shard of a generation, ascending."""
        total_us: dict[int, int] = {}
        for performer in tuple(self._performers):
            # A copy is made at once, whatever the worker counts meanwhile.
            for shard, spent_us in performer.work_us.get(generation, {}).copy().items():
                total_us[shard] = total_us.get(shard, 0) + spent_us
        return {shard: total_us[shard] / 1e6 for shard in sorted(total_us)}

    def forget(self, generation: str) -> None:
        """Count no longer what was spent on a generation that is gone."""
        for performer in self._performers:
            performer.work_us.pop(generation, None)

    # --- within --------------------------------------------------------------------------

    def _refuse_busy(self, task: Task, legs: Sequence[int], retry_s: float) -> None:
        retry_ms = max(1, round(retry_s * 1e3))
        refusals = [(task.first + leg, 0, 0, "busy", "", retry_ms) for leg in legs]
        self._put(task.sink, Finished(task.kind, (), refusals))

    def _deliver(self, bites: Iterable[Bite[Task]], reason: RefusalReason, now: float) -> None:
        for task, legs in bites:
            self._put(task.sink, refuse(task, legs, now, reason))

    def _performer(self) -> Performer:
        """Return what does the legs that one worker takes."""
        return Performer(self._clock)

    def _work(self) -> None:
        """Be one worker."""
        queue, lock, clock = self._queue, self._lock, self._clock
        performer = self._performer()
        self._performers.append(performer)
        perform = performer.perform
        bell = threading.Lock()
        bell.acquire()
        done: Bite[Task] | None = None
        began = 0.0
        while True:
            now = clock()
            with lock:
                if self._stopping:
                    return
                if done is not None:
                    queue.finished(done.group, len(done.legs), now - began)
                bite, expired = queue.take(queue.bite_legs(), now)
                if bite is None:
                    self._asleep.append(bell)
            done, began = bite, now
            if expired:
                self._deliver(expired, "expired", now)
            if bite is not None:
                if bite.group.tie is not None:
                    self._tell_twins(bite)
                self._put(bite.group.sink, perform(bite))
            else:
                bell.acquire()

    def _tell_twins(self, bite: Bite[Task]) -> None:
        try:
            if self._tell is not None:
                self._tell(bite)
        except RuntimeError:
            # The loop is closed: the process ends, and its peers need not know what it begins.
            if not self._stopping:
                log.exception("what is begun could not be handed to the event loop")

    def _put(self, sink: Sink, finished: Finished) -> None:
        try:
            sink.put(finished)
        except RuntimeError:
            # The loop is closed: the process ends, and nobody hears this answer.
            if not self._stopping:
                log.exception("an answer could not be handed to the event loop")
