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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

SCRAPE_S: Final = 15.0

RULES: Final = Path(__file__).parent.parent.parent / "docs" / "monitoring" / "hedgerow.rules.yml"


_GOT: Final = re.compile(r'expr: ("(?:[^"\\]|\\.)*"), time: (?:(\d+)m)?(?:([\d.]+)s)?,')
"""How promtool reports that an expression gives something at a time, as Go writes both."""


class Scrapes:
    """All samples of one instance, one every ``SCRAPE_S``."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._series: dict[str, list[float | None]] = {}
        self.taken = 0

    def take(self, exposition: str) -> None:
        """Record what /metrics says now; a series that is not there has a gap."""
        now = {
            self._name(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
        }
        for name in now:
            self._series.setdefault(name, [None] * self.taken)
        for name, values in self._series.items():
            values.append(now.get(name))
        self.taken += 1

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
    if found is None and os.environ.get("EVERY_TEST") == "required":
        pytest.fail("promtool is not installed (on Debian: apt install prometheus)")
    if found is None:
        pytest.skip("promtool is not installed (on Debian: apt install prometheus)")
    return found


def firing(scrapes: Sequence[Scrapes], alerts: Sequence[str], folder: Path) -> dict[str, list[int]]:
    """Return, for each alert, at which scrapes it fires."""
    of_alert = {
        f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})': alert for alert in alerts
    }
    count = max(scrape.taken for scrape in scrapes)
    found = answered(scrapes, list(of_alert), range(count), folder)
    return {alert: found[expression] for expression, alert in of_alert.items()}


def answered(
    scrapes: Sequence[Scrapes], expressions: Sequence[str], numbers: Iterable[int], folder: Path
) -> dict[str, list[int]]:
    """Return, for each expression, at which scrapes it has a result, by promtool's own account.

    It is told to expect nothing, of anything at any time, and says where it got something.
    """
    tool = promtool()
    expected = [
        {"expr": expression, "eval_time": f"{number * SCRAPE_S:g}s", "exp_samples": []}
        for number in numbers
        for expression in expressions
    ]
    test = {
        "interval": f"{SCRAPE_S:g}s",
        "input_series": [series for scrape in scrapes for series in scrape.written()],
        "promql_expr_test": expected,
    }
    whole = {
        "rule_files": [str(RULES)],
        "evaluation_interval": f"{SCRAPE_S:g}s",
        "tests": [test],
    }
    path = folder / "rules_test.yml"
    path.write_bytes(orjson.dumps(whole))  # JSON is YAML
    done = subprocess.run(
        [tool, "test", "rules", str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    report = done.stdout + done.stderr
    found: dict[str, list[int]] = {expression: [] for expression in expressions}
    for quoted, minutes, seconds in _GOT.findall(report):
        at_s = 60.0 * float(minutes or 0) + float(seconds or 0)
        found[orjson.loads(quoted)].append(round(at_s / SCRAPE_S))
    if done.returncode and not any(found.values()):
        pytest.fail(report)
    return found
