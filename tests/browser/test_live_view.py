"""The live view in a real browser: a leaf goes, a leaf comes back, and who watches sees it."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from bench.fleet import Fleet
from tests.browser.chromium import PHONE
from tests.browser.conftest import Opened
from tests.browser.troubled import search

pytestmark = pytest.mark.live

SOON_MS: Final = 8000
"""A leaf that says nothing is given up after a second, and a view is told each second."""


def tile(page: Any, leaf: str, state: str = "") -> Any:
    """The tile of a leaf in the heat map, in that state."""
    wanted = f'[data-state="{state}"]' if state else ""
    return page.locator(f".leaf{wanted}", has=page.get_by_text(leaf, exact=True))


def test_a_stopped_leaf_is_seen_to_go_and_to_come_back(opened: Opened, fleet: Fleet) -> None:
    """By the buttons of the page; meanwhile searches stay whole, and the figures move."""
    page = opened("/#live")
    tile(page, "leaf2", "well").wait_for()
    assert page.locator(".leaf").count() == 4
    page.get_by_label("Ask ten times a second").check()
    page.get_by_role("button", name="Stop leaf2").click()
    tile(page, "leaf2", "lost").wait_for(timeout=SOON_MS)
    said = page.locator("#live-status")
    assert re.search(r"leaf2 is lost: .*silent", said.inner_text())
    assert search(fleet, "river")["coverage"]["complete"]
    page.get_by_role("button", name="Resume leaf2").click()
    tile(page, "leaf2", "well").wait_for(timeout=SOON_MS)
    assert "lost" not in said.inner_text()
    assert page.get_by_role("button", name="Stop leaf2").is_enabled()
    page.get_by_label("Ask ten times a second").uncheck()


def test_the_last_minute_is_in_figures(opened: Opened, fleet: Fleet) -> None:
    """The table, the distribution and the budget of what has just been asked."""
    for _ in range(20):
        search(fleet, "otter")
    page = opened("/#live")
    rows = page.locator(".tail tbody tr")
    expect(rows.locator("td").first).to_have_text(re.compile(r"\d"))
    names = rows.locator("th").all_inner_texts()
    assert names == ["one random leaf", "95 % of leaves", "100 % of leaves"]
    figures = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in rows.all()]
    assert all(row == sorted(row) for row in figures)
    assert all(above <= below for above, below in zip(figures[0], figures[2], strict=True))
    plot = page.locator(".plot").get_attribute("aria-label")
    assert re.match(r"\d+ requests: half within [\d.]+ ms", plot)
    assert page.locator(".column").count() >= 1
    assert "5.0 % allowed" in page.locator(".strip").get_attribute("aria-label")


def test_a_view_that_is_left_is_not_told_any_more(opened: Opened, fleet: Fleet) -> None:
    """Going back to the search view ends the stream; in the live view again, it goes on."""
    page = opened("/#live", size=PHONE)
    page.wait_for_selector(".leaf")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/live")):
        page.get_by_role("link", name="Search", exact=True).click()
    page.wait_for_selector("#search-view:not([hidden])")
    page.get_by_role("link", name="Live", exact=True).click()
    tile(page, "leaf0", "well").wait_for()


STREAM: Final = """snapshot => {
  window.EventSource = class {
    constructor() { setTimeout(() => this.onmessage({data: snapshot})); }
    close() {}
  };
  location.hash = '#live';
}"""


def told(opened: Opened, fleet: Fleet, *said: dict[str, Any]) -> Any:
    """The live view of one who is told a single snapshot, with leaves that are said to be so."""
    with urllib.request.urlopen(f"{fleet.root_url}/live", timeout=10) as answer:
        snapshot = json.load(answer)
    leaves = [leaf | so for leaf, so in zip(snapshot["leaves"], said, strict=True)]
    page = opened("/")
    page.evaluate(STREAM, json.dumps(snapshot | {"leaves": leaves}))
    return page


@pytest.mark.parametrize(
    ("leaf", "sentence", "heat"),
    [
        (
            {"state": "probation", "latency_ms": 64.0, "legs": 300},
            "leaf0 is on probation: 64.0 ms a leg, 32 times the fleet's median.",
            "3",
        ),
        ({"state": "probation", "latency_ms": 3.0, "legs": 30}, "1.5 times the fleet's", "1"),
        ({"state": "probation", "latency_ms": 64.0, "legs": 3}, "leaf0 is on probation. It", "0"),
        ({"latency_ms": 64.0, "legs": 20}, "leaf0 is slow: 64.0 ms a leg, 32 times", "3"),
        ({"latency_ms": 64.0, "legs": 19}, "none stands out", "0"),
        ({"latency_ms": 5.9, "legs": 300}, "none stands out", "1"),
    ],
)
def test_who_is_slow_or_on_probation_is_said(
    opened: Opened, fleet: Fleet, leaf: dict[str, Any], sentence: str, heat: str
) -> None:
    """In words; of a leaf that has been asked too little, nobody knows how slow it is."""
    search(fleet, "reed")
    well = {"state": "well", "latency_ms": 2.0, "legs": 300}
    page = told(opened, fleet, well | leaf, well, well, well)
    expect(page.locator("#live-status")).to_contain_text(sentence)
    assert tile(page, "leaf0").get_attribute("data-heat") == heat


def test_a_leaf_without_traffic_accuses_nobody(opened: Opened, fleet: Fleet) -> None:
    """Where nobody has asked for a minute, old times are not held against a leaf."""
    old = {"state": "well", "latency_ms": 2.0, "legs": 0}
    page = told(opened, fleet, old | {"latency_ms": 640.0}, old, old, old)
    expect(page.locator("#live-status")).to_contain_text("All leaves are well")


def test_a_root_that_is_away_is_said(opened: Opened) -> None:
    """The figures are not to be taken for those of now."""
    page = opened("/#live")
    page.wait_for_selector(".leaf")
    page.evaluate("location.hash = '#search'")
    page.route("**/live", lambda route: route.fulfill(status=204))
    page.evaluate("location.hash = '#live'")
    expect(page.locator("#live-status")).to_have_text(re.compile("^No word from the root"))
