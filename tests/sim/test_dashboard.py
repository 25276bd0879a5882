"""Every query of the dashboard finds what it asks for in what root and leaves really export."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
from prometheus_client import generate_latest

from bench.simulation.scripted import Deed, Leg, takes
from leaf.pulse import Pulse
from leaf.telemetry import Ledger, registry_of
from root.config import Settings
from tests.sim.scrapes import SCRAPE_S, Scrapes, answered
from tests.sim.serving import PLENTY, WORK_S, Served, served
from tests.sim.test_alerts import IdleGauges

DASHBOARD: Final = Path(__file__).parent.parent.parent / "docs" / "monitoring" / "dashboard.json"

RATE_INTERVAL: Final = "1m"
"""What Grafana would put in at this rate of scrapes."""

SCRAPES: Final = 9


@cache
def dashboard() -> Any:
    """The file."""
    return orjson.loads(DASHBOARD.read_bytes())


def queries() -> list[str]:
    """Every query of every panel, as Prometheus gets it."""
    return [
        target["expr"].replace("$__rate_interval", RATE_INTERVAL)
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    ]


def of_a_leaf() -> Scrapes:
    """The metrics of a leaf that has answered, and whose collector has run."""
    scrapes = Scrapes("leaf0:8081")
    ledger = Ledger(Pulse())
    registry = registry_of(ledger, IdleGauges())
    for _ in range(SCRAPES):
        ledger.answered("search", [(0, 5, 10, 1, [1.0], [1])], heard=False)
        ledger.pulse.lag.add(100)
        ledger.pulse.paused(0.001)
        scrapes.take(generate_latest(registry).decode())
    return scrapes


def of_a_root() -> Scrapes:
    """The metrics of a root of which all kinds of requests were asked."""
    scrapes = Scrapes("root:8080")
    slow = takes(0.1)

    def primaries_are_slow(leg: Leg) -> Deed:
        return slow(leg) if leg.attempt.kind == "primary" else Deed(WORK_S)

    async def body(serving: Served) -> None:
        for _ in range(50):
            await serving.client.get("/search?q=a")
        for leaf in serving.fleet.leaves:
            leaf.script = primaries_are_slow
        for _ in range(SCRAPES):
            for target in ("/search?q=a&hedge=fixed", "/search?q=a&hedge=tied", "/search?k=0"):
                await serving.client.get(target)
            scrapes.take((await serving.client.get("/metrics")).body.decode())
            await asyncio.sleep(SCRAPE_S)

    served(body, Settings(budget=PLENTY, canary=False))
    return scrapes


def test_every_query_of_the_dashboard_finds_something(tmp_path: Path) -> None:
    """No name is misspelt, no label is missing, and Prometheus can read every expression."""
    found = answered([of_a_root(), of_a_leaf()], queries(), [SCRAPES - 1], tmp_path)
    assert not [query for query, at in found.items() if not at]


def test_a_query_for_what_is_not_exported_would_be_seen(tmp_path: Path) -> None:
    """The check itself can fail."""
    query = "sum(hedgerow_root_requests_lost)"
    assert answered([of_a_leaf()], [query], [SCRAPES - 1], tmp_path) == {query: []}


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    """Grafana would shuffle them; and each has a title."""
    panels = dashboard()["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] for panel in panels)
