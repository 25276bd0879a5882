"""Reading what a root exports on /metrics."""

from __future__ import annotations

from collections import Counter
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

FATES: Final = ("won", "lost", "cancelled", "failed")
"""How an attempt ends, once and for all."""


def counters(text: str, name: str, label: str) -> dict[str, float]:
    """A counter's samples summed by one of its labels; empty if there is no such counter."""
    sums: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{name}_total":
                sums[sample.labels.get(label, "")] += sample.value
    return dict(sums)
