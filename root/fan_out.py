"""One phase of a request sent to its shards: by which policy, on what terms, and what is learned.

Every phase of every request comes through here, so that all draw on one budget, and each is
compared with others of its class.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from random import Random
from typing import Final

import msgspec

from root import tracing
from root.budget import Budget
from root.config import Settings
from root.discovery import Fleet
from root.enough import Enough
from root.gather import Gather, Outcome
from root.hedging import MIN_SAMPLES, Off, Policy, Tied
from root.latency import Latency
from root.ledger import Ledger
from root.live import Live
from root.pace import Pace
from root.probation import Probation
from root.pursuit import Phase, Pursuit
from root.race import Terms
from root.requests import SearchRequest
from root.scatter import Ask, scatter
from root.topology import View

TIE_BYTES: Final = 16
"""Who knows a tie can have its legs dropped: nobody guesses so many random bytes."""


Class = tuple[str, str]
"""A collection and a class of its queries: what is cheap in one may be dear in another."""


class FanOut:
    """Sends phases. Owns what is learned of times, by collection and class of query."""

    def __init__(
        self,
        fleet: Fleet,
        settings: Settings,
        budget: Budget,
        ledger: Ledger,
        probation: Probation,
        live: Live,
    ) -> None:
        """What is given belongs to the whole root."""
        self.histories: dict[Class, Latency] = {}
        self.paces: dict[Class, Pace] = {}
        self._fleet = fleet
        self._settings = settings
        self._budget = budget
        self._ledger = ledger
        self._probation = probation
        self._live = live
        self._random = Random(f"{settings.seed}:replicas")

    def begin(self, view: View, now: float) -> None:
        """Prepare for a request that arrives now and is about this view."""
        self._budget.fit(len(view.replicas), view.collection)
        self._probation.look(self._fleet.replicas, now)

    def triggers(self) -> dict[Class, float]:
        """Return, by collection and query class, after how many seconds a query's only attempt is
        late by default.
        """
        policy = self._settings.policy(self._settings.hedge)
        alone = [(0, [channel.leaf for channel in self._fleet.channels.values()])]
        return {
            each: policy.delay_s(history, Gather(alone, policy, self.terms(each, 0.0), 0.0))
            for each, history in self.histories.items()
            if history.samples >= MIN_SAMPLES
        }

    async def gather(
        self,
        pursuit: Pursuit,
        kind: str,
        history: str,
        body: bytes,
        deadline_s: float,
        ordinals: Mapping[int, Sequence[int]] | None = None,
        enough: Enough | None = None,
        without: Container[int] = (),
    ) -> Outcome:
        """Ask shards, all of them but those ``without``, or the ones that ``ordinals`` names;
        note the phase, and return what came of it.

        ``kind`` is the ask's, ``history`` the class by which its times are learned, ``deadline_s``
        on the loop's clock.
        """
        view, request = pursuit.view, pursuit.request
        now = pursuit.phases[-1].outcome.decided_s if pursuit.phases else pursuit.arrived_s
        terms = self.terms((view.collection, history), now)
        policy = self.policy(request)
        if kind == "search" and request.priority != "batch":
            terms.probation = self._probation  # other times than most attempts' would not compare
        wanted: Iterable[int] = range(len(view.replicas)) if ordinals is None else ordinals
        shards = [(shard, view.replicas[shard]) for shard in wanted if shard not in without]
        gather = Gather(shards, policy, terms, deadline_s, enough)
        ask = Ask(
            *(kind, view.card.generation, body, deadline_s, request.priority, ordinals),
            query=pursuit.number,
            trace=tracing.outgoing(),
        )
        if isinstance(policy, Tied):
            ask = msgspec.structs.replace(ask, tie=secrets.token_hex(TIE_BYTES))
        outcome = await scatter(gather, ask, self._fleet)
        pursuit.note(Phase(kind, history, outcome, gather.attempts, now, gather.tally))
        if terms.probation is not None and self._settings.watch:
            self._live.fanned_out(pursuit.phases[-1], pursuit.number)
        return outcome

    def policy(self, request: SearchRequest) -> Policy:
        """Return when a request is hedged."""
        if request.priority == "batch":
            return Off()
        return self._settings.policy(request.hedge or self._settings.hedge)

    def terms(self, query_class: Class, now: float) -> Terms:
        """Return what the races of a gather of this class have in common."""
        if query_class not in self.histories:
            self.histories[query_class] = Latency(now)
            self.paces[query_class] = Pace()
        return Terms(
            self._random,
            self._budget,
            self._ledger,
            self.histories[query_class],
            self._settings.attempts_max,
            self.paces[query_class],
            collection=query_class[0],
        )
