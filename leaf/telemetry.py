"""What a leaf counts, and how it is exported.

Everything is counted on the event loop, in plain integers: a metric object with a lock
would cost more than the leg it counts. Prometheus reads them through one collector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from leaf.admission import Depth
from leaf.durations import Histogram
from leaf.protocol import Kind, RefusalReason
from leaf.pulse import Pulse

Outcome = (
    RefusalReason
    | Literal[
        "answered",
        "cancelled_running",  # cancelled after work had begun: its service time is wasted
        "abandoned_queued",  # the connection was lost while the leg waited
        "abandoned_running",  # ... or while it was worked on, or its answer was on the way
    ]
)


class Ledger:
    """The counts of one leaf. Written and read on the event loop."""

    def __init__(self, pulse: Pulse) -> None:
        self.pulse = pulse
        self.legs: Counter[tuple[Kind, Outcome]] = Counter()
        self.queue = Histogram()
        self.service = Histogram()
        self.wasted_us = 0
        self.frames: Counter[str] = Counter()
        self.frame_bytes: Counter[str] = Counter()
        self.dropped_channels = 0
        self.begun: Counter[Literal["told", "unsaid", "heard"]] = Counter()

    def answered(self, kind: Kind, replies: Sequence[Sequence[Any]], *, heard: bool) -> None:
        """Count answers; ``heard`` is False when the connection they were for is gone."""
        self.legs[kind, "answered" if heard else "abandoned_running"] += len(replies)
        queues, services = self.queue.counts, self.service.counts
        queued_us = served_us = 0
        # Histogram.add written out: this is on the path of every leg.
        for reply in replies:
            queue_us, service_us = reply[1], reply[2]
            queues[queue_us.bit_length()] += 1
            services[service_us.bit_length()] += 1
            queued_us += queue_us
            served_us += service_us
        self.queue.sum_us += queued_us
        self.service.sum_us += served_us
        if not heard:
            self.wasted_us += served_us

    def refused(self, kind: Kind, replies: Iterable[Sequence[Any]], *, heard: bool = True) -> None:
        """Count refusals, as they go over the wire; ``heard`` as for answers."""
        for _, queue_us, service_us, reason, *_ in replies:
            began = reason == "cancelled" and service_us > 0
            self.legs[kind, self._fate(reason, began=began, heard=heard)] += 1
            self.queue.add(queue_us)
            if began:
                self.service.add(service_us)
                self.wasted_us += service_us

    @staticmethod
    def _fate(reason: RefusalReason, *, began: bool, heard: bool) -> Outcome:
        if reason != "cancelled" or (heard and not began):
            return reason
        if heard:
            return "cancelled_running"
        return "abandoned_running" if began else "abandoned_queued"

    def abandoned(self, kind: Kind, legs: int) -> None:
        """Count legs that left the queue because their connection was lost."""
        self.legs[kind, "abandoned_queued"] += legs

    def frame(self, direction: Literal["in", "out"], length: int) -> None:
        """Count one frame of the channel."""
        self.frames[direction] += 1
        self.frame_bytes[direction] += length


class Uncounted(Ledger):
    """Counts nothing on the path of a leg: for a leaf whose metrics nobody is to read."""

    def answered(self, kind: Kind, replies: Sequence[Sequence[Any]], *, heard: bool) -> None:
        """Nothing."""

    def refused(self, kind: Kind, replies: Iterable[Sequence[Any]], *, heard: bool = True) -> None:
        """Nothing."""

    def abandoned(self, kind: Kind, legs: int) -> None:
        """Nothing."""

    def frame(self, direction: Literal["in", "out"], length: int) -> None:
        """Nothing."""


class Gauges(Protocol):
    """What the collector reads besides the ledger: the state of the leaf at this moment."""

    def depth(self) -> Depth:
        """Return how full the queue is."""

    def connections(self) -> int:
        """Return how many roots are connected."""

    def troubled(self) -> bool:
        """Return whether trouble is injected."""

    def held(self) -> Iterable[tuple[str, str, int, int, int]]:
        """Return (collection, generation, shards, refused shards, documents) of what is held."""


class LeafCollector:
    """Turns a ledger and gauges into metric families when Prometheus asks."""

    def __init__(self, ledger: Ledger, gauges: Gauges) -> None:
        self._ledger = ledger
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family."""
        yield from self._legs()
        yield from self._traffic()
        yield from self._pulse()
        yield from self._state()

    def _legs(self) -> Iterator[Metric]:
        ledger = self._ledger
        legs = CounterMetricFamily(
            "hedgerow_leaf_legs", "Legs by kind and outcome.", labels=["kind", "outcome"]
        )
        for (kind, outcome), count in sorted(ledger.legs.items()):
            legs.add_metric([kind, outcome], count)
        yield legs
        yield CounterMetricFamily(
            "hedgerow_leaf_wasted_seconds",
            "Service time spent on legs that nobody waited for any more.",
            value=ledger.wasted_us / 1e6,
        )
        yield HistogramMetricFamily(
            "hedgerow_leaf_queue_seconds",
            "Time a leg waited in the queue.",
            **ledger.queue.exported(),
        )
        yield HistogramMetricFamily(
            "hedgerow_leaf_service_seconds",
            "Time a leg was worked on.",
            **ledger.service.exported(),
        )

    def _traffic(self) -> Iterator[Metric]:
        ledger = self._ledger
        frames = CounterMetricFamily(
            "hedgerow_leaf_frames", "Frames of the channel.", labels=["direction"]
        )
        frame_bytes = CounterMetricFamily(
            "hedgerow_leaf_frame_bytes", "Bytes of the channel's frames.", labels=["direction"]
        )
        for direction in ("in", "out"):
            frames.add_metric([direction], ledger.frames[direction])
            frame_bytes.add_metric([direction], ledger.frame_bytes[direction])
        yield frames
        yield frame_bytes
        yield CounterMetricFamily(
            "hedgerow_leaf_dropped_channels",
            "Connections ended because the root did not read its answers.",
            value=ledger.dropped_channels,
        )
        begun = CounterMetricFamily(
            "hedgerow_leaf_begun_notices",
            "Notices between leaves that a tied leg has begun; unsaid where a peer was not there.",
            labels=["way"],
        )
        for way in ("told", "unsaid", "heard"):
            begun.add_metric([way], ledger.begun[way])
        yield begun

    def _pulse(self) -> Iterator[Metric]:
        pulse = self._ledger.pulse
        yield HistogramMetricFamily(
            "hedgerow_leaf_loop_lag_seconds",
            "How late the event loop came to a timer of its own.",
            **pulse.lag.exported(),
        )
        yield CounterMetricFamily(
            "hedgerow_leaf_loop_blocked_seconds",
            "Time for which the event loop was later than the limit.",
            value=pulse.blocked_s,
        )
        yield HistogramMetricFamily(
            "hedgerow_leaf_gc_pause_seconds",
            "Time for which the garbage collector stopped everything.",
            **pulse.pauses.exported(),
        )

    def _state(self) -> Iterator[Metric]:
        gauges = self._gauges
        depth = gauges.depth()
        legs = GaugeMetricFamily(
            "hedgerow_leaf_queue_legs", "Legs that wait, by priority.", labels=["priority"]
        )
        legs.add_metric(["interactive"], depth.interactive)
        legs.add_metric(["batch"], depth.batch)
        yield legs
        yield GaugeMetricFamily(
            "hedgerow_leaf_running_legs", "Legs taken by a worker.", value=depth.running
        )
        yield GaugeMetricFamily(
            "hedgerow_leaf_connections", "Roots connected.", value=gauges.connections()
        )
        yield GaugeMetricFamily(
            "hedgerow_leaf_interference",
            "1 while trouble is injected on purpose.",
            value=gauges.troubled(),
        )
        shards = GaugeMetricFamily(
            "hedgerow_leaf_shards", "Shards held.", labels=["collection", "generation", "state"]
        )
        documents = GaugeMetricFamily(
            "hedgerow_leaf_documents", "Documents held.", labels=["collection", "generation"]
        )
        for collection, generation, served, refused, count in gauges.held():
            shards.add_metric([collection, generation, "served"], served)
            shards.add_metric([collection, generation, "refused"], refused)
            documents.add_metric([collection, generation], count)
        yield shards
        yield documents


def registry_of(ledger: Ledger, gauges: Gauges) -> CollectorRegistry:
    """Return a registry of one leaf's metrics: its own, so that several fit in a process."""
    registry = CollectorRegistry()
    registry.register(LeafCollector(ledger, gauges))
    return registry
