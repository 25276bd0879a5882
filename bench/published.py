"""The figures to reproduce or beat, as they were published, each with where.

Latencies are in milliseconds, shares of one, unless a name says otherwise. Nothing here is
ours: every experiment that compares takes its figures from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Row = Mapping[str, float]
"""Figures by what they are of: ``p99``, ``rate_per_s``, ..."""


@dataclass(frozen=True, slots=True)
class Published:
    """One set of figures: ``rows[which][what]``."""

    source: str
    rows: Mapping[str, Row]
    note: str = ""
    """What the source leaves open, or how its figures were taken."""

    def figure(self, row: str, name: str) -> float | None:
        """One figure; None where the source has none for that."""
        return self.rows.get(row, {}).get(name)


TAIL_AT_SCALE: Final = "J. Dean, L. A. Barroso, The Tail at Scale, CACM 56(2), 2013"

LEAVES_IN_A_FAN_OUT: Final = Published(
    f"{TAIL_AT_SCALE}, Table 1",
    {
        "one_leaf": {"p50": 1, "p95": 5, "p99": 10},
        "95_percent": {"p50": 12, "p95": 32, "p99": 70},
        "100_percent": {"p50": 40, "p95": 87, "p99": 140},
    },
    "fan-out, load and sample size are not published",
)
"""How long one random leaf takes, and how long until 95 % and 100 % of the leaves have finished."""

BIGTABLE: Final = Published(
    f"{TAIL_AT_SCALE}, the BigTable benchmark",
    {"off": {"p99.9": 1800}, "fixed": {"p99.9": 74, "extra_load": 0.02}},
    "1,000 keys spread over 100 servers, a hedge after 10 ms, time until all values are read",
)

BIGTABLE_HEDGE_MS: Final = 10.0

TIED_IDLE: Final = Published(
    f"{TAIL_AT_SCALE}, Table 2, mostly idle cluster",
    {
        "off": {"p50": 19, "p90": 38, "p99": 67, "p99.9": 98},
        "tied": {"p50": 16, "p90": 29, "p99": 42, "p99.9": 61},
    },
    "uncached reads with 3 replicas, the second copy after 1 ms",
)

TIED_BESIDE_A_SORT: Final = Published(
    f"{TAIL_AT_SCALE}, Table 2, with a concurrent sort",
    {
        "off": {"p50": 24, "p90": 56, "p99": 108, "p99.9": 159},
        "tied": {"p50": 19, "p90": 38, "p99": 67, "p99.9": 108},
    },
    TIED_IDLE.note,
)

TIED_EXTRA_WORK_MAX: Final = 0.01
"""What tied copies cost the disks there: less than one read in a hundred is done twice."""

_READS: Final = ("rate_per_s", "p80", "p95", "p99", "p99.95", "p99.99")

MIRRORED_READS: Final = Published(
    "Liu Changwei, hedged reads in RAID1 read balancing",
    {
        "one_reader": dict(zip(_READS, (103, 12, 16.4, 21.1, 34.1, 51.2), strict=True)),
        "one_reader_hedged": dict(zip(_READS, (104, 12, 16.3, 20.9, 33.8, 53.6), strict=True)),
        "sixteen": dict(zip(_READS, (114, 200, 314, 462, 652, 719), strict=True)),
        "sixteen_hedged": dict(zip(_READS, (116, 198, 305, 439, 616, 665), strict=True)),
        "pressure": dict(zip(_READS, (74, 325, 649, 991, 1460, 1619), strict=True)),
        "pressure_hedged": dict(zip(_READS, (71, 327, 634, 811, 1085, 1173), strict=True)),
    },
    "4 KiB reads; one reader, or 16 in flight; pressure: one of the two disks is read by "
    "others for 10 % of the time",
)

TOGETHER: Final = Published(
    "Hedged requests with a reactive client: three copies at once, the first answer wins",
    {
        "off": {"mean_s_min": 2.5, "mean_s_max": 3.0, "p95_s": 4.5},
        "together": {"mean_s_min": 2.0, "mean_s_max": 2.5, "improvement": 0.20, "copies": 3},
    },
    "a request takes the larger of two whole seconds from 0 to 4; load rises from 5 to 50 "
    "requests/s within 30 s and stays there for 30 s",
)

FAN_OUT: Final = Published(
    f"{TAIL_AT_SCALE}, and an article on hedged requests",
    {
        "10": {"leg_slow": 0.01, "slow": 0.0956},
        "100": {"leg_slow": 0.01, "slow": 0.634},
        "2000": {"leg_slow": 0.0001, "slow": 0.18},
    },
    "by the number of leaves: the share of requests that are slow where so many legs are",
)

BLIND_SPOT: Final = Published(
    "Measurement of a server's default metrics while its event loop is blocked",
    {
        "client": {"rate_per_s": 148, "p50": 305.0, "p95": 599.9},
        "server_before": {"max": 13.901667},
        "server_during": {"max": 13.901667},
        "loop_lag": {"idle": 0.0, "blocked": 205.627917, "probe_period": 100},
        "in_flight": {"before": 0, "during": 4},
        "blocked_warning_after": {"default": 2000, "recommended": 200},
    },
    "each request on one route blocks the loop for 300 ms, while another route is loaded",
)

COORDINATED_OMISSION: Final = Published(
    "wrk2, README: one run read with and without correction for coordinated omission",
    {
        "stall": {"stall": 1400, "p99_corrected": 1270},
        "quiet": {"p99_corrected": 10.52, "p99_uncorrected": 5.43},
    },
    "a closed loop asks nothing while it waits, and so sees a stall once",
)
