"""A browser and a fleet for the tests of the page, and what must hold on every page."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from bench import corpus
from bench.fleet import Fleet
from tests.browser.chromium import DESKTOP, context, executable, launched
from tests.browser.troubled import troublesome, warm

REQUIRED: Final = os.environ.get("EVERY_TEST") == "required"
"""Where they must not be left out for want of a browser."""

WORDS: Final = ("river", "stone", "heron", "willow", "bridge", "reed", "otter", "mill")
EVIL: Final = "nightshade"
SHARDS: Final = 16
DOCUMENTS: Final = 800


def documents() -> Iterator[dict[str, object]]:
    """Plain texts, and one that is a script if anybody takes it for HTML."""
    rng = random.Random("browser")
    for number in range(DOCUMENTS):
        body = " ".join(rng.choices(WORDS, k=40))
        title, place = " ".join(rng.sample(WORDS, 3)), ("shore", "bank")[number % 2]
        yield {"id": f"d{number:03d}", "title": title, "body": body, "place": place}
    attack = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>'
    yield {
        "id": f"evil{attack}",
        "title": f"{attack} {EVIL}",
        "body": f'{EVIL} </em><svg onload="window.hacked=3"> &lt;b&gt; {attack} {EVIL}',
        "place": attack,
    }


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Four leaves that can be troubled, warm."""
    folder = tmp_path_factory.mktemp("index")
    source = folder / "documents.jsonl"
    lines = (json.dumps(document) + "\n" for document in documents())
    source.write_text("".join(lines), encoding="utf-8")
    out = folder / "shards"
    options = ("--id-field", "id", "--text-fields", "title^2,body", "--keyword-fields", "place")
    corpus.build(out, str(source), SHARDS, *options)
    with troublesome(out) as running:
        warm(running, list(WORDS))
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. Of a module, as its driver keeps an event loop that others trip over."""
    if executable() is None:
        reason = "there is no Chromium: apt-get install chromium"
        if REQUIRED:
            pytest.fail(reason)
        pytest.skip(reason)
    with launched() as running:
        yield running


class Witness:
    """Everything that a page has complained of, and whom it has asked."""

    def __init__(self, root_url: str) -> None:
        self._root = urlsplit(root_url).netloc
        self.complaints: list[str] = []
        self.strangers: list[str] = []

    def watch(self, page: Any) -> None:
        """Listen to a page."""
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.netloc != self._root and parts.scheme != "data":
            self.strangers.append(request.url)


Opened = Callable[..., Any]


@pytest.fixture(name="opened")
def opened_fixture(browser: Any, fleet: Fleet) -> Iterator[Opened]:
    """Opens a path of the page in a window of its own: ``opened("/?q=river", size=PHONE)``.

    Whatever the test is about: no page may complain, and none may ask anybody but its root.
    """
    witness = Witness(fleet.root_url)
    contexts = []

    def open_page(path: str = "/", size: tuple[int, int] = DESKTOP, **options: Any) -> Any:
        window = context(browser, size, **options)
        contexts.append(window)
        page = window.new_page()
        page.set_default_timeout(10_000)
        witness.watch(page)
        page.goto(fleet.root_url + path)
        return page

    yield open_page
    for window in contexts:
        window.close()
    assert witness.complaints == []
    assert witness.strangers == []
