"""A leaf that carries out a plan of trouble: workers that injected trouble gets in between.

They take the place of the workers of a leaf that may meet trouble; any other leaf has the
plain ones, and nothing of this is on its way. What a leg is to meet is decided as it arrives,
on the event loop:

* A blocked loop sleeps there and then.
* What is refused is answered at once.
* What hangs is offered to a queue that nobody works on: that knows about cancels, deadlines
  and lost connections all that there is to know.
* The others are queued as ever. Their worker sleeps before it works; a cancelled leg is
  dropped when its turn comes, and finished once it has. Their answers pass a sink that spoils
  them or has them held back.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from leaf.admission import AdmissionQueue
from leaf.asks import Finished, NoPlan, Performer, Plan, Reply, Sink, Task
from leaf.courier import Courier
from leaf.holdings import HeldShard
from leaf.interference import Arrival, Fail, Garbage, Hang, Interference, Refuse, Trouble
from leaf.lines import Bite
from leaf.protocol import DOCUMENT_KINDS, Bool, Kind, Phrase, Query, RefusalReason, SearchBody, Word
from leaf.workers import Clock, Workers

DETAIL: Final = "injected trouble"
"""What every refusal says that is none of the leaf's own."""

NO_FRAME: Final = orjson.Fragment(b"\xff\x00 injected garbage")
"""Written as it is: what it stands in is neither JSON nor UTF-8."""

NO_HITS: Final = ([None], [None])
"""Where a root expects scores and ordinals."""

Sleep = Callable[[float], None]


class InjectingWorkers(Workers):
    """Workers that carry out the plan that is in force, if any is."""

    def __init__(
        self,
        queue: AdmissionQueue[Task],
        clock: Clock = time.monotonic,
        sleep: Sleep = time.sleep,
    ) -> None:
        """``sleep`` is what occupies a worker and what blocks the loop."""
        super().__init__(queue, clock)
        self._sleep = sleep
        self._interference: Interference | None = None
        # Nobody starts it: it is the queue that counts.
        self._limbo = Workers(AdmissionQueue(workers=1, legs_max=queue.legs_max), clock)
        self.courier = Courier(clock, self._put)

    def interfere(self, interference: Interference | None) -> None:
        """Carry out this plan from now on. What has arrived meets what it was to meet."""
        self._interference = interference

    def start(self) -> None:
        """Start the threads."""
        super().start()
        self.courier.start()

    def stop(self, patience_s: float) -> bool:
        """End the threads; False when one is still at work after this time."""
        ended = super().stop(patience_s)
        self.courier.stop()
        return ended

    def offer(self, task: Task) -> None:
        """Queue a task's legs, with what each is to meet.

        Raises ValueError when they are not numbered above the channel's earlier ones.
        """
        interference = self._interference
        if interference is None:
            super().offer(task)
            return
        arrival = arrival_of(task, words=interference.reads_words)
        troubles = interference.meet(arrival, self._clock())
        block_s = max(trouble.block_s for trouble in troubles)
        if block_s:
            self._sleep(block_s)
            # The leaf's clock starts when its loop gets to a leg: what stood still sees nothing.
            task.arrived_s = self._clock()
        for ending, indices in groupby(range(task.legs), lambda leg: _queue_of(troubles[leg])):
            legs = list(indices)
            part = self._part(task, legs, troubles)
            match ending:
                case Refuse():
                    self._refuse_part(part, ending)
                case Hang():
                    self._limbo.offer(part)
                case None:
                    super().offer(part)

    def cancel(self, channel: int, legs: Iterable[int]) -> None:
        """Cancel legs of a channel; those still in a queue are answered at once."""
        legs = list(legs)
        super().cancel(channel, legs)
        self._limbo.cancel(channel, legs)

    def drop(self, channel: int, legs: Iterable[int]) -> None:
        """Drop legs of a channel that still wait, as their twins have begun."""
        legs = list(legs)
        super().drop(channel, legs)
        self._limbo.drop(channel, legs)

    def drop_channel(self, channel: int) -> Sequence[Bite[Task]]:
        """Remove everything that waits for a lost connection, and return it unanswered."""
        return [*super().drop_channel(channel), *self._limbo.drop_channel(channel)]

    def expire(self) -> None:
        """Answer what has waited past its deadline, even when no worker comes by."""
        super().expire()
        self._limbo.expire()

    def _performer(self) -> Performer:
        return InjectingPerformer(self._clock, self._sleep)

    def _part(self, task: Task, legs: Sequence[int], troubles: Sequence[Trouble]) -> TroubledTask:
        start, stop = legs[0], legs[-1] + 1
        met = troubles[start:stop]
        sink = TroubledSink(task.sink, self.courier, task.first + start, met)
        return TroubledTask(task, sink, start, stop, met)

    def _refuse_part(self, task: TroubledTask, rule: Refuse) -> None:
        refusal = (0, 0, rule.reason, DETAIL, rule.retry_ms if rule.reason == "busy" else 0)
        refusals = [(task.first + leg, *refusal) for leg in range(task.legs)]
        self._put(task.sink, Finished(task.kind, (), refusals))


def _queue_of(trouble: Trouble) -> Refuse | Hang | None:
    """Return why a leg is not queued for the workers, if it is not."""
    return trouble.ending if isinstance(trouble.ending, Refuse | Hang) else None


# --- what the rules see of a task ---------------------------------------------------------


class _Asked(msgspec.Struct):
    """What bodies have in common."""

    query: Query | None = None
    id: str = ""


_ASKED: Final = msgspec.json.Decoder(_Asked)


def arrival_of(task: Task, *, words: bool) -> Arrival:
    """Return what the rules see of a task; reading its ``words`` takes time."""
    body = task.body
    if isinstance(body, SearchBody):
        body = msgspec.Raw(msgspec.json.encode(body))
    found = words_of(body) if words else frozenset()
    return Arrival(
        kind=task.kind,
        shards=task.shards,
        query=task.query,
        alone=task.alone,
        body=zlib.crc32(body),
        words=found,
    )


def words_of(body: msgspec.Raw) -> frozenset[str]:
    """Return the words in a body, in lower case; none where it cannot be read."""
    try:
        asked = _ASKED.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return frozenset()
    found = set(asked.id.lower().split())
    level = [asked.query] if asked.query is not None else []
    while level:
        node = level.pop()
        match node:
            case Bool():
                level += (*node.must, *node.should, *node.must_not)
            case Word() | Phrase():
                found.update(node.text.lower().split())
            case _:
                pass
    return frozenset(found)


# --- what stands between a leg and its answer -----------------------------------------------


class TroubledTask(Task):
    """Legs ``start`` to ``stop`` of a task, each with the trouble that it meets."""

    __slots__ = ("troubles",)

    def __init__(
        self, task: Task, sink: Sink, start: int, stop: int, troubles: Sequence[Trouble]
    ) -> None:
        tie = task.tie
        super().__init__(
            sink=sink,
            channel=task.channel,
            kind=task.kind,
            generation=task.generation,
            body=task.body,
            first=task.first + start,
            shards=task.shards[start:stop],
            arrived_s=task.arrived_s,
            budget_s=task.deadline_s - task.arrived_s,
            ordinals=task.ordinals[start:stop],
            priority=task.priority,
            query=task.query,
            alone=task.alone,
            tie=tie and msgspec.structs.replace(tie, twins=tie.twins[start:stop]),
        )
        self.troubles = troubles


class TroubledSink:
    """Spoils answers, and has what is finished held back, before it goes into the real sink."""

    def __init__(
        self, sink: Sink, courier: Courier, first: int, troubles: Sequence[Trouble]
    ) -> None:
        self._sink = sink
        self._courier = courier
        self._first = first
        self._troubles = troubles

    def put(self, finished: Finished) -> None:
        """Take what is finished, on any thread."""
        kind, answers, refusals = finished
        for answer in answers:
            trouble = self._of(answer)
            if isinstance(trouble.ending, Garbage):
                answer = spoiled(kind, answer, trouble.ending)  # noqa: PLW2901
            self._pass(Finished(kind, [answer], ()), trouble.transit_s)
        for refusal in refusals:
            self._pass(Finished(kind, (), [refusal]), self._of(refusal).transit_s)

    def _of(self, reply: Reply) -> Trouble:
        leg: int = reply[0]
        return self._troubles[leg - self._first]

    def _pass(self, finished: Finished, transit_s: float) -> None:
        if transit_s:
            self._courier.hold(self._sink, finished, transit_s)
        else:
            self._sink.put(finished)


def spoiled(kind: Kind, answer: Reply, rule: Garbage) -> Reply:
    """Return what cannot be read in the place of an answer."""
    leg, queue_us, service_us, *rest = answer
    if rule.what == "frame":
        return (leg, queue_us, service_us, NO_FRAME, 1.0, NO_HITS)
    if kind in DOCUMENT_KINDS:
        return (leg, queue_us, service_us, [None])
    return (leg, queue_us, service_us, *rest[:1], 1.0, NO_HITS)


class Injected(Exception):
    """A leg fails because it is to; not a fault, and not logged as one."""

    def __init__(self, reason: RefusalReason) -> None:
        super().__init__(DETAIL)
        self.reason = reason


class TroubledPlan(NamedTuple):
    """A plan whose legs are kept waiting, and may fail, before their work begins."""

    plan: Plan
    troubles: Sequence[Trouble]
    sleep: Sleep

    def answer(self, shard: HeldShard, leg: int) -> Reply:
        """Do the leg with this index. Raises Injected, and whatever the shard raises."""
        trouble = self.troubles[leg]
        if trouble.busy_s:
            self.sleep(trouble.busy_s)
        if isinstance(trouble.ending, Fail):
            raise Injected(trouble.ending.reason)
        return self.plan.answer(shard, leg)


class InjectingPerformer(Performer):
    """Does legs as any performer, with the trouble that they meet."""

    def __init__(self, clock: Clock, sleep: Sleep) -> None:
        super().__init__(clock)
        self._sleep = sleep

    def _plan(self, task: Task) -> Any:
        plan = super()._plan(task)
        if isinstance(task, TroubledTask) and not isinstance(plan, NoPlan):
            return TroubledPlan(plan, task.troubles, self._sleep)
        return plan

    def _failure(self, task: Task, leg: int, error: BaseException) -> NoPlan:
        if isinstance(error, Injected):
            return NoPlan(error.reason, DETAIL)
        return super()._failure(task, leg, error)
