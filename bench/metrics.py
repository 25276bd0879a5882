"""Reading what a root exports on /metrics."""

from __future__ import annotations

from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families


def counter(text: str, name: str, label: str) -> dict[str, float]:
    """A counter's samples summed by one of its labels; empty if there is no such counter."""
    sums: defaultdict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{name}_total":
                sums[sample.labels.get(label, "")] += sample.value
    return dict(sums)
