"""The hand of ``root.canary``: sends canaries, and lets queries wait for each other's verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from math import ceil
from random import Random
from typing import Final

from root.canary import CANCEL_S, Pause, Refusal, Shapes, Trial, Wait
from root.conduct import MissingReason
from root.discovery import Fleet
from root.errors import Quarantined
from root.gather import Gather, Outcome
from root.hedging import Off
from root.pursuit import Phase, Pursuit
from root.race import Terms
from root.scatter import Ask, scatter
from root.shapes import Subject
from root.topology import View

log = logging.getLogger(__name__)

CANARIES_MAX: Final = 3
"""Shards that one query tries alone, where leaves refuse it or fall silent: a fleet in which
three in a row say nothing is not one to send the rest to."""

AGAIN_S: Final = 0.01
"""How often it is looked whether a canary that was given up has ended: few legs take longer, and
it goes on for half a second at the most."""

NO_DETAILS: Final[Mapping[int, str]] = {}


class Trials:
    """Lets queries in: at once, after a canary of their own or of another, or not at all."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        """``seed`` is of the choice of shards. Must be made on a running loop."""
        self.shapes = Shapes(fleet.heard_s)
        self._fleet = fleet
        self._random = Random(f"{seed}:canaries")
        self._loop = asyncio.get_running_loop()
        self._over: dict[Trial, asyncio.Event] = {}

    async def first_shard(
        self,
        pursuit: Pursuit,
        subject: Subject,
        query_class: str,
        ask: Ask,
        new_terms: Callable[[], Terms],
    ) -> Outcome | None:
        """Return the answer of the one shard that the query was tried on; None where it may go
        to all of them at once; or an outcome without replies, where it may not go on.

        Raises Quarantined.
        """
        field = "query" if pursuit.request.q is None else "q"
        try:
            trial = await self._admitted(subject, field, pursuit.deadline_s)
        except TimeoutError:
            return self._nowhere(pursuit, "timeout")
        if trial is None:
            return None
        try:
            return await self._try(pursuit, trial, field, query_class, ask, new_terms)
        finally:
            self.shapes.release(trial, self._loop.time())
            self._over.pop(trial).set()

    async def _admitted(self, subject: Subject, field: str, deadline_s: float) -> Trial | None:
        """Return None when the query may go to all leaves, or the trial that it has to pass.

        Raises Quarantined, and TimeoutError where another query's trial outlasts this one's time.
        """
        admission = self.shapes.admit(subject, self._loop.time())
        if isinstance(admission, Wait | Pause):
            async with asyncio.timeout_at(deadline_s):
                while isinstance(admission, Wait | Pause):
                    waited = admission.trial if isinstance(admission, Wait) else None
                    if waited is None:
                        await asyncio.sleep(AGAIN_S)
                    else:
                        await self._over[waited].wait()
                    admission = self.shapes.admit(subject, self._loop.time(), waited)
        match admission:
            case Refusal():
                raise _quarantined(field, admission)
            case Trial():
                self._over[admission] = asyncio.Event()
                return admission
            case "straight":
                return None

    async def _try(
        self,
        pursuit: Pursuit,
        trial: Trial,
        field: str,
        query_class: str,
        ask: Ask,
        new_terms: Callable[[], Terms],
    ) -> Outcome | None:
        outcome = None
        for shard in self._shards(pursuit.view):
            outcome = await self._canary(pursuit, trial, shard, query_class, ask, new_terms())
            self._raise_if_condemned(trial, field)
            if outcome.replies:
                return outcome
            if self._loop.time() >= ask.deadline_s or pursuit.refused_as("bad_query"):
                break
        if outcome is None:
            return None
        (reason,) = outcome.missing.values()
        return self._nowhere(pursuit, reason, outcome.details)

    def _shards(self, view: View) -> list[int]:
        """Return some shards that have a live replica, in random order."""
        live = [s for s, leaves in enumerate(view.replicas) if any(x.connected for x in leaves)]
        return self._random.sample(live, min(CANARIES_MAX, len(live)))

    async def _canary(
        self,
        pursuit: Pursuit,
        trial: Trial,
        shard: int,
        query_class: str,
        ask: Ask,
        terms: Terms,
    ) -> Outcome:
        """Ask one shard: no hedge, and no other replica where the leaf is lost over it."""
        now = self._loop.time()
        terms.losses_max = 0
        gather = Gather([(shard, pursuit.view.replicas[shard])], Off(), terms, ask.deadline_s)
        self.shapes.send(trial, gather.attempts)
        outcome = await scatter(gather, ask, self._fleet)
        phase = Phase("canary", query_class, outcome, gather.attempts, now, gather.tally)
        pursuit.note(phase)
        if outcome.decided_s >= ask.deadline_s:
            await asyncio.sleep(min(CANCEL_S, pursuit.deadline_s - self._loop.time()))
        return outcome

    def _raise_if_condemned(self, trial: Trial, field: str) -> None:
        now = self._loop.time()
        if self.shapes.condemns(trial, now):
            quarantined = _quarantined(field, self.shapes.refusal(trial, now))
            log.warning("%s (%s)", quarantined.detail, trial.subject.described)
            raise quarantined

    def _nowhere(
        self, pursuit: Pursuit, reason: MissingReason, details: Mapping[int, str] = NO_DETAILS
    ) -> Outcome:
        """Return the outcome of a query that may go to no shard: all are missing from it."""
        missing = dict.fromkeys(range(len(pursuit.view.replicas)), reason)
        pursuit.missing.update(missing)
        return Outcome([], missing, dict(details), self._loop.time())


def _quarantined(field: str, refusal: Refusal) -> Quarantined:
    seconds = max(1, ceil(round(refusal.seconds, 3)))
    which, it = "this query is", "it"
    if refusal.whole_shape:
        which, it = "queries of this structure are", "one of them"
    cause = refusal.cause.format(it)
    return Quarantined(field, f"{which} refused for {seconds} s, since {cause}", seconds)
