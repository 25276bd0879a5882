"""A fleet that the page may trouble, and what asks it from outside the browser."""

from __future__ import annotations

import contextlib
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.fleet import Fleet, Shape, running

TOKEN: Final = "0123456789abcdef"
WARM: Final = 60
"""So many searches of sixteen shards are history enough to know what late is."""


@contextlib.contextmanager
def troublesome(index: Path) -> Iterator[Fleet]:
    """Four leaves that can be slowed, and a root whose page has buttons for it."""
    before = os.environ.get("HEDGEROW_ADMIN_TOKEN")
    os.environ["HEDGEROW_ADMIN_TOKEN"] = TOKEN
    try:
        with running(Shape(index, root_options=("--trouble-buttons",))) as fleet:
            yield fleet
    finally:
        del os.environ["HEDGEROW_ADMIN_TOKEN"]
        if before is not None:
            os.environ["HEDGEROW_ADMIN_TOKEN"] = before


def search(fleet: Fleet, q: str) -> Any:
    """Ask as a script would."""
    query = urllib.parse.urlencode({"q": q})
    with urllib.request.urlopen(f"{fleet.root_url}/search?{query}", timeout=10) as answer:
        return json.load(answer)


def warm(fleet: Fleet, words: list[str]) -> None:
    """Give the root a history."""
    for number in range(WARM):
        search(fleet, words[number % len(words)])


def trouble(fleet: Fleet, leaf: int, do: str) -> None:
    """Press a button of the page from outside."""
    body = json.dumps({"leaf": fleet.leaf_urls[leaf], "do": do}).encode()
    headers = {"origin": fleet.root_url, "x-hedgerow-trouble": "1"}
    request = urllib.request.Request(f"{fleet.root_url}/trouble", body, headers)
    urllib.request.urlopen(request, timeout=10).close()
