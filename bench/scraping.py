"""What /metrics of a root and its one leaf say between two scrapes: what a monitoring system sees.

A counter says nothing by itself: all of this is about the time from one scrape to the next,
except for what is in flight, which is so at the later one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

Samples = Mapping[str, float]
"""By name, the labels of a sample left out: values of equal names added up; buckets of a
histogram by their bound in seconds, as ``name_bucket:0.5``."""

LAG: Final = "hedgerow_leaf_loop_lag_seconds"
BLOCKED: Final = "hedgerow_leaf_loop_blocked_seconds_total"
IN_FLIGHT: Final = "hedgerow_root_requests_in_flight"
SEEN: Final = "hedgerow_root_leaf_seen_seconds_total"
REPORTED: Final = "hedgerow_root_leaf_reported_seconds_total"
SERVICE: Final = "hedgerow_leaf_service_seconds"

RESOLUTION_S: Final = 1e-6
"""Of what leaves report: less than this is none."""


class Scrape(msgspec.Struct, frozen=True):
    """Both processes at an instant, in seconds of any one clock."""

    at_s: float
    root: dict[str, float]
    leaf: dict[str, float]


class Reading(msgspec.Struct, frozen=True):
    """From one scrape to the next, whose instant is ``at_s``.

    ``loop_lag_ms`` is the mean lateness of the leaf's event loop, ``blocked_share`` the share of
    the time for which it was later than its limit, ``seen_to_reported`` the time of legs as the
    root saw it over the time that the leaf reports. ``own_p95_ms`` and ``own_max_ms`` are of the
    clock that starts when the leaf begins to work: bounds of buckets, so up to twice too much.
    """

    at_s: float
    loop_lag_ms: float
    blocked_share: float
    in_flight: float
    seen_to_reported: float
    own_p95_ms: float
    own_max_ms: float


def parse(exposition: str) -> dict[str, float]:
    """The samples of a text, as ``Samples``."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            name = sample.name
            if bound := sample.labels.get("le"):
                name = f"{name}:{float(bound):g}"
            found[name] = found.get(name, 0.0) + sample.value
    return found


def between(before: Scrape, after: Scrape) -> Reading:
    """What has happened from one scrape to another."""
    root = _added(before.root, after.root)
    leaf = _added(before.leaf, after.leaf)
    own_p95_s, own_max_s = highest(leaf, SERVICE, (95.0, 100.0))
    return Reading(
        at_s=after.at_s,
        loop_lag_ms=1e3 * leaf[f"{LAG}_sum"] / max(leaf[f"{LAG}_count"], 1.0),
        blocked_share=leaf[BLOCKED] / (after.at_s - before.at_s),
        in_flight=after.root[IN_FLIGHT],
        seen_to_reported=root[SEEN] / max(root[REPORTED], RESOLUTION_S),
        own_p95_ms=own_p95_s * 1e3,
        own_max_ms=own_max_s * 1e3,
    )


def highest(added: Samples, histogram: str, percentiles: Sequence[float]) -> list[float]:
    """What so many per cent of the values of a histogram do not exceed, in seconds: bounds of
    buckets, 0 where there are no values.
    """
    prefix = f"{histogram}_bucket:"
    buckets = sorted(
        (float(name.removeprefix(prefix)), count)
        for name, count in added.items()
        if name.startswith(prefix)
    )
    total = buckets[-1][1] if buckets else 0.0
    return [
        next((bound for bound, count in buckets if count >= total * p / 100.0), math.inf)
        if total
        else 0.0
        for p in percentiles
    ]


def _added(before: Samples, after: Samples) -> dict[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
