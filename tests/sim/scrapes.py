"""What Prometheus would have seen of a root, or of a leaf, in virtual time; and its own tester.

``Scrapes`` records every sample of /metrics at a fixed interval, gaps included, and writes the
series in the notation of ``promtool test rules``.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

SCRAPE_S: Final = 15.0

RULES: Final = Path(__file__).parent.parent.parent / "docs" / "monitoring" / "hedgerow.rules.yml"


_FIRED: Final = re.compile(r'alertname=\\"(\w+)\\".*?time: (?:(\d+)m)?(?:([\d.]+)s)?,')
"""How promtool reports that an alert fires at a time, as Go writes durations."""


class Scrapes:
    """All samples of one instance, one every ``SCRAPE_S``."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._series: dict[str, list[float | None]] = {}
        self._taken = 0

    def take(self, exposition: str) -> None:
        """Record what /metrics says now; a series that is not there has a gap."""
        now = {
            self._name(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
        }
        for name in now:
            self._series.setdefault(name, [None] * self._taken)
        for name, values in self._series.items():
            values.append(now.get(name))
        self._taken += 1

    async def every_so_often(self, exposition: Callable[[], Any]) -> None:
        """Record until cancelled; ``exposition`` returns, or awaits, the text."""
        while True:
            self.take(await exposition())
            await asyncio.sleep(SCRAPE_S)

    def written(self) -> list[dict[str, str]]:
        """Return the series as promtool wants them."""
        return [
            {"series": name, "values": " ".join(map(_notation, values))}
            for name, values in self._series.items()
        ]

    def _name(self, name: str, labels: Mapping[str, str]) -> str:
        parts = {**labels, "instance": self._instance}
        inside = ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in parts.items())
        return f"{name}{{{inside}}}"


def _notation(value: float | None) -> str:
    if value is None:
        return "_"
    return repr(value) if math.isfinite(value) else {math.inf: "Inf", -math.inf: "-Inf"}[value]


def promtool() -> str:
    """Where promtool is; without it the test is skipped, where nobody insists on it."""
    found = shutil.which("promtool")
    if found is None and os.environ.get("CI"):
        pytest.fail("promtool is not installed (on Debian: apt install prometheus)")
    if found is None:
        pytest.skip("promtool is not installed (on Debian: apt install prometheus)")
    return found


def firing(scrapes: Sequence[Scrapes], alerts: Sequence[str], folder: Path) -> dict[str, list[int]]:
    """Return, for each alert, at which scrapes it fires, by promtool's own account.

    It is asked for the samples of ``ALERTS``, of which it says what it got instead of none.
    """
    tool, count = promtool(), max(scrape._taken for scrape in scrapes)
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": f"{SCRAPE_S:g}s",
        "tests": [
            {
                "interval": f"{SCRAPE_S:g}s",
                "input_series": [series for scrape in scrapes for series in scrape.written()],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                        "eval_time": f"{number * SCRAPE_S:g}s",
                        "exp_samples": [],
                    }
                    for alert in alerts
                    for number in range(count)
                ],
            }
        ],
    }
    path = folder / "rules_test.yml"
    path.write_bytes(orjson.dumps(test))  # JSON is YAML
    done = subprocess.run(
        [tool, "test", "rules", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    report = done.stdout + done.stderr
    fired: dict[str, list[int]] = {alert: [] for alert in alerts}
    for alert, minutes, seconds in _FIRED.findall(report):
        fired[alert].append(round((60.0 * float(minutes or 0) + float(seconds or 0)) / SCRAPE_S))
    if done.returncode and not any(fired.values()):
        pytest.fail(report)
    return fired
