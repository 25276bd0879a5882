"""The leaf's queue: which leg is worked on next, and which is turned away.

The rules, in order:

1. The queue is bounded, counted in legs, and so is the time in it: what does not fit, and what
   the work ahead of it would leave less than ``PATIENCE`` of its time, is refused ``busy`` at
   once, while another replica can still help. An ask may be admitted in part: its legs are
   separate races at the root, so turning away those that fit would help nobody, and an ask
   larger than the queue could never enter.
2. ``interactive`` goes before ``batch``, but while both wait, one part in ``BATCH_TURN`` of
   the work is batch, so batch is slow and never starved. Batch may fill only half the queue,
   so that it cannot keep interactive legs out.
3. Within a class the earliest deadline goes first, then the earlier offer. A group whose legs
   turn out far dearer than most is set back, as if its deadline were later: a leg is a unit of
   work, and between two units of a long query the short ones go first.
4. A leg whose deadline has passed is never started; it comes out as expired. Who would be late
   is turned away by rule 1, when it comes, and not while there is a worker for it: so an
   estimate that once went high sees the samples that correct it.
5. A cancelled leg leaves the queue. One that was taken already is marked, and whoever
   works on it sees the mark.

Every offered leg comes out exactly once: refused, taken, expired, cancelled, or dropped
with its channel.

Pure: no clock, no thread, no loop. Entries are groups (one ask's legs), so that offering
costs O(log groups) an ask and taking O(1) a leg. Times in seconds, any one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple

from leaf.lines import Bite, GroupT, Line, Register

BATCH_TURN: Final = 8
"""An eighth of the work is batch while both classes wait: batch advances at an eighth of the
leaf's speed, and an interactive leg is set back by at most that. Work, not legs, for a batch
query may be far dearer than others."""

BATCH_QUEUE_SHARE: Final = 0.5
"""How much of the queue batch legs may fill."""

QUEUE_LEGS_MAX: Final = 8_192
"""Default bound of the queue. At the 60 µs that a small shard takes, two workers empty it
in a quarter of a second; who waits longer than that is better off with another replica."""

PATIENCE: Final = 0.5
"""What may pass of a leg's time before it is begun. Where there is always more than can be done,
those with the earliest deadlines are those that have waited longest: admitted without this, all
would be begun just before they are too late, and nothing would be answered in time."""

DEAR: Final = 3.0
SETBACK: Final = 50.0
"""Work beyond three times what legs take on average sets a group back fifty times as far: as
long as others come, it has a fiftieth of a worker for that part, and all that they leave.
Ordinary queries differ by less, and are done one after the other: taking turns would make all
of them late."""

BITE_LEGS_MAX: Final = 64
BITE_WORK_S: Final = 200e-6
"""A worker takes several cheap legs under one lock, but no more than this much work (by
the recent mean): so long a leg in hand cannot be taken by a worker that is free."""

SHARE_WORK_S: Final = 150e-6
"""Less work than this is not shared out: waking another thread costs 20 to 50 µs."""

SERVICE_WEIGHT: Final = 0.05
"""Weight of a new bite in the mean service time: about the last twenty bites count."""

SERVICE_START_S: Final = 100e-6
"""The mean before anything was measured: a two-word search on a shard of 500 documents."""

ROUNDING: Final = 1e-9
"""Seven sevenths of a leg are one."""

SERVICE_S_MIN: Final = 1e-6
"""The finest time that is told apart, and more than nothing."""

RETRY_S_MIN: Final = 0.001
RETRY_S_MAX: Final = 1.0
"""Bounds of the hint with ``busy``: below is another replica's business, above a guess."""


class Offered(NamedTuple, Generic[GroupT]):
    """The first ``admitted`` legs wait; the others are busy, with a hint when to retry.

    ``expired`` are legs of other groups that had to go before room was refused.
    """

    admitted: int
    retry_s: float
    expired: Sequence[Bite[GroupT]]


class Taken(NamedTuple, Generic[GroupT]):
    """What a worker is to do now (None: nothing waits), and what expired unstarted."""

    bite: Bite[GroupT] | None
    expired: Sequence[Bite[GroupT]]


@dataclass(frozen=True, slots=True)
class Depth:
    """How full the queue is, in legs; ``running`` have been taken and not finished."""

    interactive: int
    batch: int
    running: int


class AdmissionQueue(Generic[GroupT]):
    """The queue of one leaf, by the rules above. Not thread-safe: its owner holds a lock."""

    def __init__(self, *, workers: int, legs_max: int = QUEUE_LEGS_MAX) -> None:
        self.workers = workers
        self.legs_max = legs_max
        self._interactive: Line[GroupT] = Line()
        self._batch: Line[GroupT] = Line()
        self._registers: dict[int, Register[GroupT]] = {}
        self._sequence = 0
        self._running = 0
        self._batch_credit_s = 0.0
        self._service_s = SERVICE_START_S

    # --- the loop's side -----------------------------------------------------------------

    def offer(self, group: GroupT, now: float) -> Offered[GroupT]:
        """Admit as many of the group's legs as there is room for, the first ones.

        Raises ValueError, and changes nothing, when its legs are not numbered above those
        the channel has in the queue already.
        """
        expired: Sequence[Bite[GroupT]] = ()
        room = self._room(group, now)
        if room < group.legs:
            expired = self.expire(now)
            room = self._room(group, now)
        admitted = min(group.legs, room)
        if admitted:
            self._registers.setdefault(group.channel, Register()).add(group)
            group.legs = group.waiting = admitted
            self._sequence += 1
            self._line(group).push(group, self._sequence)
        return Offered(admitted, self.retry_s(), expired)

    def cancel(
        self, channel: int, legs: Iterable[int], *, taken_too: bool = True
    ) -> list[Bite[GroupT]]:
        """Take these legs out of the queue and return those that still waited in it.

        Legs in hand are marked revoked if ``taken_too``; unknown and finished ones are passed
        over, for a cancel and an answer may cross.
        """
        withdrawn: list[Bite[GroupT]] = []
        register = self._registers.get(channel)
        for leg in legs if register else ():
            assert register is not None  # noqa: S101 - for the type checker alone
            group = register.find(leg)
            if group is None or not (taken_too or leg - group.first >= group.next):
                continue
            if group.withdraw(leg - group.first):
                self._line(group).lose(group)
                withdrawn.append(Bite(group, (leg - group.first,)))
                self._forget_when_done(group)
        return withdrawn

    def drop_channel(self, channel: int) -> list[Bite[GroupT]]:
        """Take out everything that waits for a connection that is gone, and return it.

        Legs in hand are marked revoked: who works on them goes no further than the one begun.
        """
        register = self._registers.get(channel)
        groups = list(register.groups) if register else []
        for group in groups:
            group.revoked.update(range(group.next))
        return [self._cut_all(group) for group in groups if group.waiting]

    def expire(self, now: float) -> list[Bite[GroupT]]:
        """Take out the legs whose deadline has passed."""
        expired: list[Bite[GroupT]] = []
        for line in (self._interactive, self._batch):
            while (group := line.expired(now)) is not None:
                expired.append(self._cut_all(group))
        return expired

    # --- the workers' side ---------------------------------------------------------------

    def take(self, legs_max: int, now: float) -> Taken[GroupT]:
        """Hand out up to ``legs_max`` legs of the group whose turn it is."""
        expired = self.expire(now)
        line, share = self._turn(legs_max)
        group = line.head()
        if group is None:
            return Taken(None, expired)
        legs = line.cut(group, share)
        self._charge(group, len(legs) * self._service_s)
        group.running += len(legs)
        self._running += len(legs)
        return Taken(Bite(group, legs), expired)

    def finished(self, group: GroupT, legs: int, took_s: float) -> None:
        """Note that ``legs`` taken legs of a group are done, ``took_s`` seconds in all."""
        group.running -= legs
        self._running -= legs
        self._charge(group, took_s - legs * self._service_s)
        group.setback_s += SETBACK * max(0.0, took_s - DEAR * legs * self._service_s)
        self._service_s += SERVICE_WEIGHT * (max(took_s / legs, SERVICE_S_MIN) - self._service_s)
        self._forget_when_done(group)

    # --- what it knows -------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Legs in the queue."""
        return self._interactive.waiting + self._batch.waiting

    def depth(self) -> Depth:
        """Return how full the queue is."""
        return Depth(self._interactive.waiting, self._batch.waiting, self._running)

    def bite_legs(self) -> int:
        """How many legs a worker should take: its share, and no more than a moment's work."""
        share = -(-self.waiting // self.workers)
        unshared = int(SHARE_WORK_S / self._service_s)
        moment = int(BITE_WORK_S / self._service_s)
        return max(1, min(max(share, unshared), moment, BITE_LEGS_MAX))

    def bites(self) -> int:
        """How many workers can find something to do."""
        return -(-self.waiting // self.bite_legs())

    def retry_s(self) -> float:
        """When the legs that wait now should be done."""
        estimate_s = self.waiting * self._service_s / self.workers
        return min(max(estimate_s, RETRY_S_MIN), RETRY_S_MAX)

    # --- within --------------------------------------------------------------------------

    def _line(self, group: GroupT) -> Line[GroupT]:
        return self._batch if group.priority == "batch" else self._interactive

    def _room(self, group: GroupT, now: float) -> int:
        """How many legs of the group may enter."""
        room = self.legs_max - self.waiting
        if group.priority == "batch":
            room = min(room, int(self.legs_max * BATCH_QUEUE_SHARE) - self._batch.waiting)
        budget_s = group.deadline_s - now
        in_time = max(self.workers, int(PATIENCE * budget_s * self.workers / self._service_s))
        # What comes too late is not turned away: it expires, and says so.
        if budget_s > 0.0 and self.waiting + group.legs > in_time:
            room = min(room, in_time - self._ahead(group))
        return max(room, 0)

    def _ahead(self, group: GroupT) -> int:
        """How many of the legs that wait go before the group's."""
        ahead = self._line(group).ahead(group.deadline_s)
        return ahead + self._interactive.waiting if group.priority == "batch" else ahead

    def _turn(self, legs_max: int) -> tuple[Line[GroupT], int]:
        """Return whose turn it is and how many legs it may have."""
        if not self._interactive.waiting:
            return self._batch, legs_max
        owed = int(self._batch_credit_s / self._service_s + ROUNDING)
        if self._batch.waiting and owed > 0:
            return self._batch, min(legs_max, owed)
        return self._interactive, legs_max

    def _charge(self, group: GroupT, work_s: float) -> None:
        """Note work of a class: what is expected when it is taken, the difference when done."""
        if not (self._batch.waiting and self._interactive.waiting):
            self._batch_credit_s = 0.0
        elif group.priority == "batch":
            self._batch_credit_s -= work_s
        else:
            self._batch_credit_s += work_s / (BATCH_TURN - 1)

    def _cut_all(self, group: GroupT) -> Bite[GroupT]:
        bite = Bite(group, self._line(group).cut(group, group.legs))
        self._forget_when_done(group)
        return bite

    def _forget_when_done(self, group: GroupT) -> None:
        if group.waiting or group.running:
            return
        register = self._registers[group.channel]
        register.remove(group)
        if not register.groups:
            del self._registers[group.channel]
