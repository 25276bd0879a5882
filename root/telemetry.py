"""What a root counts, and how it is exported.

What concerns every leg is counted in plain integers where it happens (``root.race.Ledger``,
``root.channel``) and read by one collector when Prometheus asks: a metric object with a lock
would cost more than the race it counts. What concerns a request uses the library's own
histogram: its clock starts when the request arrives, not when work on it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from leaf.pulse import Pulse
from root.discovery import Fleet
from root.hedging import NEVER_S
from root.search import Searches

BUCKETS_S: Final = (
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05,
    0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 60.0,
)  # fmt: skip
"""Fine where a search on one machine ends, coarse up to the longest timeout."""

BEAT_S: Final = 0.1
"""How often the loop measures its own lateness."""


class Telemetry:
    """The metrics of one root process."""

    def __init__(self, fleet: Fleet, searches: Searches, pulse: Pulse) -> None:
        """Register everything in a registry of its own."""
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "hedgerow_root_requests",
            "Requests by route and HTTP status.",
            ["route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "hedgerow_root_request_seconds",
            "From the arrival of a request to its answer.",
            ["route"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "hedgerow_root_requests_in_flight", "Requests in work.", registry=self.registry
        )
        self.rejections = Counter(
            "hedgerow_root_rejections",
            "Requests that got an error instead of an answer, by what was wrong.",
            ["route", "reason"],
            registry=self.registry,
        )
        self.partial = Counter(
            "hedgerow_root_partial_answers",
            "Answers in which a shard was missing.",
            registry=self.registry,
        )
        self.pulse = pulse
        self.registry.register(_Collector(fleet, searches))
        self.registry.register(_PulseCollector(pulse))

    def in_work(self, requests: int) -> None:
        """So many requests are in work."""
        self.in_flight.set(requests)

    def rejected(self, route: str, reason: str) -> None:
        """A request got an error instead of an answer."""
        self.rejections.labels(route, reason).inc()

    def answered_in_part(self) -> None:
        """A shard was missing in an answer."""
        self.partial.inc()

    def ended(self, route: str, status: int) -> None:
        """A request is over."""
        self.requests.labels(route, str(status)).inc()

    def took(self, route: str, seconds: float) -> None:
        """A request took so long from its arrival to its answer."""
        self.seconds.labels(route).observe(seconds)

    async def keep_time(self) -> None:
        """Measure the lateness of the event loop until cancelled."""
        while True:
            self.pulse.expect(BEAT_S)
            await asyncio.sleep(BEAT_S)
            self.pulse.beat()


class Unwatched(Telemetry):
    """Counts no request: for a root whose metrics nobody is to read."""

    def in_work(self, requests: int) -> None:
        """Nothing."""

    def rejected(self, route: str, reason: str) -> None:
        """Nothing."""

    def answered_in_part(self) -> None:
        """Nothing."""

    def ended(self, route: str, status: int) -> None:
        """Nothing."""

    def took(self, route: str, seconds: float) -> None:
        """Nothing."""


class _PulseCollector:
    """Reads how the process is doing."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        pulse = self._pulse
        yield HistogramMetricFamily(
            "hedgerow_root_loop_lag_seconds",
            "How late the event loop came to a timer of its own.",
            **pulse.lag.exported(),
        )
        yield CounterMetricFamily(
            "hedgerow_root_loop_blocked_seconds",
            "Time for which the event loop was later than the limit.",
            value=pulse.blocked_s,
        )
        yield HistogramMetricFamily(
            "hedgerow_root_gc_pause_seconds",
            "Time for which the garbage collector stopped everything.",
            **pulse.pauses.exported(),
        )


class _Collector:
    """Reads the plain counters of races, budget and channels."""

    def __init__(self, fleet: Fleet, searches: Searches) -> None:
        self._fleet = fleet
        self._searches = searches

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        yield from self._attempts()
        yield from self._hedging()
        yield from self._canaries()
        yield self._resting()
        yield from self._index()
        yield from self._leaves()

    def _attempts(self) -> Iterator[Metric]:
        ledger = self._searches.ledger
        sent = CounterMetricFamily(
            "hedgerow_attempts_sent", "Attempts sent, by kind.", labels=["kind"]
        )
        for kind, count in ledger.sent.items():
            sent.add_metric([kind], count)
        ended = CounterMetricFamily(
            "hedgerow_attempts_ended",
            "Attempts ended, by fate; sent = won + lost + cancelled + failed + in flight.",
            labels=["fate"],
        )
        for fate, count in ledger.ended.items():
            ended.add_metric([fate], count)
        failures = CounterMetricFamily(
            "hedgerow_attempt_failures", "Failed attempts by reason.", labels=["reason"]
        )
        for reason, count in ledger.failures.items():
            failures.add_metric([reason], count)
        yield from (sent, ended, failures)
        yield GaugeMetricFamily(
            "hedgerow_attempts_in_flight",
            "Attempts whose leaf still owes an end, cancelled ones included.",
            value=ledger.in_flight,
        )

    def _hedging(self) -> Iterator[Metric]:
        searches, ledger = self._searches, self._searches.ledger
        now = asyncio.get_running_loop().time()
        yield CounterMetricFamily(
            "hedgerow_hedge_wins", "Hedges that answered first.", value=ledger.hedge_wins
        )
        yield CounterMetricFamily(
            "hedgerow_hedges_denied",
            "Legs denied a hedge or failover by an empty budget.",
            value=ledger.denied,
        )
        yield CounterMetricFamily(
            "hedgerow_hedges_without_candidate",
            "Hedges or failovers for which no untried replica was connected.",
            value=ledger.no_candidate,
        )
        yield CounterMetricFamily(
            "hedgerow_hedges_crowded",
            "Hedges not sent because too many recent queries had hedged their shard.",
            value=ledger.crowded,
        )
        yield CounterMetricFamily(
            "hedgerow_tied_dropped",
            "Tied copies that left a queue unstarted because the other one had begun.",
            value=ledger.tied_dropped,
        )
        yield CounterMetricFamily(
            "hedgerow_tied_duplicates",
            "Tied copies that were worked on although the other one was.",
            value=ledger.tied_duplicates,
        )
        yield CounterMetricFamily(
            "hedgerow_wasted_service_seconds",
            "Work that leaves did for attempts that were not needed any more.",
            value=ledger.wasted_service_us / 1e6,
        )
        yield CounterMetricFamily(
            "hedgerow_hedge_saved_seconds",
            "How much later legs would have been answered without their hedges, at least.",
            value=ledger.saved_s,
        )
        yield GaugeMetricFamily(
            "hedgerow_budget_tokens",
            "Extra attempts that the budget would allow now.",
            value=searches.budget.level(now),
        )
        trigger = GaugeMetricFamily(
            "hedgerow_hedge_trigger_seconds",
            "After how long an attempt of a query class counts as late by the default policy.",
            labels=["collection", "query_class"],
        )
        for of, delay_s in searches.fan_out.triggers().items():
            if delay_s < NEVER_S:
                trigger.add_metric(of, delay_s)
        yield trigger
        yield from self._rehearsal()

    def _rehearsal(self) -> Iterator[Metric]:
        rehearsal = self._searches.rehearsal
        yield CounterMetricFamily(
            "hedgerow_shadow_requests",
            "Requests of the policy shadow that were rehearsed.",
            value=rehearsal.requests,
        )
        extra = CounterMetricFamily(
            "hedgerow_shadow_extra_attempts",
            "Hedges that adaptive would have sent for them, by its budget.",
            labels=["max_extra_load"],
        )
        for arm in rehearsal.arms:
            extra.add_metric([f"{arm.max_extra_load:g}"], arm.extra)
        yield extra

    def _canaries(self) -> Iterator[Metric]:
        shapes = self._searches.trials.shapes
        yield CounterMetricFamily(
            "hedgerow_canaries_sent",
            "Shards asked before the others, for a query that might do harm.",
            value=shapes.canaries,
        )
        yield GaugeMetricFamily(
            "hedgerow_quarantines",
            "Shapes and queries that are refused now.",
            value=shapes.quarantined(asyncio.get_running_loop().time()),
        )
        yield CounterMetricFamily(
            "hedgerow_queries_quarantined",
            "Queries refused because ones like them ended or held up a leaf.",
            value=shapes.refused,
        )

    def _resting(self) -> Metric:
        budget, now = self._searches.budget, asyncio.get_running_loop().time()
        resting = GaugeMetricFamily(
            "hedgerow_hedging_resting",
            "1 while hedging rests for this reason.",
            labels=["reason"],
        )
        resting.add_metric(["push_back"], float(budget.pushed_back(now)))
        resting.add_metric(["errors"], float(budget.failing(now)))
        return resting

    def _index(self) -> Iterator[Metric]:
        uncovered = GaugeMetricFamily(
            "hedgerow_root_shards_uncovered",
            "Shards of the generation in use without a connected leaf.",
            labels=["collection"],
        )
        for collection, view in self._fleet.in_use.items():
            uncovered.add_metric([collection], len(view.uncovered))
        yield uncovered
        documents = GaugeMetricFamily(
            "hedgerow_root_generation_documents",
            "Documents of each generation that leaves hold; those of the one in use are searched.",
            labels=["collection", "generation", "in_use"],
        )
        for collection, views in self._fleet.views.items():
            for name, view in views.items():
                in_use = "true" if view is self._fleet.view(collection) else "false"
                documents.add_metric([collection, name, in_use], view.documents)
        yield documents

    def _leaves(self) -> Iterator[Metric]:
        connected = GaugeMetricFamily(
            "hedgerow_root_leaf_connected",
            "1 if the channel to the leaf is up and the leaf holds something.",
            labels=["leaf"],
        )
        probation = GaugeMetricFamily(
            "hedgerow_root_leaf_on_probation",
            "1 if the leaf is slower than its peers and gets nothing but probes.",
            labels=["leaf"],
        )
        outstanding = GaugeMetricFamily(
            "hedgerow_root_leaf_outstanding", "Legs that the leaf has not ended.", labels=["leaf"]
        )
        latency = GaugeMetricFamily(
            "hedgerow_root_leaf_latency_seconds", "Smoothed time of a leg.", labels=["leaf"]
        )
        ratio = GaugeMetricFamily(
            "hedgerow_root_leaf_seen_to_reported_ratio",
            "Time of legs as the root saw it over queue and service time as the leaf reports it.",
            labels=["leaf"],
        )
        seen = CounterMetricFamily(
            "hedgerow_root_leaf_seen_seconds", "Time of legs as the root saw it.", labels=["leaf"]
        )
        reported = CounterMetricFamily(
            "hedgerow_root_leaf_reported_seconds",
            "Queue and service time of legs as the leaf reports it.",
            labels=["leaf"],
        )
        frames = CounterMetricFamily(
            "hedgerow_channel_frames", "Frames by leaf and direction.", labels=["leaf", "direction"]
        )
        for url, channel in self._fleet.channels.items():
            connected.add_metric([url], float(channel.leaf.connected))
            probation.add_metric([url], float(channel.leaf.trial is not None))
            outstanding.add_metric([url], channel.owed)
            latency.add_metric([url], channel.leaf.latency_s)
            seen.add_metric([url], channel.seen_s)
            reported.add_metric([url], channel.reported_us / 1e6)
            if channel.reported_us:
                ratio.add_metric([url], channel.seen_s * 1e6 / channel.reported_us)
            frames.add_metric([url, "sent"], channel.frames_sent)
            frames.add_metric([url, "received"], channel.frames_received)
        yield from (connected, probation, outstanding, latency, seen, reported, ratio, frames)
