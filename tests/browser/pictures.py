"""``python -m tests.browser.pictures FOLDER``: pictures of both views, of a real fleet.

The documentation of this Python in sixteen shards on four leaves, one of which is slow.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

from bench import corpus
from bench.fleet import Fleet
from tests.browser.chromium import DESKTOP, PHONE, context, launched
from tests.browser.troubled import search, trouble, troublesome, warm

QUERIES: Final = (
    *("json", "parse error", "open file", "thread lock", "path name", "list of strings"),
    *("context manager", "read bytes", "http header", "sort key", "random number", "time zone"),
)
HEDGED: Final = '.legs .try[data-kind="hedge"][data-fate="won"][data-phase="search"]'
SLOW: Final = 1
TRIES: Final = 4
ROUNDS_MAX: Final = 10
WATCHED_S: Final = 20.0
EVERY_S: Final = 0.04


def race(page: Any, fleet: Fleet, file: Path) -> None:
    """The search view, of a query of which a hedge has won over the slow leaf.

    A leaf that has been slow for a while is on probation and not asked, so it is made slow anew.
    """
    for _ in range(ROUNDS_MAX):
        trouble(fleet, SLOW, "slow")
        for _ in range(TRIES):
            page.goto(f"{fleet.root_url}/?q=parse+json")
            page.wait_for_selector(".leg")
            hedged = page.locator(HEDGED).count() > 0
            if hedged:
                page.screenshot(path=file)
                break
        trouble(fleet, SLOW, "quicken")
        warm(fleet, list(QUERIES))
        if hedged:
            return
    raise SystemExit("no query was hedged as it should be for the picture")


def busy(fleet: Fleet) -> None:
    """Ask as a few people would."""
    until_s = time.monotonic() + WATCHED_S
    number = 0
    while time.monotonic() < until_s:
        search(fleet, QUERIES[number % len(QUERIES)])
        number += 1
        time.sleep(EVERY_S)


def main(folder: Path) -> None:
    """Take them all."""
    folder.mkdir(parents=True, exist_ok=True)
    looks = {
        "light": (DESKTOP, False, 1.0),
        "dark": (DESKTOP, True, 1.0),
        "phone": (PHONE, True, 1.0),
    }
    with corpus.prepared(None) as index, troublesome(index) as fleet, launched() as browser:
        warm(fleet, list(QUERIES))
        windows = {
            name: context(browser, size, dark=dark, scale=scale)
            for name, (size, dark, scale) in looks.items()
        }
        for name, window in windows.items():
            race(window.new_page(), fleet, folder / f"race-{name}.png")
        pages = {name: window.new_page() for name, window in windows.items()}
        for page in pages.values():
            page.goto(f"{fleet.root_url}/#live")
        trouble(fleet, SLOW, "slow")
        busy(fleet)
        for name, page in pages.items():
            page.wait_for_selector('.leaf:is([data-heat="2"], [data-heat="3"])')
            page.screenshot(path=folder / f"live-{name}.png", full_page=name.startswith("phone"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
