"""The page's files: what is sent, under which policy, and that nothing else is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from root.page import MEDIA
from tests.sim.serving import Exchange, Served, is_problem, served

FOLDER: Final = Path(__file__).parent.parent.parent / "root" / "ui"
SOURCES: Final = sorted(FOLDER.iterdir())


def test_the_page_comes_under_a_strict_policy() -> None:
    """Scripts and styles from this root only, nothing inline, no frame around it."""

    async def body(serving: Served) -> None:
        for path in ("/", "/ui/app.js", "/ui/style.css"):
            answer = await serving.client.get(path)
            assert answer.status == 200
            policy = answer.headers["content-security-policy"].split("; ")
            assert "default-src 'none'" in policy
            assert {"script-src 'self'", "style-src 'self'", "connect-src 'self'"} <= set(policy)
            assert {"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} <= set(
                policy
            )
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"

    served(body)


def test_the_page_is_told_what_the_root_can_do() -> None:
    """So that it need not ask for what is not there."""

    async def body(serving: Served) -> None:
        page = (await serving.client.get("/")).body.decode()
        features = re.findall(r'name="hedgerow-features" content="([^"]*)"', page)
        assert len(features) == 1
        assert {"search", "live", "topology"} <= set(features[0].split())
        assert "trouble" not in features[0].split()

    served(body)


def test_every_file_that_the_page_names_is_there() -> None:
    """Links, scripts and imports lead to files that are sent with the right type."""

    async def body(serving: Served) -> None:
        named = set(re.findall(r'(?:href|src)="(ui/[^"]+)"', (FOLDER / "index.html").read_text()))
        for script in FOLDER.glob("*.js"):
            named |= {f"ui/{name}" for name in re.findall(r'from "\./([^"]+)"', script.read_text())}
        assert len(named) >= 8
        for name in named:
            answer = await serving.client.get(f"/{name}")
            assert answer.status == 200
            assert answer.headers["content-type"] == MEDIA[name.rpartition(".")[2]]

    served(body)


def test_what_the_browser_has_is_not_sent_again() -> None:
    """304 for the tag that came with it."""

    async def body(serving: Served) -> None:
        first = await serving.client.get("/ui/app.js")
        exchange = Exchange([])
        tag = first.headers["etag"].encode()
        await serving.client.run("GET", "/ui/app.js", exchange, [(b"if-none-match", tag)])
        assert (exchange.answer().status, exchange.answer().body) == (304, b"")

    served(body)


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpage.py", "page.py", ".."])
def test_nothing_but_the_page_is_sent(name: str) -> None:
    """404 for any other name."""

    async def body(serving: Served) -> None:
        is_problem(await serving.client.get(f"/ui/{name}"), 404)

    served(body)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_source_makes_html_of_text_or_asks_elsewhere(source: Path) -> None:
    """Nodes are made, not parsed; nothing is inline, and no other host is named."""
    text = source.read_text(encoding="utf-8")
    assert source.suffix[1:] in MEDIA
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"""\sstyle="|\son\w+="|javascript:""", text)
    urls = set(re.findall(r"https?://[^\"'\s]+", text)) - {
        "http://www.w3.org/2000/svg",  # the name of a language
    }
    assert not {url for url in urls if re.match(r"https?://\w", url)}
